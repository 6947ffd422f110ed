"""Errors by whose fault they are: the release's, the transfer's, this host's, or the person's at the keyboard.

Every error has a stable `code`, a sentence for people (`message`) and what to do next (`hint`, may be empty).
A refusal is terminal: the same target gets the same answer until something changes on the node. The other
families but `UsageError` are retryable (spec/self-update.md section 4).
"""


class BcdError(Exception):
    """The root: nothing else leaves bcd's layers on purpose."""

    retryable = False

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code!r}, {self.message!r})"


class Refusal(BcdError):
    """The release's fault, or the section's that names it: a terminal no, by a code of section 4."""


class TransferError(BcdError):
    """The download did not work this time: `download-failed`. Retryable."""

    retryable = True


class HostError(BcdError):
    """This machine's fault: `io-error`, `no-space`, `update-in-progress`, `helper-unreachable`. Retryable."""

    retryable = True


class UsageError(BcdError):
    """The person's at the keyboard, or their configuration's: nothing was tried."""


class NotPermitted(BcdError):
    """This user may not look or act; the hint names the command that may."""
