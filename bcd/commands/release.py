"""`bcd release` as click knows it: keys and manifests, on a publisher's machine."""

import sys

import rich_click as click

from bcd.commands.options import MEANINGS, Suggesting, color_option, exits, json_option
from bcd.commands.streams import wants_color
from bcd.core.exits import ExitStatus

_EXITS = exits(*(status for status in MEANINGS if status is not ExitStatus.BUSY))
_passphrase_option = click.option(
    "--passphrase-file",
    metavar="FILE",
    help="Read the passphrase there, from one line, and not from the terminal; /dev/fd/3 is an open descriptor.",
)


@click.group(cls=Suggesting)
def release() -> None:
    """Make release keys, sign manifests, and look at them. Needs no node and no network.

    \b
    Examples:
      bcd release keygen alice                     a key of her own, for each signer
      bcd release sign --new release.json alice.key --version 1.4.1 ...
      bcd release sign release.json bob.key        the second of two signers
      bcd release inspect release.json             what is in it?
      bcd release verify release.json --config /etc/bcd/config.toml
    """


@release.command(epilog=_EXITS)
@click.argument("kid", metavar="KID")
@click.option("--directory", metavar="DIR", default=".", show_default=True, help="Where the two files are written.")
@_passphrase_option
def keygen(kid: str, directory: str, passphrase_file: str | None) -> int:
    """Make a release key: KID.key, encrypted, and KID.pub. Writes over nothing.

    KID is the signer's name in manifests. The passphrase is typed twice on the terminal.

    \b
    Examples:
      bcd release keygen alice
      bcd release keygen alice --directory /media/stick
    """
    from bcd.commands.release_keygen import make_key

    return make_key(kid, directory, passphrase_file)


@release.command(epilog=_EXITS)
@click.argument("manifest", metavar="MANIFEST")
@click.argument("key", metavar="[KEY]", required=False)
@click.option(
    "--new", is_flag=True, help="Make MANIFEST first, from the options below. Without KEY nobody signs it yet."
)
@click.option("--version", metavar="VERSION", help="With --new: the release's version.")
@click.option("--sequence", metavar="N", type=click.IntRange(1), help="With --new: its number, higher than any before.")
@click.option("--expires", metavar="WHEN", help="With --new: 2027-01-31, or 90d from now.")
@click.option(
    "--artifact", "artifacts", multiple=True, metavar="PLATFORM=FILE", help="With --new: a program; may be repeated."
)
@click.option(
    "--signer",
    "signers",
    multiple=True,
    metavar="FILE",
    help="With --new: a public key that may sign; may be repeated.",
)
@_passphrase_option
@click.option(
    "--signer-command",
    "command",
    metavar="COMMAND",
    help="Have COMMAND sign what it gets on standard input, for the public key in KEY; run without a shell.",
)
@click.option(
    "--signer-input",
    type=click.Choice(("message", "digest")),
    default="message",
    show_default=True,
    help="What COMMAND gets: the bytes, or their SHA-256.",
)
@click.option("--timeout", metavar="SPAN", default="60s", show_default=True, help="What COMMAND may take.")
@click.option("-y", "--yes", is_flag=True, help="Sign without asking.")
def sign(
    manifest: str,
    key: str | None,
    new: bool,  # noqa: FBT001
    version: str | None,
    sequence: int | None,
    expires: str | None,
    artifacts: tuple[str, ...],
    signers: tuple[str, ...],
    passphrase_file: str | None,
    command: str | None,
    signer_input: str,
    timeout: str,
    yes: bool,  # noqa: FBT001
) -> int:
    """Add one signature to MANIFEST, with the private key in the file KEY. The earlier ones stay as they are.

    What is about to be signed is shown, and signed once you say yes. What every node would refuse is not signed.

    \b
    Examples:
      bcd release sign release.json bob.key
      bcd release sign release.json carol.pub --signer-command ./hsm-sign
      bcd release sign --new release.json alice.key --version 1.4.1 \\
        --sequence 15 --expires 90d --artifact linux-amd64=dist/bcd \\
        --signer alice.pub --signer bob.pub --signer carol.pub
    """
    from bcd.commands.doctor_options import parse_span
    from bcd.commands.release_sign import NewRelease, Signer, sign_manifest
    from bcd.core.errors import UsageError

    details = NewRelease(version, sequence, expires, artifacts, signers)
    if not new and any(details):
        hint = "say --new to make another manifest; one that exists is never changed, only signed"
        raise UsageError("bad-usage", "--version, --sequence, --expires, --artifact and --signer go with --new", hint)
    signer = Signer(key, passphrase_file, command, signer_input == "digest", parse_span(timeout))
    return sign_manifest(manifest, details if new else None, signer, yes=yes)


@release.command(epilog=_EXITS)
@click.argument("manifest", metavar="MANIFEST")
@click.option("--pins", multiple=True, metavar="PINS", help="What nodes pin, separated by commas; may be repeated.")
@click.option(
    "--threshold", metavar="N", type=click.IntRange(1), help="How many of them must have signed; 2 where not given."
)
@click.option(
    "--config", "config_path", metavar="FILE", help="Take pins, threshold and floor from a node's configuration."
)
@click.option("--floor", metavar="N", type=click.IntRange(0), help="The lowest sequence that nodes still accept.")
@click.option("--at", metavar="WHEN", help="Verify as at 2027-01-31 or 2027-01-31T12:00:00Z; now where not given.")
@click.option("--platform", metavar="OS-ARCH", help="The nodes' platform, as linux-amd64.")
@click.option("--url", metavar="URL", help="Where a rollout would have it downloaded from.")
@click.option("--sha256", metavar="HEX", help="The digest that a rollout would name.")
@json_option
@color_option
def verify(
    manifest: str,
    pins: tuple[str, ...],
    threshold: int | None,
    config_path: str | None,
    floor: int | None,
    at: str | None,
    platform: str | None,
    url: str | None,
    sha256: str | None,
    as_json: bool,  # noqa: FBT001
    color: str,
) -> int:
    """Would nodes with these pins take this release? The node's own checks, one by one, on any machine.

    MANIFEST is a file, or - for standard input. What only a node knows is skipped, and said to be; on a node,
    `bcd update check` has it all.

    \b
    Examples:
      bcd release verify release.json --config /etc/bcd/config.toml
      bcd release verify release.json --pins sha256/...,sha256/... --floor 14 --platform linux-amd64
    """
    from bcd.commands.release_verify import Asked, verify_release

    asked = Asked(pins, threshold, config_path, floor, at, platform, url, sha256)
    return verify_release(manifest, asked, as_json=as_json, color=wants_color(color, sys.stdout))


@release.command(epilog=_EXITS)
@click.argument("manifest", metavar="MANIFEST")
@json_option
def inspect(manifest: str, as_json: bool) -> int:  # noqa: FBT001
    """Show what MANIFEST says and who signed it, without trusting any of it; - is standard input.

    \b
    Examples:
      bcd release inspect release.json
    """
    from bcd.commands.release_inspect import inspect_manifest

    return inspect_manifest(manifest, as_json=as_json)
