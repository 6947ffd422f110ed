"""What the manager answers, as values: the same whether it was asked in this process or over the helper's socket."""

from dataclasses import dataclass

from bcd.core.errors import HostError
from bcd.core.records import Failed, PendingRecord
from bcd.core.settle import Outcome


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
