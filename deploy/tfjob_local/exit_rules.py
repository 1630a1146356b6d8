"""What the end of a pod means, by its restart policy and the operator's generation."""

import enum
from typing import Optional

from tfjob_api.operator_version import OperatorVersion

from .pods import Phase, Pod

# What the operator takes for the exit code of a pod whose container nobody saw end.
UNKNOWN_EXIT_CODE = 0xBEEF
_FIRST_RETRYABLE_CODE = 128
# Of the operators before 1.5: SIGINT, SIGKILL, "restart me", SIGTERM.
_OLD_RETRYABLE_CODES = frozenset({130, 137, 138, 143})


class Verdict(enum.Enum):
    # It has not failed.
    NONE = "none"
    # Its pod is replaced by a new one.
    RESTART = "restart"
    # It stays as it is, and the job fails.
    FAIL = "fail"


def is_retryable(exit_code: Optional[int], version: OperatorVersion) -> bool:
    """Under the restart policy ExitCode."""
    code = UNKNOWN_EXIT_CODE if exit_code is None else exit_code
    if version.retries_every_code_from_128:
        return code >= _FIRST_RETRYABLE_CODE
    return code in _OLD_RETRYABLE_CODES


def judge(pod: Pod, restart_policy: str, version: OperatorVersion) -> Verdict:
    """Of OnFailure and Always, the operator only sees the loss of a whole pod: the kubelet restarts
    the container in place."""
    if pod.phase is not Phase.FAILED:
        return Verdict.NONE
    if restart_policy == "ExitCode":
        return Verdict.RESTART if is_retryable(pod.exit_code, version) else Verdict.FAIL
    if restart_policy in ("OnFailure", "Always") and version.recreates_lost_on_failure_pods:
        return Verdict.RESTART
    return Verdict.FAIL
