"""Taking secrets out of what leaves the machine in a bundle. It fails closed: what can't be parsed is left out.

The attack is an honest one: support asks for a bundle, and a password in a proxy's URL, a token in a query or a key in
a log goes with it. Structured text is redacted by its keys and then, like free text, by what secrets look like.
"""

import json
import re
from tomllib import TOMLDecodeError
from tomllib import loads as parse_toml

REDACTED = "[redacted]"

_SECRET_KEY = re.compile(
    r"pass(word|wd|phrase)?$|secret|token|api_?key|private|credential|authorization|cookie|session_?id", re.IGNORECASE
)
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    # A private key, whole or cut off at the end of a log.
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), REDACTED),
    # The user and password of any URL, and whatever follows its question mark.
    (re.compile(r"([a-z][a-z0-9+.-]*://)[^/\s\"'@]*@", re.IGNORECASE), rf"\1{REDACTED}@"),
    (re.compile(r"([a-z][a-z0-9+.-]*://[^\s\"'?]*\?)[^\s\"'#]+", re.IGNORECASE), rf"\1{REDACTED}"),
    (re.compile(r"\b(Bearer|Basic|Digest|Negotiate)\s+[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE), rf"\1 {REDACTED}"),
    # name=value, name: value, --name value, in logs and unit files.
    (
        re.compile(
            r"((?:\b|_)(?:password|passwd|passphrase|secret|token|api[_-]?key|credentials?|authorization|cookie)"
            r"[\"']?\s*(?:[=:]|\s)\s*)(\"[^\"]*\"|'[^']*'|[^\s,;\"']+)",
            re.IGNORECASE,
        ),
        rf"\1{REDACTED}",
    ),
    # Tokens that say what they are: JWTs, cloud and code hosts' keys.
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"), REDACTED),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), REDACTED),
    (re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|sk-|sk_live_)[A-Za-z0-9_-]{10,}"), REDACTED),
)


def redact_text(text: str) -> str:
    """Free text without what looks like a secret."""
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text


def redact_value(value: object) -> object:
    """A parsed document without its secrets: by key, then by look."""
    if isinstance(value, dict):
        return {
            redact_text(str(key)): REDACTED
            if _SECRET_KEY.search(str(key)) and not isinstance(item, bool | None)
            else redact_value(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [redact_value(item) for item in value]
    return redact_text(value) if isinstance(value, str) else value


def redact_json(data: bytes) -> bytes:
    """A JSON document, redacted.

    Raises:
        ValueError: it is none, so nothing of it may leave.
    """
    try:
        return json.dumps(redact_value(json.loads(data)), indent=2).encode() + b"\n"
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def redact_json_lines(data: bytes) -> bytes:
    """A file of one JSON document a line; lines that are none are dropped, and counted in a line of their own."""
    kept, dropped = [], 0
    for line in data.splitlines():
        try:
            kept.append(json.dumps(redact_value(json.loads(line))).encode())
        except (ValueError, RecursionError):
            dropped += 1
    if dropped:
        kept.append(json.dumps({"left_out_lines": dropped}).encode())
    return b"\n".join(kept) + b"\n"


def redact_toml(data: bytes) -> bytes:
    """A TOML document, redacted, as JSON: comments may hold secrets, and have no keys to tell by.

    Raises:
        ValueError: it is none, so nothing of it may leave.
    """
    try:
        return json.dumps(redact_value(parse_toml(data.decode("utf-8"))), indent=2, default=str).encode() + b"\n"
    except (TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError("no TOML") from error
