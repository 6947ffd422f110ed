"""Signing by an external command: a key in an HSM, on a token or in a service that this program never sees.

The command is a list of words, run without a shell. It gets exactly the bytes to be signed on standard input, or their
SHA-256, and prints a signature: DER, 64 bytes r‖s, or either in base64. It is believed in nothing: what it printed is
verified against the public key, it has so long, it may print so much, and of what it says on standard error only an
excerpt is passed on. Its words are never repeated in a message: they may hold a PIN.
"""

import os
import selectors
import shlex
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from hashlib import sha256
from typing import IO

from bcd.core.errors import HostError, UsageError
from bcd.core.text import clean
from bcd.release.keys import SCALAR_BYTES, PublicKey, raw_signature

_PRINTED_LIMIT_BYTES = 4_096
_SAID = 200
"""Characters of the command's standard error that an error shows: its end, where the reason stands."""


def parse_command(text: str) -> list[str]:
    """The words of a command as a shell would split them; nothing else of a shell is done.

    Raises:
        UsageError: `bad-usage`.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError("bad-usage", "--signer-command has an open quote", "quote it as for a shell") from error
    if not words or "\0" in text:
        raise UsageError("bad-usage", "--signer-command names no program", "name it and its arguments in one text")
    return words


def sign_by_command(words: list[str], key: PublicKey, message: bytes, *, digest: bool, timeout_seconds: float) -> bytes:
    """Have a command sign `message`; 64 bytes r‖s that `key` verifies.

    Args:
        words: the program and its arguments.
        key: whose signature it must be.
        message: what is signed.
        digest: hand over the SHA-256 of the message, 32 bytes, for what signs digests only.
        timeout_seconds: what the command may take, whoever it asks meanwhile.

    Raises:
        HostError: `signer-failed`.
    """
    printed = _run(words, sha256(message).digest() if digest else message, timeout_seconds)
    for candidate in _signatures(printed):
        if key.verifies(message, candidate):
            return candidate
    if not printed:
        raise _failed(words, "printed no signature")
    hint = "it must sign the SHA-256 of what it gets" if not digest else "it must sign the very 32 bytes that it gets"
    raise _failed(words, f"printed {len(printed)} bytes that are no signature by {key.kid}", hint)


def _signatures(printed: bytes) -> Iterator[bytes]:
    """All that the printed bytes may mean; which of it is right, the verification tells."""
    readings = [printed]
    try:
        readings.append(b64decode(b"".join(printed.split()), validate=True))
    except ValueError:
        pass
    for reading in readings:
        if len(reading) == 2 * SCALAR_BYTES:
            yield reading
        try:
            yield raw_signature(reading)
        except ValueError:
            continue


def _run(words: list[str], data: bytes, timeout_seconds: float) -> bytes:
    # A file and no pipe: the command may print before it has read, and nobody waits for anybody.
    with open(os.memfd_create("bcd-to-be-signed"), "w+b") as given:
        given.write(data)
        given.seek(0)
        try:
            process = subprocess.Popen(words, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # noqa: S603  # the caller's own command
        except (OSError, ValueError) as error:
            said = getattr(error, "strerror", None) or "no name of a program"
            raise _failed(words, f"could not be started: {said}", "name a program that is there") from error
    try:
        printed, said = _read(process, words, time.monotonic() + timeout_seconds, timeout_seconds)
    finally:
        process.kill()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        status = process.wait()
    if status:
        told = f": …{clean(said[-_SAID:])}" if len(said) > _SAID else f": {clean(said)}" if said else ""
        raise _failed(words, f"ended with status {status}{told}", "try it by hand: `--signer-command` in the documents")
    return printed


def _read(process: "subprocess.Popen[bytes]", words: list[str], until: float, seconds: float) -> tuple[bytes, str]:
    """What the command prints and says until it has ended; both bounded."""
    taken: dict[str, bytes] = {"stdout": b"", "stderr": b""}
    with selectors.DefaultSelector() as selector:
        _watch(selector, process.stdout, "stdout")
        _watch(selector, process.stderr, "stderr")
        while selector.get_map():
            left = until - time.monotonic()
            # Asked each time: one that never stops talking always has something ready.
            if left <= 0:
                raise _late(words, seconds)
            for key, _ in selector.select(left):
                chunk = os.read(key.fd, 65_536)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.data == "stderr":
                    taken["stderr"] = (taken["stderr"] + chunk)[-_PRINTED_LIMIT_BYTES:]
                else:
                    taken["stdout"] += chunk
            if len(taken["stdout"]) > _PRINTED_LIMIT_BYTES:
                raise _failed(words, f"printed more than {_PRINTED_LIMIT_BYTES} bytes, which is no signature")
    try:
        process.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        raise _late(words, seconds) from error
    return taken["stdout"], taken["stderr"].decode("utf-8", "replace").strip()[-2 * _SAID :]


def _watch(selector: selectors.BaseSelector, stream: IO[bytes] | None, name: str) -> None:
    if stream is not None:
        selector.register(stream, selectors.EVENT_READ, name)


def _late(words: list[str], seconds: float) -> HostError:
    return _failed(
        words, f"did not end within {seconds:g} s and was killed", "a longer --timeout, where a person is asked"
    )


def _failed(words: list[str], what: str, hint: str = "it must print one signature and nothing else") -> HostError:
    return HostError("signer-failed", f"the signer command {words[0]} {what}; nothing was written", hint)
