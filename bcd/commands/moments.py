"""Points in time as options give them."""

import re
from datetime import UTC, datetime

from bcd.core.errors import UsageError
from bcd.core.text import clean

_SPAN = re.compile(r"([0-9]{1,6})([dhm])")
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60}
_FORMS = ("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d")


def parse_moment(text: str, now: int | None = None) -> int:
    """Unix seconds of `2027-01-31` (its first second, UTC), `2027-01-31T12:00:00Z`, or, from `now` on, `90d`, `12h`, `30m`.

    Raises:
        UsageError: `bad-moment`.
    """
    span = _SPAN.fullmatch(text)
    if span is not None and now is not None:
        return now + int(span[1]) * _SECONDS[span[2]]
    for form in _FORMS:
        try:
            found = datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
        if found.year >= 1970:
            return int(found.timestamp())
    forms = "2027-01-31 or 2027-01-31T12:00:00Z" + ("" if now is None else ", 90d, 12h or 30m")
    raise UsageError("bad-moment", f"{clean(text, 40)!r} is no point in time", f"write {forms}")
