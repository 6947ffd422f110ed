"""Numbers as people say them: sizes, ages, digests. Pure."""

from datetime import datetime

_STEPS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


def moment(at: object, form: str) -> str:
    """A Unix time by the local clock, in strftime's form; `unknown` where it is none, or none that a calendar has."""
    try:
        return "unknown" if not isinstance(at, int) else f"{datetime.fromtimestamp(at).astimezone():{form}}"
    except (OverflowError, ValueError, OSError):
        return "unknown"


def age(seconds: float) -> str:
    """`12 days`, `1 hour`, `4 seconds`; never negative."""
    whole = max(0, int(seconds))
    for step, name in _STEPS:
        if whole >= step:
            count = whole // step
            return f"{count} {name}{'s' if count != 1 else ''}"
    return f"{whole} second{'s' if whole != 1 else ''}"


def time_left(seconds: float) -> str:
    """`87 s left to be welcomed`, `14 s overdue, not swapped back`."""
    whole = int(seconds)
    return f"{whole} s left to be welcomed" if whole > 0 else f"{-whole} s overdue, not swapped back"


def bar(share: float, cells: int) -> tuple[str, str]:
    """The full and the empty part of a bar of so many cells; `share` is kept within 0 and 1."""
    full = round(max(0.0, min(1.0, share)) * cells)
    return "█" * full, "░" * (cells - full)


def size(count: float) -> str:
    """`32.6 MiB`."""
    if count < 2**10:
        return f"{count:.0f} B"
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"


def digest(sha256: str) -> str:
    """A SHA-256's beginning, in two groups."""
    return f"{sha256[:4]} {sha256[4:8]}…"
