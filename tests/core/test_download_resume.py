"""A download that broke off goes on where it was, or starts over: never from anywhere else (field report 16)."""

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bcd.core import steps
from bcd.core.download import DownloadFailed
from bcd.core.errors import HostError
from tests.core.release_server import (
    PATH,
    RELEASE,
    VERSION,
    Fault,
    ReleaseServer,
    World,
    answering,
    at_most,
    chunked,
    cut_after,
    redirecting,
    world_in,
)

SIZE = len(RELEASE)
HELD = 40_000
REST = RELEASE[HELD:]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A world whose first download broke off after `HELD` bytes."""
    with world_in(tmp_path) as made:
        break_off(made)
        yield made


def break_off(world: World, at: int = HELD, mark: str = '"v1"') -> None:
    """Let a download break off after `at` bytes."""
    world.server.script = [cut_after(at, mark=mark)]
    with pytest.raises(DownloadFailed):
        world.fetch()
    assert world.part.read_bytes() == RELEASE[:at]
    world.server.requests.clear()


def partial_content(content_range: str, *headers: str, body: bytes = REST) -> Fault:
    """Answer 206 with this range."""
    return answering(206, f"Content-Range: {content_range}", *headers, body=body)


def test_only_the_remaining_bytes_are_asked_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """With If-Range, and the file is exact."""
    reached: list[str] = []
    monkeypatch.setattr(steps, "reached", reached.append)
    world.fetch()
    assert world.final.read_bytes() == RELEASE
    assert world.asked() == [f"bytes={HELD}-"]
    assert world.server.requests[0].headers["if-range"] == '"v1"'
    assert world.on_disk == {f"bcd-{VERSION}": SIZE}
    assert reached == ["download-started", "downloaded"]
    assert world.told[-1][:2] == (SIZE, SIZE)


@given(cuts=st.lists(st.integers(0, SIZE), max_size=5))
@settings(max_examples=15, deadline=None)
def test_wherever_it_is_cut_it_ends_in_the_exact_file(cuts: list[int]) -> None:
    """Each try asks for exactly what is missing, and none fails for ever."""
    with tempfile.TemporaryDirectory() as directory, world_in(Path(directory)) as world:
        held, expected = 0, []
        for cut in cuts:
            if held + cut >= SIZE:
                break
            expected.append(f"bytes={held}-" if held else "")
            held += cut
            world.server.script = [cut_after(cut)]
            with pytest.raises(DownloadFailed):
                world.fetch()
            assert world.on_disk.get(world.part.name, 0) == held
        world.fetch()
        assert world.final.read_bytes() == RELEASE
        assert world.asked() == [*expected, f"bytes={held}-" if held else ""]


def test_a_whole_body_in_answer_to_a_resume_is_taken_from_its_start(world: World) -> None:
    """A full 200 is never appended."""
    world.server.mark = '"v2"'
    world.fetch()
    assert world.final.read_bytes() == RELEASE
    assert world.asked() == [f"bytes={HELD}-"]


@pytest.mark.parametrize(
    "fault",
    [
        partial_content(f"bytes 0-{SIZE - 1}/{SIZE}", body=RELEASE),
        partial_content(f"bytes {HELD - 1}-{SIZE - 1}/{SIZE}"),
        partial_content(f"bytes {HELD + 1}-{SIZE - 1}/{SIZE}"),
        partial_content(f"bytes {HELD}-{HELD + 9}/{SIZE}", body=REST[:10]),
        partial_content(f"bytes {HELD}-{SIZE - 2}/{SIZE}", body=REST[:-1]),
        partial_content(f"bytes {HELD}-{SIZE - 1}/{SIZE + 1}"),
        partial_content(f"bytes {HELD}-{SIZE}/{SIZE + 1}"),
        partial_content(f"bytes {HELD}-{SIZE - 1}/*"),
        partial_content(f"bytes {HELD}-{SIZE - 1}/{SIZE}", f"Content-Length: {SIZE - HELD + 1}"),
        partial_content("bytes many"),
        answering(206, "Content-Type: multipart/byteranges; boundary=x", body=b"--x\r\n\r\n"),
        answering(416, f"Content-Range: bytes */{SIZE}", "Content-Length: 0"),
        answering(416),
    ],
    ids=[
        "from-the-start",
        "one-before",
        "one-after",
        "much-shorter",
        "one-shorter",
        "other-total",
        "one-longer",
        "unknown-total",
        "other-length",
        "no-range",
        "multipart",
        "416",
        "416-bare",
    ],
)
def test_any_other_answer_to_a_range_starts_over_at_once(world: World, fault: Fault) -> None:
    """The partial file is dropped, and the whole asked for once."""
    world.server.script = [fault]
    world.fetch()
    assert world.final.read_bytes() == RELEASE
    assert world.asked() == [f"bytes={HELD}-", ""]


@pytest.mark.parametrize("status", [206, 416])
def test_a_server_that_never_gives_the_whole_is_asked_twice_at_most(world: World, status: int) -> None:
    """Then it is an error, with nothing of the old file left."""
    world.server.script = [answering(status, "Content-Length: 0")] * 9
    with pytest.raises(DownloadFailed, match=f"answered {status}"):
        world.fetch()
    assert len(world.server.requests) == 2
    assert world.on_disk == {}


@pytest.mark.parametrize("body", [REST[::-1], REST[:-1] + b"x"])
def test_a_rest_of_another_file_is_not_retried_for_ever(world: World, body: bytes) -> None:
    """The wrong digest takes the poisoned partial with it; the next try is whole and good."""
    world.server.script = [partial_content(f"bytes {HELD}-{SIZE - 1}/{SIZE}", body=body)]
    with pytest.raises(DownloadFailed, match="SHA-256"):
        world.fetch()
    assert world.on_disk == {}
    world.fetch()
    assert world.asked() == [f"bytes={HELD}-", ""]


def test_a_rest_that_is_too_long_leaves_nothing(world: World) -> None:
    """Also without a length."""
    world.server.script = [partial_content(f"bytes {HELD}-{SIZE - 1}/{SIZE}", body=REST + b"x")]
    with pytest.raises(DownloadFailed, match="longer than"):
        world.fetch()
    assert world.on_disk == {}


def test_a_rest_that_breaks_off_again_is_kept(world: World) -> None:
    """Each try adds to it."""
    world.server.script = [cut_after(10_000)]
    with pytest.raises(DownloadFailed, match=f"10000 bytes moved .* {HELD + 10_000} of {SIZE} are kept"):
        world.fetch()
    assert world.part.read_bytes() == RELEASE[: HELD + 10_000]
    world.fetch()
    assert world.asked() == [f"bytes={HELD}-", f"bytes={HELD + 10_000}-"]


@pytest.mark.parametrize(
    "fault",
    [answering(503), answering(200, "Content-Length: 33", body=b"x" * 33), redirecting("http://localhost/")],
    ids=["busy", "portal", "bad-redirect"],
)
def test_an_answer_that_is_no_body_of_it_keeps_the_partial_file(world: World, fault: Fault) -> None:
    """A passing fault of the server costs no byte."""
    world.server.script = [fault]
    with pytest.raises(DownloadFailed):
        world.fetch()
    assert world.part.read_bytes() == RELEASE[:HELD]
    world.fetch()
    assert world.asked() == [f"bytes={HELD}-", f"bytes={HELD}-"]


def test_a_chunked_body_that_ends_early_by_its_own_word_is_dropped(world: World) -> None:
    """It is another file, not a cut one; one without its last chunk is a cut one."""
    world.server.script = [chunked(RELEASE[:20_000], end=b"")]
    with pytest.raises(DownloadFailed, match="broke off"):
        world.fetch()
    assert world.on_disk == {world.part.name: 20_000}
    world.server.script = [chunked(RELEASE[:20_000])]
    with pytest.raises(DownloadFailed, match=f"ended after 20000 of {SIZE}"):
        world.fetch()
    assert world.on_disk == {}


def test_a_date_serves_where_the_etag_is_weak(tmp_path: Path) -> None:
    """A weak ETag names files that only mean the same."""
    date = "Wed, 21 Oct 2015 07:28:00 GMT"
    with world_in(tmp_path) as world:
        cut = f"Content-Length: {SIZE}", 'ETag: W/"v1"', f"Last-Modified: {date}"
        world.server.script = [answering(200, *cut, body=RELEASE[:HELD])]
        with pytest.raises(DownloadFailed):
            world.fetch()
        world.server.mark = date
        world.fetch()
        assert world.server.requests[1].headers["if-range"] == date
        assert world.asked() == ["", f"bytes={HELD}-"]


@pytest.mark.parametrize("mark", ['W/"v1"', "v1", '"v1\x01"', '"' + "v" * 300 + '"', ""])
def test_a_file_that_cannot_be_asked_for_again_starts_over(tmp_path: Path, mark: str) -> None:
    """Without a usable mark of the server's there is no safe resume."""
    with world_in(tmp_path) as world:
        break_off(world, mark=mark)
        assert not world.note.exists()
        world.fetch()
        assert world.asked() == [""]


