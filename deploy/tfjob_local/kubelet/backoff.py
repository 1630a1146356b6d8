"""How long a container that ended waits until it is started again in its pod."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    # The delay after the first end in a row.
    initial_seconds: float
    # The delay after the second end; it doubles from there.
    second_seconds: float
    longest_seconds: float
    # An attempt that lasted this long resets the count.
    healthy_seconds: float
    # The pod that replaces a failed one waits, too; on a cluster nothing delays it.
    delays_new_pods: bool
    # A restart in place counts as soon as it is certain; on a cluster when it begins.
    counts_early: bool

    @classmethod
    def strict(cls) -> "Backoff":
        """The kubelet's CrashLoopBackOff: at once, 10 s, 20 s, ... 5 min; forgotten after 10 min."""
        return cls(0.0, 10.0, 300.0, 600.0, delays_new_pods=False, counts_early=False)

    @classmethod
    def lenient(cls) -> "Backoff":
        """Short delays for interactive use: 0.25 s, 0.5 s, ... 10 s."""
        return cls(0.25, 0.5, 10.0, 60.0, delays_new_pods=True, counts_early=True)

    def delay(self, ends_in_a_row: int) -> float:
        """Seconds to wait after that many ends (1 or more) in a row."""
        if ends_in_a_row <= 1:
            return self.initial_seconds
        # Bounded, as the doubling of a job that crashed a whole night would overflow a float.
        doublings = min(ends_in_a_row - 2, 60)
        return min(self.longest_seconds, self.second_seconds * 2.0**doublings)
