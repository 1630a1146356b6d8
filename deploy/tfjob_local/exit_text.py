"""Exit codes in words."""

import signal
from typing import Optional

# The operator's "user-defined retryable" code; by its number alone it would be SIGUSR1.
_ASKS_FOR_RESTART = 138


def describe_exit(exit_code: Optional[int]) -> str:
    """"exit code 2", "signal SIGKILL (exit code 137)", "no exit code"."""
    if exit_code is None:
        return "no exit code"
    if exit_code > 128 and exit_code != _ASKS_FOR_RESTART:
        try:
            return f"signal {signal.Signals(exit_code - 128).name} (exit code {exit_code})"
        except ValueError:
            pass
    return f"exit code {exit_code}"
