"""`bcd release keygen`: a key in two new files, and nothing of it anywhere else."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from bcd.core import durable
from bcd.core.config import is_pin, parse_config
from bcd.core.durable import write_all
from bcd.release.keyfile import read_private_key, read_public_key
from bcd.release.keys import ReleaseKey, load_private_key
from tests.commands.publishing import PASSPHRASE, Desk
from tests.commands.running import Done, acting_on_a_terminal

Call = Callable[..., Done]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def keygen(call: Call, desk: Desk, kid: str = "dora", *more: str) -> Done:
    return call(
        "release", "keygen", "--directory", str(desk.home), "--passphrase-file", str(desk.passphrase), *more, kid
    )


def test_a_new_key_is_its_owners_alone_and_opens_with_its_passphrase(call: Call, desk: Desk) -> None:
    """Whatever the umask; kid and pin are printed, and the line for the configuration is one that nodes take."""
    before = os.umask(0)
    try:
        done = keygen(call, desk)
    finally:
        os.umask(before)
    assert (done.status, done.stderr) == (0, "")
    private, public = desk.home / "dora.key", desk.home / "dora.pub"
    assert (private.stat().st_mode & 0o777, public.stat().st_mode & 0o777) == (0o600, 0o644)
    key = ReleaseKey(
        kid="dora", private=load_private_key("dora.key", read_private_key(str(private)), PASSPHRASE.encode())
    )
    assert read_public_key(str(public)).spki == key.spki
    assert re.search(r"^kid +dora$", done.stdout, re.MULTILINE)
    assert is_pin(key.pin)
    section = done.stdout[done.stdout.index("[update]") :]
    assert parse_config(section.encode(), "config.toml").update.release_pins == (key.pin,)


def test_openssl_opens_the_key_and_finds_scrypt_in_it(call: Call, desk: Desk) -> None:
    """PBES2 with scrypt: another tool reads it without an option, and no guess costs less than 16 MiB."""
    keygen(call, desk)
    read = ["openssl", "pkey", "-in", "dora.key", "-passin", f"file:{desk.passphrase}", "-pubout"]
    assert subprocess.run(read, cwd=desk.home, capture_output=True).stdout == (desk.home / "dora.pub").read_bytes()
    parsed = subprocess.run(
        ["openssl", "asn1parse", "-in", "dora.key"], cwd=desk.home, capture_output=True, text=True
    ).stdout
    assert [word for word in ("PBES2", "scrypt", "aes-256-cbc", ":4000", ":08", ":05") if word not in parsed] == []


@pytest.mark.parametrize("name", ["dora.key", "dora.pub"])
@pytest.mark.parametrize("kind", ["file", "link", "dangling", "directory"])
def test_nothing_is_written_over_and_nothing_through_a_link(name: str, kind: str, call: Call, desk: Desk) -> None:
    place = desk.home / name
    if kind == "file":
        place.write_text("old")
    elif kind == "directory":
        place.mkdir()
    else:
        place.symlink_to(desk.passphrase if kind == "link" else desk.home / "elsewhere")
    before = desk.snapshot()
    done = keygen(call, desk)
    assert (done.status, done.code, done.stdout) == (2, "file-exists", "")
    assert desk.snapshot() == before


@pytest.mark.parametrize("name", ["dora.key", "dora.pub"])
def test_one_who_comes_between_the_look_and_the_writing_loses_nothing(
    name: str, call: Call, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file appears after the first check: it is kept, and no half of a pair stays."""
    (desk.home / name).write_text("theirs")
    before = desk.snapshot()
    monkeypatch.setattr("bcd.commands.release_keygen.require_free", lambda *_: None)
    assert (keygen(call, desk).code, desk.snapshot()) == ("file-exists", before)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_full_disk_leaves_no_half_of_a_key(
    number: int, call: Call, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever write or fsync fails."""
    before, calls = desk.snapshot(), iter(range(1, 10))

    def failing(real: Callable[..., None]) -> Callable[..., None]:
        def call_or_fail(*args: object) -> None:
            if next(calls) == number:
                raise OSError(28, "No space left on device")
            real(*args)

        return call_or_fail

    monkeypatch.setattr(durable, "write_all", failing(write_all))
    monkeypatch.setattr(os, "fsync", failing(os.fsync))
    done = keygen(call, desk)
    assert (done.status, done.code) == (1, "no-space")
    assert desk.snapshot() == before


@pytest.mark.parametrize("kid", ["", "a b", "../x", "a/b", "x" * 65, "\x1b[2J", "é"], ids=ascii)
def test_a_kid_is_no_path_and_nothing_that_acts_on_a_terminal(kid: str, call: Call, desk: Desk) -> None:
    before = desk.snapshot()
    done = keygen(call, desk, kid)
    assert (done.status, done.code) == (2, "bad-key")
    assert acting_on_a_terminal(done.stderr) == []
    assert desk.snapshot() == before


@pytest.mark.parametrize(
    ("content", "mode", "code"),
    [
        (b"", 0o600, "bad-passphrase"),
        (b"\n", 0o600, "bad-passphrase"),
        (b"short\n", 0o600, "bad-passphrase"),
        (b"two lines\nof words\n", 0o600, "bad-passphrase"),
        (b"has a NUL\0 within\n", 0o600, "bad-passphrase"),
        (b"x" * 2_000, 0o600, "bad-passphrase"),
        (b"a secret that others read\n", 0o644, "exposed-secret"),
        (b"a secret that a group reads\n", 0o640, "exposed-secret"),
    ],
    ids=ascii,
)
def test_a_passphrase_that_protects_nothing_is_refused_unsaid(
    content: bytes, mode: int, code: str, call: Call, desk: Desk
) -> None:
    desk.write("passphrase", content, mode)
    before = desk.snapshot()
    done = keygen(call, desk)
    assert (done.status, done.code) == (2, code)
    assert "secret" not in done.stderr.replace("exposed-secret", "")
    assert desk.snapshot() == before


def test_a_passphrase_comes_by_an_open_descriptor_too(call: Call, desk: Desk) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"correct horse battery staple\n")
    os.close(writing)
    try:
        done = call(
            "release", "keygen", "dora", "--directory", str(desk.home), "--passphrase-file", f"/dev/fd/{reading}"
        )
    finally:
        os.close(reading)
    assert done.status == 0
    load_private_key("dora.key", read_private_key(str(desk.home / "dora.key")), PASSPHRASE.encode())


def test_without_a_terminal_and_without_a_file_it_says_what_to_do(
    call: Call, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bcd.commands.terminal.TERMINAL", str(desk.home / "no-tty"))
    before = desk.snapshot()
    done = call("release", "keygen", "dora", "--directory", str(desk.home))
    assert (done.status, done.code) == (2, "no-terminal")
    assert "--passphrase-file" in done.hint
    assert desk.snapshot() == before
