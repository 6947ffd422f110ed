"""A release's manifest in lines for people, as `sign` and `inspect` show it. What it holds is not believed, only shown."""

from bcd.core.clock import utc_text
from bcd.core.manifest import Manifest
from bcd.core.text import clean
from bcd.core.trust import SignatureVerdict, pin_of

_UNITS = (("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024))
_DAY_SECONDS = 86_400


def manifest_lines(manifest: Manifest, now: int) -> list[str]:
    """What a manifest says; `now` is Unix seconds."""
    lines = [
        f"release   {manifest.product} {manifest.version}, sequence {manifest.sequence}",
        f"issued    {utc_text(manifest.issued_at)}",
        f"expires   {utc_text(manifest.expires_at)} ({_ahead(manifest.expires_at - now)})",
    ]
    for artifact in manifest.artifacts:
        lines.append(f"file      {artifact.name}, {artifact.platform}, {_size(artifact.size)}")
        lines.append(f"          sha256 {artifact.sha256}")
    return [*lines, *(f"key       {key.kid}  {pin_of(key.spki)}" for key in manifest.keys)]


def signature_lines(verdicts: tuple[SignatureVerdict, ...]) -> list[str]:
    """Who signed, and whether it is so; against the manifest's own keys."""
    if not verdicts:
        return ["signed    by nobody yet"]
    return [
        f"signed    {'valid  ' if verdict.pin else 'INVALID'}  {clean(verdict.kid) or '(unread)'}"
        + ("" if verdict.pin else f": {clean(verdict.why)}")
        for verdict in verdicts
    ]


def _ahead(seconds: int) -> str:
    if seconds <= 0:
        return "EXPIRED"
    days, hours = seconds // _DAY_SECONDS, seconds // 3600
    return f"in {days} days" if days > 1 else f"in {hours} hours" if hours > 1 else f"in {seconds} s"


def _size(size: int) -> str:
    for unit, worth in _UNITS:
        if size >= worth:
            return f"{size / worth:.1f} {unit} ({size} bytes)"
    return f"{size} bytes"
