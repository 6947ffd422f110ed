"""What the manager answers, as values: the same whether it was asked in this process or over the helper's socket."""

from dataclasses import dataclass
from typing import Literal, Protocol

from bcd.core.errors import HostError
from bcd.core.look import Look
from bcd.core.records import Failed, PendingRecord
from bcd.core.settle import Outcome

Way = Literal["deadline", "exec"]
"""Who found that a release must go: its own timer, or the exec that failed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetch:
    """What the node has to download before the swap."""

    version: str
    sequence: int
    url: str
    sha256: str
    size: int
    """Bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """An accepted target."""

    version: str
    fetch: Fetch | None
    """None where the other slot holds it already."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """What a start found."""

    outcome: Outcome
    pending: PendingRecord | None
    """The swap that it was about; None where there was none."""
    failed: Failed | None = None
    """What was recorded against the version."""
    restart: bool = False
    """`current` moved: exec the entrypoint."""
    stayed: HostError | None = None
    """Why a rollback that was due did not happen; what runs goes on running."""


class UpdateManager(Protocol):
    """What the node asks: of the manager in its own process, or of the helper's through its client (section 10)."""

    @property
    def look(self) -> Look:
        """The questions that change nothing."""

    def running_version(self) -> str:
        """The version that runs here."""

    def settle(self) -> Settled:
        """Decide what this start is, and make it so."""

    def prepare(self, spec: object, *, server_time: int | None) -> Prepared | None:
        """Run every check over a section; None where it names the running version."""

    def swap(self, spec: object, *, server_time: int | None, command_id: str | None) -> PendingRecord:
        """Put the target into the other slot and switch to it."""

    def confirm(self) -> PendingRecord | None:
        """A gateway welcomed what runs."""

    def rollback(self, *, way: Way, said: str | None = None) -> bool:
        """Go back to the slot that ran before; whether `current` moved."""

    def note_gateway_refused(self, said: str) -> None:
        """Keep what a gateway said that answered and refused."""
