"""What a node is told: a `DaemonSection` (spec/self-update.md section 2), and what is wrong with one."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from bcd.core.errors import Refusal
from bcd.core.strict import decode_base64
from bcd.core.text import clean
from bcd.core.versions import is_version

_FIELDS = ("version", "url", "sha256", "signature")
_HEX = frozenset("0123456789abcdefABCDEF")
_SHA256_DIGITS = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class DaemonSection:
    """A target: which version, from where, with which digest, signed how."""

    version: str
    url: str
    sha256: str
    """64 lower-case hex digits."""
    signature: str
    """The signed manifest's text, or its base64."""

    @property
    def manifest(self) -> bytes:
        """The signed manifest's bytes; empty where the base64 is none, which no manifest is."""
        if self.signature.startswith("{"):
            return self.signature.encode("utf-8", "surrogatepass")
        try:
            return decode_base64(self.signature)
        except ValueError:
            return b""


def parse_section(spec: object) -> DaemonSection:
    """Read a section.

    Raises:
        Refusal: `bad-section`, naming the field.
    """
    if not isinstance(spec, dict):
        raise _bad("it is no object")
    unknown = sorted(clean(str(key), 40) for key in spec.keys() - set(_FIELDS))
    if unknown:
        raise _bad(f"it has {len(unknown)} unknown fields: {', '.join(unknown[:5])}")
    for field in _FIELDS:
        if field not in spec:
            raise _bad(f"{field} is missing")
        if not isinstance(spec[field], str):
            raise _bad(f"{field} is no text")
    version, sha256 = spec["version"], spec["sha256"]
    if not is_version(version):
        raise _bad(f"version {clean(version, 80)!r} is no semantic version")
    if len(sha256) != _SHA256_DIGITS or not _HEX.issuperset(sha256):
        raise _bad("sha256 is not 64 hex digits")
    return DaemonSection(version=version, url=spec["url"], sha256=sha256.lower(), signature=spec["signature"])


def named_version(spec: object) -> str | None:
    """The version that a section names, well formed or not; for telling that it runs already."""
    version = spec.get("version") if isinstance(spec, dict) else None
    return version if isinstance(version, str) else None


def check_url(url: str, *, clear_text: bool) -> None:
    """Whether a download may come from `url`.

    Args:
        url: as the section has it.
        clear_text: let `http://` through (a fakehw build, or `dev_insecure_h2c`).

    Raises:
        Refusal: `bad-url`.
    """
    # urlsplit drops tabs and newlines silently, and where it takes a backslash into the host, who connects ends the host
    # there: what the request then names would not be what was checked.
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise _bad_url("it has characters that no URL has")
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise _bad_url("it does not parse") from error
    if parts.scheme not in (("https", "http") if clear_text else ("https",)):
        raise _bad_url("it is not https://")
    if not host:
        raise _bad_url("it names no host")
    if "@" in parts.netloc:
        raise _bad_url("it carries credentials")


def _bad(what: str) -> Refusal:
    return Refusal("bad-section", f"the daemon section is malformed: {what}", "correct it in the control plane")


def _bad_url(what: str) -> Refusal:
    return Refusal("bad-url", f"the download's URL is refused: {what}", "correct it in the control plane")