def changed(world: World, **fields: object) -> bytes:
    """The note with other fields."""
    return json.dumps(json.loads(world.note.read_bytes()) | fields).encode()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda world: world.note.unlink(),
        lambda world: world.note.write_bytes(b""),
        lambda world: world.note.write_bytes(bytes(200)),
        lambda world: world.note.write_bytes(b'{"url":'),
        lambda world: world.note.write_bytes(b"\xff\xfe"),
        lambda world: world.note.write_bytes(b"[" * 100_000),
        lambda world: world.note.write_bytes(b'"' + b"x" * 1_000_000),
        lambda world: world.note.write_bytes(changed(world, url=world.server.url("/other"))),
        lambda world: world.note.write_bytes(changed(world, sha256="0" * 64)),
        lambda world: world.note.write_bytes(changed(world, mark='"v1"\r\nX-Evil: 1')),
        lambda world: world.note.write_bytes(changed(world, mark=1)),
    ],
    ids=["none", "empty", "nuls", "half", "no-utf8", "deep", "huge", "other-url", "other-digest", "header", "number"],
)
def test_a_note_that_cannot_be_used_starts_over(world: World, spoil: Callable[[World], object]) -> None:
    """Nothing in it is guessed at, and nothing of it reaches a header."""
    spoil(world)
    world.fetch()
    assert world.final.read_bytes() == RELEASE
    assert world.asked() == [""]
    assert world.on_disk == {f"bcd-{VERSION}": SIZE}


