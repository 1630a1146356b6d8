"""How faithful the emulated operator is: to the letter, or as its users wish it were."""

from dataclasses import dataclass
from typing import FrozenSet, Optional

MAX_RESTARTS = 10
# Of Keelson's programs: bad configuration or data; the next attempt would end the same way.
EXIT_PERMANENT = 2


@dataclass(frozen=True)
class Rules:
    # - backoffLimit counts only what pods that run now were restarted in place; a limit of 0 also
    #   failures;
    # - activeDeadlineSeconds is only looked at when something happens;
    # - a running pod that is being deleted counts as a failed one;
    # - while the job is Restarting, no other failure is seen;
    # - a job can succeed and fail at once, and has then failed;
    # - a dynamic job goes on for ever when a worker has failed without whom it cannot succeed;
    # - the pods of a suspended job end all at once, so that the chief's last snapshot finds no servers.
    known_bugs: bool
    # cleanPodPolicy and ttlSecondsAfterFinished are applied. Otherwise who runs the operator ends
    # the pods, having given them time to end by themselves.
    cleans_up: bool
    # Of one replica, whatever backoffLimit says; None: no limit.
    max_restarts: Optional[int] = None
    # These fail the job under every restart policy.
    hopeless_codes: FrozenSet[int] = frozenset()

    @classmethod
    def strict(cls) -> "Rules":
        """What the operator of the given version does, its known bugs included."""
        return cls(known_bugs=True, cleans_up=True)

    @classmethod
    def lenient(cls, max_restarts: int = MAX_RESTARTS) -> "Rules":
        """What its users want."""
        return cls(
            known_bugs=False,
            cleans_up=False,
            max_restarts=max_restarts,
            hopeless_codes=frozenset({EXIT_PERMANENT}),
        )
