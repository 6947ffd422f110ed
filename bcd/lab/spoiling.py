"""What can go wrong between a release server and a node, as values."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Spoiling:
    """How answers for one path are spoilt. The default spoils nothing."""

    status: int | None = None
    """Answer with this HTTP status and no file."""
    cut_after: int | None = None
    """Drop the connection after this many bytes of body."""
    stall_after: int | None = None
    """Send this many bytes of body, then nothing more, with the connection held open."""
    bytes_per_second: int | None = None
    """Send no faster than this."""
    surplus: bytes = b""
    """Send these behind the file, and count them in its length."""
    flipped: bool = False
    """Send as many other bytes: the length is right and the digest is not."""
    answers: int | None = None
    """How many answers to spoil; the next one is right. None: all of them."""


SOUND = Spoiling()
"""Nothing is spoilt."""