def test_a_note_alone_is_worth_nothing(world: World) -> None:
    """It does not speak for a later file."""
    world.part.unlink()
    world.fetch()
    assert world.asked() == [""]


def test_a_full_partial_file_is_only_checked(world: World) -> None:
    """No request, with or without a note."""
    world.note.unlink()
    world.part.write_bytes(RELEASE)
    world.fetch()
    assert world.final.read_bytes() == RELEASE
    assert world.server.requests == []


@pytest.mark.parametrize("content", [b"", RELEASE[::-1], RELEASE + b"x", bytes(SIZE)])
def test_a_partial_file_that_is_none_of_it_starts_over(world: World, content: bytes) -> None:
    """Zero bytes, the right size with wrong bytes, too long (field report 14)."""
    world.part.write_bytes(content)
    world.fetch()
    assert world.final.read_bytes() == RELEASE
    assert world.asked() == [""]


def test_a_partial_file_with_spoilt_bytes_costs_one_failure(world: World) -> None:
    """Power failed before its blocks were on the disk, say."""
    world.part.write_bytes(bytes(HELD))
    with pytest.raises(DownloadFailed, match="SHA-256"):
        world.fetch()
    assert world.on_disk == {}
    world.fetch()
    assert world.final.read_bytes() == RELEASE


def test_a_resume_is_asked_of_each_hop(world: World) -> None:
    """The range goes along with a redirect."""
    with ReleaseServer(world.authority.issue_cert("localhost")) as other:
        other.files[PATH] = RELEASE
        world.server.script = [redirecting(other.url())]
        world.fetch()
        assert other.requests[0].headers["range"] == f"bytes={HELD}-"
    assert world.final.read_bytes() == RELEASE


def test_a_full_disk_leaves_nothing_of_a_resume(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was kept from before goes too: the next try needs the room (field report 29)."""
    real = os.write

    def full(handle: int, data: bytes) -> int:
        if len(data) > 1000:
            raise OSError(28, os.strerror(28))
        return real(handle, data)

    monkeypatch.setattr(os, "write", full)
    with at_most(5), pytest.raises(HostError, match=f"need {SIZE} bytes on ") as caught:
        world.fetch()
    assert caught.value.code == "no-space"
    assert world.on_disk == {}
