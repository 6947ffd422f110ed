"""An unfinished download: `bcd-<version>.part`, and the note beside it that says what it is part of.

Guarantees: `held` bytes are on the disk (not yet durably) and in the running hash, always the same ones; only `publish`
gives the final name, and only to exactly the wanted bytes. A partial file is worth resuming only with a note of the
same URL and digest, and with the server's own mark of the file (a strong ETag, or its date) to ask with; a crash that
parts the two costs a fresh start, never a wrong file. The name says it: these bytes are unverified.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec

from bcd.core.durable import write_all
from bcd.core.errors import HostError
from bcd.core.space import no_room
from bcd.core.staging import Staging, file_name, part_name
from bcd.core.watch import Broken, Watch

_READ_BYTES = 256 * 1024
_NOTE_BYTES = 8 * 1024
# A weak ETag names files that only mean the same; and whatever is sent back in a header must be spelled like one.
_MARK = re.compile(r'"[\x21\x23-\x7e]{1,200}"|[A-Za-z0-9 ,:]{1,40} GMT')


class _Note(msgspec.Struct):
    url: str
    sha256: str
    mark: str


def hash_file(handle: int, watch: Watch) -> "tuple[hashlib._Hash, int]":
    """Hash an open file from its start, in flat memory.

    Returns:
        The running hash, and how many bytes went in.

    Raises:
        Broken: the watch was called off meanwhile.
        OSError: it could not be read.
    """
    running, size = hashlib.sha256(), 0
    while data := os.pread(handle, _READ_BYTES, size):
        watch.check()
        running.update(data)
        size += len(data)
    return running, size


class Partial:
    """The partial file of one wanted release. Close it at the end, however it ended.

    Args:
        place: the open staging directory.
        version: a checked version, which names the files.
        url: where the release is fetched from.
        sha256: the wanted digest, 64 lower-case hex digits.
        size: the wanted size in bytes.
    """

    def __init__(self, place: Staging, version: str, url: str, sha256: str, size: int) -> None:
        self.held = 0
        """Bytes in the file, all of them hashed."""
        self.size = size
        self._place = place
        self._final = file_name(version)
        self._name = part_name(version)
        self._note_name = f"{self._name}.meta"
        self._url = url
        self._sha256 = sha256
        self._mark = ""
        self._hash = hashlib.sha256()
        self._handle: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether these are exactly the wanted bytes."""
        return self.held == self.size and self._hash.hexdigest() == self._sha256

    def resume(self, watch: Watch) -> None:
        """Take up what an earlier try left, if it can be of use; else remove it.

        Raises:
            Broken: the watch was called off while hashing; the file stays.
            HostError: `io-error`, what lies there could not be removed.
        """
        self._handle = self._place.take(self._name)
        self._mark = self._read_note()
        left = 0 if self._handle is None else os.fstat(self._handle).st_size
        if self._handle is None or not (left == self.size or (self._mark and 0 < left < self.size)):
            self.drop()
            return
        try:
            self._hash, self.held = hash_file(self._handle, watch)
            os.lseek(self._handle, self.held, os.SEEK_SET)
        except OSError:  # a bad block, say: other ones may hold the next try
            self.drop()
        # A full file with wrong bytes, or one that was written to meanwhile: nothing to ask the server for.
        if self.held >= self.size and not self.is_whole:
            self.drop()

    def range_headers(self) -> dict[str, str]:
        """The headers that ask for the rest, if the file there is still the same; none to ask for the whole."""
        return {"Range": f"bytes={self.held}-", "If-Range": self._mark} if self.held else {}

    def restart(self, mark: str) -> None:
        """Begin anew with an empty file. `mark` is the server's ETag or date; one that can't be used is not kept.

        Raises:
            HostError: `no-space` or `io-error`, it could not be made.
        """
        self.drop()
        with self._room():
            self._handle = self._place.create(self._name)
            if _MARK.fullmatch(mark):
                note = self._place.create(self._note_name)
                try:
                    with self._place.told(self._note_name, "write"):
                        write_all(note, msgspec.json.encode(_Note(self._url, self._sha256, mark)))
                finally:
                    os.close(note)

    def write(self, data: bytes) -> None:
        """Append `data`.

        Raises:
            HostError: `no-space`, and nothing is left of the download (field report 29); `io-error`.
        """
        with self._room(), self._place.told(self._name, "write"):
            write_all(self._opened(), data)
        self._hash.update(data)
        self.held += len(data)

    def publish(self) -> None:
        """Give the file its final name, durably, if these are exactly the wanted bytes.

        Raises:
            Broken: they are not; they are removed, since asking for the rest of them would fail for ever.
            HostError: `no-space`, and nothing is left; `io-error`.
        """
        length, digest = os.fstat(self._opened()).st_size, self._hash.hexdigest()
        # The hash ran beside the writing; the length is the file's own word that these were the bytes.
        if not self.is_whole or length != self.size:
            self.drop()
            raise Broken(
                f"the file is another one than the manifest's: {length} bytes with SHA-256 {digest}, "
                f"not {self.size} with {self._sha256}",
                "the release server holds another file, or something on the way changed it",
            )
        with self._room():
            self._place.publish(self._opened(), self._name, self._final)
        self._place.remove(self._note_name)

    def drop(self) -> None:
        """Remove the partial file and its note, the note first: alone it could be taken for a later file's.

        Raises:
            HostError: `io-error`, something could not be removed.
        """
        self._close()
        self.held, self._mark, self._hash = 0, "", hashlib.sha256()
        self._place.remove(self._note_name)
        self._place.remove(self._name)

    def close(self) -> None:
        """Close the file; an empty one is removed."""
        if self._handle is not None and not self.held:
            with suppress(HostError):
                self.drop()
        self._close()

    def _close(self) -> None:
        if self._handle is not None:
            handle, self._handle = self._handle, None
            os.close(handle)

    def _opened(self) -> int:
        if self._handle is None:
            msg = "a partial file is begun before it is written"
            raise AssertionError(msg)
        return self._handle

    @contextmanager
    def _room(self) -> Iterator[None]:
        """On a full disk, remove what was written and say what the next try needs."""
        try:
            yield
        except HostError as error:
            if error.code != "no-space":
                raise
            with suppress(HostError):
                self.drop()
            raise no_room(self._place.path, self.size) from error

    def _read_note(self) -> str:
        """The server's mark from the note, or nothing where the note is not there, not ours or not of this file."""
        handle = self._place.take(self._note_name)
        if handle is None:
            return ""
        try:
            note = msgspec.json.decode(os.pread(handle, _NOTE_BYTES, 0), type=_Note)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return ""
        finally:
            os.close(handle)
        fits = (note.url, note.sha256) == (self._url, self._sha256)
        return note.mark if fits and _MARK.fullmatch(note.mark) else ""
