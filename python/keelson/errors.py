"""What can go wrong. Each error's text is one line: what, expected, found."""

from __future__ import annotations

import re
import sys
from types import TracebackType
from typing import Optional, Type

# absl::StatusCode -> the exit code of a program that ends with it (docs/errors.md).
_PERMANENT, _TRANSIENT, _STOPPED, _INTERNAL = 2, 138, 143, 1
_EXIT_CODES = {
    1: _STOPPED,
    4: _TRANSIENT,
    8: _TRANSIENT,
    10: _TRANSIENT,
    14: _TRANSIENT,
    2: _INTERNAL,
    13: _INTERNAL,
}
# What the chief says of such a job (chief/lifecycle/training_phase.cc), before advice for those who write a configuration.
_DIVERGED = re.compile(r"(?:the training loss is not finite|training has diverged) near step \d+[^;]*")
_AGAINST_DIVERGENCE = (
    "lower lr, or bound the gradients: clip_grad_norm_ of torch.nn.utils before step(), clip_value of keelson's optimizers; "
    "keelson_ckpt rollback MODEL_DIR STEP goes back to an earlier snapshot"
)


def exit_code_of_status(code: int) -> int:
    """Of an absl::StatusCode: does a restart help?"""
    return _EXIT_CODES.get(code, _PERMANENT)


class Error(RuntimeError):
    """Of Keelson. A script that does not catch it ends with its exit code."""

    exit_code = _INTERNAL


class JoinError(Error):
    """The script cannot take part in the job: its settings, its model, a missing program, another job's model."""

    exit_code = _PERMANENT


class AgentLost(Error):
    """The agent, or a program that the script started, has ended while the job runs."""

    def __init__(self, text: str, exit_code: int = _TRANSIENT) -> None:
        super().__init__(text)
        self.exit_code = exit_code


class Diverged(AgentLost):
    """The chief has ended the job because the loss is not finite, or much greater than at the beginning."""


def lost(text: str, exit_code: int = _TRANSIENT) -> AgentLost:
    """What the last words of a program of Keelson's mean."""
    found = _DIVERGED.search(text) if exit_code == _PERMANENT else None
    if found is None:
        return AgentLost(text, exit_code)
    return Diverged(f"{found.group()}; {_AGAINST_DIVERGENCE}", exit_code)


class BadGradient(Error):
    """A gradient was not pushed: it is missing, of another shape or type, or not finite where that is refused."""

    exit_code = _PERMANENT


class Transient(Error):
    """Raise it for a failure that a restart may mend: the script ends with 138, and TFJob starts it again."""

    exit_code = _TRANSIENT


class Stopped(SystemExit):
    """SIGTERM came. No Exception: like KeyboardInterrupt it passes by `except Exception`."""

    exit_code = _STOPPED

    def __init__(self) -> None:
        super().__init__(_STOPPED)


class Finished(SystemExit):
    """The job was done before the script came, and its model is not in the script's sight: code behind it could only go on with
    a model that nobody has trained. No Exception, as Stopped."""

    def __init__(self) -> None:
        super().__init__(0)


for _name in ("Error", "JoinError", "AgentLost", "Diverged", "BadGradient", "Transient", "Stopped", "Finished"):
    globals()[_name].__module__ = "keelson"  # As users import it, and tracebacks name it.


def install_exit_codes() -> None:
    """From now on an Error that nobody catches sets the exit code; its traceback is printed as before."""
    if getattr(sys.excepthook, "sets_keelson_exit_codes", False):
        return
    before = sys.excepthook

    def hook(kind: Type[BaseException], error: BaseException, trace: Optional[TracebackType]) -> None:
        before(kind, error, trace)
        if isinstance(error, Error):
            raise SystemExit(error.exit_code)

    hook.sets_keelson_exit_codes = True  # type: ignore[attr-defined]
    sys.excepthook = hook
