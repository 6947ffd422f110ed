"""`bcd release keygen`: a new key, in two files that were not there before."""

import os

from bcd.commands.passphrase import new_passphrase
from bcd.commands.streams import print_lines
from bcd.core.config import DEFAULT_PATH
from bcd.core.errors import UsageError
from bcd.core.exits import ExitStatus
from bcd.core.text import clean
from bcd.release.keyfile import private_path, public_path, require_free, write_key_pair
from bcd.release.keys import generate_key


def make_key(kid: str, directory: str, passphrase_file: str | None) -> ExitStatus:
    """Make a key and say what goes where.

    Raises:
        UsageError: `bad-key`, the kid is none; `file-exists`; `bad-passphrase`; `no-terminal`; `bad-directory`.
        HostError: the files could not be written, and none stays.
    """
    key = generate_key(kid)
    if not os.path.isdir(directory):
        raise UsageError("bad-directory", f"{directory} is no directory", "make it, or name another with --directory")
    require_free(directory, kid)
    write_key_pair(directory, key, new_passphrase(kid, passphrase_file))
    print_lines(
        [
            f"kid          {key.kid}",
            f"pin          {key.pin}",
            f"private key  {clean(private_path(directory, kid))} (encrypted: keep it and its passphrase apart, and back both up)",
            f"public key   {clean(public_path(directory, kid))} (for whoever makes manifests)",
            "",
            f"each node's {DEFAULT_PATH} lists it, beside the pins of the others:",
            "[update]",
            f'release_pins = ["{key.pin}"]',
        ]
    )
    return ExitStatus.OK
