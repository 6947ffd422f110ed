"""The one sanitiser for text from outside: records, manifests, gateways, servers, logs (field reports C05, C06).

The attack: a failure's reason, a version or a URL that carries ESC, OSC 52, a C1 byte or a bidi override writes
the clipboard of whoever looks, hides lines or forges a prompt. `Foreign` is made where such text is read: whatever
prints it prints the clean form, and only JSON, which escapes, asks for `raw`.
"""

from typing import Self

LIMIT = 2_000
"""Characters of a foreign text that are shown; a record of 10 kB must not scroll the rest away."""


def clean(text: str, limit: int = LIMIT) -> str:
    """Return `text` with everything but printable characters as visible escapes, cut at `limit` characters."""
    shown = text if len(text) <= limit else text[: limit - 1] + "…"
    if shown.isprintable():
        return shown
    return "".join(c if c.isprintable() else _escaped(c) for c in shown)


def _escaped(character: str) -> str:
    # isprintable() is false for controls, C1, format characters (bidi, zero-width, tags), surrogates and every
    # separator but the space: exactly what a terminal may act on or hide.
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


class Foreign(str):
    """Text from outside: the string itself is clean, `raw` is what was read."""

    __slots__ = ("raw",)
    raw: str

    def __new__(cls, raw: str) -> Self:
        """Keep `raw`, be its clean form."""
        made = super().__new__(cls, clean(raw))
        made.raw = raw
        return made


def raw(text: str) -> str:
    """The value as it was read, for JSON, which escapes it."""
    return text.raw if isinstance(text, Foreign) else text
