"""The files that keys and passphrases lie in: made once and for their owner alone, read only where nobody else can.

Guarantees: no existing file is written over, no link is followed to a private key, and a file that others may read is
no secret and is refused. What the bytes mean is `keys`' to say.
"""

import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from bcd.core.durable import fill, host_error, remove_if_there, sync_directory
from bcd.core.errors import BcdError, NotPermitted, UsageError
from bcd.release.keys import PublicKey, ReleaseKey, load_public_key

_LIMIT_BYTES = 65_536
PASSPHRASE_LEAST = 12
"""Bytes. The attacker has the file and all the time there is; what is shorter is found."""
_PASSPHRASE_MOST = 1_024
_OTHERS = 0o077


def private_path(directory: str, kid: str) -> str:
    """Where `keygen` puts a private key."""
    return os.path.join(directory, f"{kid}.key")


def public_path(directory: str, kid: str) -> str:
    """Where `keygen` puts a public key."""
    return os.path.join(directory, f"{kid}.pub")


def kid_of(path: str) -> str:
    """The kid that a key's file is named by: its name without the ending."""
    return os.path.splitext(os.path.basename(path))[0]


def require_free(directory: str, kid: str) -> None:
    """Make sure that neither file is there, before anybody is asked for a passphrase.

    Raises:
        UsageError: `file-exists`.
    """
    for path in (private_path(directory, kid), public_path(directory, kid)):
        if os.path.lexists(path):
            raise _taken(path)


def write_key_pair(directory: str, key: ReleaseKey, passphrase: bytes) -> None:
    """Write both halves, durably; either both are there afterwards or neither is.

    Raises:
        UsageError: `file-exists`, or the directory is not there: `bad-usage`.
        HostError: `io-error`, `no-space`.
    """
    private, public = private_path(directory, key.kid), public_path(directory, key.kid)
    pem = key.to_pem(passphrase)
    with _made(private, pem, 0o600), _made(public, key.public.to_pem(), 0o644):
        try:
            sync_directory(directory or ".")
        except OSError as error:
            raise host_error(error, "write the key") from error


def read_private_key(path: str) -> bytes:
    """A private key's PEM, from a file that is its owner's alone.

    Raises:
        UsageError: `bad-key`, there is no such plain file; `exposed-secret`, others may read it.
        NotPermitted: `unreadable-key`, this user may not read it.
    """
    with _reading(path, "bad-key", os.O_NOFOLLOW) as handle:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise UsageError("bad-key", f"{path} is no regular file", "name the key's own file")
        pem = os.read(handle, _LIMIT_BYTES)
        # First: whoever names another file by mistake must not be told to change its mode.
        if b"PRIVATE KEY" not in pem:
            raise UsageError("bad-key", f"{path} holds no private key in PEM", "name the .key file")
        _require_hidden(path, found)
        return pem


def read_public_key(path: str) -> PublicKey:
    """The public key in a file, its kid being the file's name without the ending.

    Raises:
        UsageError: `bad-key`.
        NotPermitted: `unreadable-key`, this user may not read it.
    """
    with _reading(path, "bad-key", 0) as handle:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise UsageError("bad-key", f"{path} is no regular file", "name the .pub file")
        return load_public_key(kid_of(path), os.read(handle, _LIMIT_BYTES))


def read_passphrase(path: str) -> bytes:
    """The passphrase in a file's one line; `/dev/fd/3` reads an open descriptor.

    Raises:
        UsageError: `bad-passphrase`, there is none; `exposed-secret`, others may read the file.
        NotPermitted: `unreadable-key`, this user may not read it.
    """
    with _reading(path, "bad-passphrase", 0) as handle:
        found = os.fstat(handle)
        if stat.S_ISREG(found.st_mode):
            _require_hidden(path, found)
        os.set_blocking(handle, True)
        line = b""
        while len(line) <= _PASSPHRASE_MOST and (chunk := os.read(handle, _PASSPHRASE_MOST + 2)):
            line += chunk
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    if not line or len(line) > _PASSPHRASE_MOST or b"\n" in line or b"\0" in line:
        what = "is empty" if not line else f"is not one line of at most {_PASSPHRASE_MOST} bytes"
        raise UsageError("bad-passphrase", f"{path}: what it holds {what}", "put the passphrase alone into it")
    return line


def require_strong(passphrase: bytes) -> None:
    """Refuse a passphrase that protects nothing.

    Raises:
        UsageError: `bad-passphrase`.
    """
    if len(passphrase) < PASSPHRASE_LEAST:
        raise UsageError(
            "bad-passphrase",
            f"the passphrase is shorter than {PASSPHRASE_LEAST} characters",
            "take several words; a password manager can make them",
        )


def _require_hidden(path: str, found: os.stat_result) -> None:
    if found.st_mode & _OTHERS:
        raise UsageError(
            "exposed-secret",
            f"{path} has mode {stat.S_IMODE(found.st_mode):04o}: others may use it",
            f"where nobody has: {shlex.join(['chmod', '600', path])}; else make a new one",
        )
    if found.st_uid not in (0, os.geteuid()):
        raise UsageError("exposed-secret", f"{path} is of another user, uid {found.st_uid}", "use a file of your own")


@contextmanager
def _reading(path: str, code: str, flags: int) -> Iterator[int]:
    # O_NONBLOCK: a FIFO in its place must hang nobody.
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    except PermissionError as error:
        raise NotPermitted(
            "unreadable-key", f"{path}: this user may not read it", "ask its owner, or be them"
        ) from error
    except (OSError, ValueError) as error:
        if flags and os.path.islink(path):
            raise UsageError(code, f"{path} is a link", "name the file itself") from error
        said = getattr(error, "strerror", None) or "no name of a file"
        raise UsageError(code, f"{path}: {said}", "name a file that is there") from error
    try:
        yield handle
    except OSError as error:
        raise UsageError(code, f"{path}: {error.strerror}", "name a plain file") from error
    finally:
        os.close(handle)


@contextmanager
def _made(path: str, data: bytes, mode: int) -> Iterator[None]:
    """Make a file that was not there; what fails within, however it ends, unmakes it."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError as error:
        raise _taken(path) from error
    except OSError as error:
        raise _not_made(error) from error
    try:
        fill(handle, data, mode)
        yield
    except BaseException as error:
        remove_if_there(path)
        if isinstance(error, OSError):
            raise _not_made(error) from error
        raise


def _not_made(error: OSError) -> BcdError:
    found = host_error(error, "write the key")
    # Of the node that tries again there is none here.
    found.hint = (
        "free some space there" if found.code == "no-space" else "name a directory that you may write, with --directory"
    )
    return found


def _taken(path: str) -> UsageError:
    return UsageError(
        "file-exists", f"{path} is there already; no key is written over", "take another kid or --directory"
    )
