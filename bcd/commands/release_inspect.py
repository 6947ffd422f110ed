"""`bcd release inspect`: what a manifest says and who signed it. Trusts nothing and says so."""

import json
import time

from bcd.commands.check import read_manifest
from bcd.commands.release_words import manifest_lines, signature_lines
from bcd.commands.streams import print_lines
from bcd.core.errors import Refusal
from bcd.core.exits import ExitStatus
from bcd.core.manifest import Envelope, ShapeError, parse_envelope
from bcd.core.trust import SignatureVerdict, is_canonical, pin_of
from bcd.release.signing import signatures_of


def inspect_manifest(path: str, *, as_json: bool) -> ExitStatus:
    """Print what is in a manifest.

    Raises:
        Refusal: `manifest-shape`, it is none.
        UsageError: the file can't be read.
        NotPermitted: this user may not read it.
    """
    data = read_manifest(path)
    try:
        read = parse_envelope(data)
    except ShapeError as error:
        hint = "publish the file as it was signed, byte for byte; `bcd release sign --new` makes one"
        raise Refusal("manifest-shape", f"{path} is no release manifest: {error}", hint) from error
    verdicts = signatures_of(data, read)
    if as_json:
        print_lines([json.dumps(inspect_json(read, verdicts), indent=2)])
        return ExitStatus.OK
    canonical = [] if is_canonical(read) else ["broken    the body is not its canonical JSON: no node takes it"]
    print_lines(
        [
            *manifest_lines(read.manifest, int(time.time())),
            *canonical,
            *signature_lines(verdicts),
            "",
            "Nothing was checked against pins: anybody can write such a file, with keys of their own in it.",
            "`bcd release verify` says whether nodes would take it.",
        ]
    )
    return ExitStatus.OK


def inspect_json(read: Envelope, verdicts: tuple[SignatureVerdict, ...]) -> dict[str, object]:
    """The same as JSON's values."""
    manifest = read.manifest
    pins = {key.kid: pin_of(key.spki) for key in manifest.keys}
    return {
        "format": 1,
        "pins_checked": False,
        "product": manifest.product,
        "version": manifest.version,
        "sequence": manifest.sequence,
        "issued_at": manifest.issued_at,
        "expires_at": manifest.expires_at,
        "canonical": is_canonical(read),
        "artifacts": [
            {"name": file.name, "platform": file.platform, "sha256": file.sha256, "size": file.size}
            for file in manifest.artifacts
        ],
        "keys": [{"kid": kid, "pin": pin} for kid, pin in pins.items()],
        "signatures": [
            {"kid": verdict.kid, "pin": pins.get(verdict.kid), "valid": verdict.pin is not None, "why": verdict.why}
            for verdict in verdicts
        ],
    }
