"""The client's exceptions; the text of each is one line for the user."""

import enum


class InputError(ValueError):
    """The user's input cannot be used: what, expected, found. Nothing was sent to the cluster."""


class ErrorKind(enum.Enum):
    """The reason for which kubectl failed."""

    NO_KUBECTL = "kubectl is missing"
    NO_SERVER = "no answer from the cluster"
    NO_OPERATOR = "the cluster does not know TFJobs"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not found"
    EXISTS = "exists already"
    INVALID = "refused by the cluster"
    OTHER = "other"


class ClusterError(RuntimeError):
    """The cluster, or kubectl, refused or did not answer."""

    def __init__(self, kind: ErrorKind, text: str, exit_code: int = 1):
        super().__init__(text)
        self.kind = kind
        # kubectl's.
        self.exit_code = exit_code


class JobFailedError(RuntimeError):
    """The job ended with the condition Failed, which was not among the awaited ones."""
