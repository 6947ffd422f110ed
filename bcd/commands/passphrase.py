"""Where a passphrase comes from: the terminal, unseen, or a file. Never an argument or the environment (ADR 0007)."""

from cryptography.hazmat.primitives.asymmetric import ec

from bcd.commands.streams import say
from bcd.commands.terminal import ask_secret
from bcd.core.errors import NotPermitted, UsageError
from bcd.core.text import clean
from bcd.release.keyfile import read_passphrase, read_private_key, require_strong
from bcd.release.keys import is_encrypted, load_private_key

_INSTEAD = "--passphrase-file FILE, or /dev/fd/3 for an open descriptor"
_TRIES = 3


def new_passphrase(kid: str, file: str | None) -> bytes:
    """A passphrase for a key that is to be made, typed twice or read once.

    Raises:
        UsageError: `bad-passphrase`, it is too short or was typed in two ways; `no-terminal`; see `read_passphrase`.
    """
    if file is not None:
        passphrase = read_passphrase(file)
        require_strong(passphrase)
        return passphrase
    passphrase = ask_secret(f"passphrase for the new key {kid}: ", _INSTEAD)
    require_strong(passphrase)
    if ask_secret("the same again: ", _INSTEAD) != passphrase:
        raise UsageError("bad-passphrase", "the two passphrases are not the same", "start anew; nothing was written")
    return passphrase


def open_key(path: str, file: str | None) -> ec.EllipticCurvePrivateKey:
    """The private key in a file.

    Raises:
        UsageError: `bad-key`, `exposed-secret`, `no-terminal`; see `read_passphrase`.
        NotPermitted: `wrong-passphrase`, `unreadable-key`.
    """
    pem = read_private_key(path)
    if not is_encrypted(pem):
        say([f"bcd: {clean(path)} has no passphrase: whoever copies it can sign"])
        return load_private_key(path, pem)
    if file is not None:
        return load_private_key(path, pem, read_passphrase(file))
    for left in reversed(range(_TRIES)):
        typed = ask_secret(f"passphrase for {path}: ", _INSTEAD)
        if not typed:
            break
        try:
            return load_private_key(path, pem, typed)
        except NotPermitted:
            if not left:
                raise
            say(["bcd: that is not its passphrase"])
    raise UsageError("bad-passphrase", "no passphrase was given", "nothing was written; " + _INSTEAD)
