"""Fetching over real TLS: who is asked, who is believed, and what ends a transfer (spec/self-update.md section 11)."""

import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bcd.core import steps
from bcd.core.download import Downloader, Fetcher, Progress
from bcd.core.errors import BcdError, Refusal
from tests.core.release_server import (
    PATH,
    RELEASE,
    VERSION,
    Exchange,
    Fault,
    ReleaseServer,
    World,
    answering,
    at_most,
    chunked,
    cut_after,
    hanging_after,
    redirecting,
    world_in,
)

SIZE = len(RELEASE)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A downloader with a good server."""
    with world_in(tmp_path) as made:
        yield made


# A good transfer -----------------------------------------------------------------------------------------------------


def test_a_whole_file_lands_under_its_final_name_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is exact, nothing lies beside it, both steps were told in order, and progress ends at the whole."""
    reached: list[str] = []
    monkeypatch.setattr(steps, "reached", reached.append)
    assert world.fetch() == world.final
    assert world.final.read_bytes() == RELEASE
    assert world.on_disk == {f"bcd-{VERSION}": SIZE}
    assert reached == ["download-started", "downloaded"]
    assert world.told[-1][:2] == (SIZE, SIZE)
    assert all(one.rate >= 0 for one in world.told)


def test_a_finished_file_is_returned_without_a_request(world: World) -> None:
    """The second fetch asks nobody."""
    world.fetch()
    world.server.requests.clear()
    assert world.fetch() == world.final
    assert world.server.requests == []


@pytest.mark.parametrize("content", [b"", b"x", RELEASE[::-1], RELEASE + b"x"], ids=["empty", "short", "wrong", "long"])
def test_a_finished_file_with_wrong_bytes_is_replaced(world: World, content: bytes) -> None:
    """A name alone proves nothing (field report 14)."""
    world.staging.mkdir()
    world.final.write_bytes(content)
    world.fetch()
    assert world.final.read_bytes() == RELEASE


def test_a_finished_file_with_wrong_bytes_goes_even_when_the_new_one_does_not_come(world: World) -> None:
    """Nobody else may take it for the release."""
    world.staging.mkdir()
    world.final.write_bytes(RELEASE[::-1])
    world.server.script = [answering(503)]
    world.refused()
    assert world.on_disk == {}


def test_nothing_is_asked_to_be_compressed_nor_decompressed(world: World) -> None:
    """The bytes on the wire are the file, whatever the server calls them."""
    world.server.script = [answering(200, "Content-Encoding: gzip", f"Content-Length: {SIZE}", body=RELEASE)]
    world.fetch()
    assert world.server.requests[0].headers["accept-encoding"] == "identity"


def test_a_chunked_file_is_taken(world: World) -> None:
    """A server need not know the length."""
    world.server.script = [chunked(RELEASE)]
    assert world.fetch().read_bytes() == RELEASE


def test_a_file_that_ends_with_the_connection_is_taken(world: World) -> None:
    """Nor need the length be told at all."""
    world.server.script = [answering(200, body=RELEASE)]
    assert world.fetch().read_bytes() == RELEASE


def test_memory_stays_flat(world: World) -> None:
    """A file of 24 MiB takes less than 2 MiB."""
    content = bytes(24 * 1024 * 1024)
    world.server.files[PATH] = content
    wanted = world.wanted(content=content)
    tracemalloc.start()
    try:
        world.fetch(wanted)
        assert tracemalloc.get_traced_memory()[1] < 2 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_the_downloader_is_a_fetcher() -> None:
    """As the others see it; the type checker proves it."""
    fetcher: Fetcher = Downloader()
    assert callable(fetcher.fetch)


def test_a_display_that_fails_does_not_stop_the_download(world: World) -> None:
    """Progress is for looking at."""

    def broken(_: Progress) -> None:
        raise RuntimeError

    downloader = Downloader(ca_file=world.ca_file, environ={})
    downloader.fetch(world.wanted(), world.staging, progress=broken, cancelled=world.cancelled)
    assert world.final.read_bytes() == RELEASE


# Wrong bodies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, SIZE - 1, SIZE + 1, 10**18])
def test_another_length_is_refused_before_the_body(world: World, length: int) -> None:
    """Both numbers are said, and nothing is left."""
    world.server.script = [answering(200, f"Content-Length: {length}", body=b"x" * 100)]
    error = world.refused()
    assert f"{length} bytes" in error.message
    assert str(SIZE) in error.message
    assert world.on_disk == {}


@pytest.mark.parametrize(
    "fault", [chunked(RELEASE + b"x"), answering(200, body=RELEASE + b"x")], ids=["chunked", "eof"]
)
def test_one_byte_too_long_without_a_length_is_refused(world: World, fault: Fault) -> None:
    """Nothing is left of it."""
    world.server.script = [fault]
    assert "longer than" in world.refused().message
    assert world.on_disk == {}


def test_an_endless_body_is_read_no_further_than_its_size(world: World) -> None:
    """The disk takes the signed size at most."""

    def endless(exchange: Exchange) -> None:
        exchange.head(200)
        while True:
            exchange.send(bytes(65_536))

    world.server.script = [endless]
    with at_most(5):
        assert "longer than" in world.refused().message
    assert world.on_disk == {}


def test_a_wrong_digest_is_refused_and_nothing_of_it_kept(world: World) -> None:
    """Another file of the right size leaves no partial file that would be resumed for ever."""
    world.server.files[PATH] = RELEASE[::-1]
    assert "SHA-256" in world.refused().message
    assert world.on_disk == {}
    world.server.files[PATH] = RELEASE
    world.fetch()
    assert world.asked() == ["", ""]


def test_a_file_that_somebody_else_writes_to_is_not_published(world: World) -> None:
    """What was hashed is what the connection brought; the file's length shows that more happened to it."""

    def meddling(exchange: Exchange) -> None:
        exchange.head(200, f"Content-Length: {SIZE}")
        exchange.send(RELEASE[:-1])
        while world.on_disk.get(world.part.name, 0) < SIZE - 1:
            time.sleep(0.01)
        with world.part.open("ab") as part:
            part.write(b"xx")
        exchange.send(RELEASE[-1:])

    world.server.script = [meddling]
    assert "another one" in world.refused().message
    assert world.on_disk == {}


@pytest.mark.parametrize("length", [True, False], ids=["with-length", "chunked"])
def test_an_html_page_in_the_files_place_is_refused(world: World, *, length: bool) -> None:
    """A captive portal's 200 is no release (field report 17)."""
    page = b"<html>Welcome to the hotel</html>"
    world.server.script = [
        answering(200, "Content-Type: text/html", f"Content-Length: {len(page)}", body=page)
        if length
        else chunked(page)
    ]
    assert str(SIZE) in world.refused().message
    assert world.on_disk == {}


def test_a_body_that_breaks_off_is_kept_for_the_next_try(world: World) -> None:
    """The error says how much came, the partial file holds it, private to its owner."""
    world.server.script = [cut_after(40_000)]
    error = world.refused()
    assert "broke off" in error.message
    assert "40000 bytes moved" in error.message
    assert world.on_disk[world.part.name] == 40_000
    assert world.part.read_bytes() == RELEASE[:40_000]
    assert world.part.stat().st_mode & 0o777 == 0o600


# Statuses ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "headers", "after"),
    [
        (503, ["Retry-After: 120"], 120.0),
        (429, ["Retry-After: 0"], 0.0),
        (429, ["Retry-After: Wed, 21 Oct 2026 07:28:00 GMT"], None),
        (503, ["Retry-After: 999999"], None),
        (503, ["Retry-After: -1"], None),
        (404, [], None),
        (206, ["Content-Range: bytes 0-9/10"], None),
        (204, [], None),
        (304, [], None),
    ],
)
def test_a_status_that_is_no_file_is_said(world: World, status: int, headers: list[str], after: float | None) -> None:
    """Its number is in the sentence, a sane Retry-After beside it, and nothing is on the disk."""
    world.server.script = [answering(status, *headers, "Content-Length: 0")]
    error = world.refused()
    assert f"answered {status} As Scripted" in error.message
    assert error.retry_after == after
    assert world.on_disk == {}


def test_a_reason_full_of_control_characters_is_shown_escaped(world: World) -> None:
    """What a server says reaches no terminal raw (field report C06)."""
    world.server.script = [answering(500, "Content-Length: 0", reason="\x1b]52;c;aGk=\x07\x9b2J" + "A" * 5000)]
    message = world.refused().message
    assert message.isprintable()
    assert len(message) < 600


# Redirects -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_https_host_is_followed(world: World, status: int) -> None:
    """Its body is judged like any other."""
    with ReleaseServer(world.authority.issue_cert("127.0.0.1"), host="127.0.0.1") as other:
        other.files["/deep/bcd"] = RELEASE
        world.server.script = [redirecting(other.url("/deep/bcd?token=x#part"), status)]
        world.fetch()
        assert other.requests[0].line == "GET /deep/bcd?token=x HTTP/1.1"
    assert world.final.read_bytes() == RELEASE


def test_a_relative_redirect_is_followed(world: World) -> None:
    """It is taken from where the answer came from."""
    world.server.script = [redirecting("/elsewhere/../bcd")]
    assert world.fetch().read_bytes() == RELEASE


def test_five_redirects_are_followed_and_a_loop_is_not(world: World) -> None:
    """The sixth names where it would have gone, and nobody asked thirty times."""
    world.server.script = [redirecting(PATH)] * 5
    world.fetch()
    world.final.unlink()
    world.server.requests.clear()
    world.server.script = [redirecting(PATH)] * 30
    error = world.refused()
    assert "more than 5 redirects" in error.message
    assert "redirect 6" in error.message
    assert len(world.server.requests) == 6
    assert world.on_disk == {}


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("http://127.0.0.1:1/bcd", "http://127.0.0.1:1/bcd is http instead of https"),
        ("ftp://127.0.0.1/bcd", "ftp instead of https"),
        ("file:///etc/passwd", "file instead of https"),
        ("https://user:hunter2@127.0.0.1/bcd", "credentials"),
        ("//user:hunter2@127.0.0.1/bcd", "credentials"),
        ("https://[::1/bcd", "no URL"),
        ("https://127.0.0.1:99999/bcd", "no URL"),
        ("javascript:hunter2", "javascript instead of https"),
    ],
)
def test_a_redirect_to_anything_but_plain_https_is_refused(world: World, location: str, words: str) -> None:
    """The error names the hop, shows no password, and nobody else was asked (field report 17)."""
    world.server.script = [redirecting(PATH), redirecting(location)]
    error = world.refused()
    assert words in error.message
    assert "redirect" in error.message
    assert world.server.url() in error.message
    assert "hunter2" not in error.message
    assert world.on_disk == {}


def test_a_failure_behind_a_redirect_names_the_hop(world: World) -> None:
    """Whose fault it was can be told, and the redirect's query, a secret maybe, is not shown."""
    world.server.script = [redirecting("/away?token=hunter2")]
    error = world.refused()
    assert f"{world.server.url('/away')}?… (redirect 1 from {world.server.url()})" in error.message
    assert "404" in error.message
    assert "hunter2" not in error.message


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost/bcd",
        "ftp://localhost/bcd",
        "https://u:hunter2@localhost/bcd",
        "https://",
        "",
        "/bcd",
        "https://[",
    ],
)
def test_a_url_that_may_not_be_fetched_is_a_refusal(world: World, url: str) -> None:
    """Terminal, and not even a directory was made."""
    with pytest.raises(Refusal) as caught:
        world.fetch(world.wanted()._replace(url=url))
    assert caught.value.code == "bad-url"
    assert "hunter2" not in caught.value.message
    assert world.on_disk == {}


def test_clear_text_is_let_through_where_it_was_asked_for(world: World) -> None:
    """For development and the lab alone."""
    with ReleaseServer(None) as clear:
        clear.files[PATH] = RELEASE
        world.server.script = [redirecting(clear.url())]
        world.fetch(clear_text=True)
        assert len(clear.requests) == 1
    assert world.final.read_bytes() == RELEASE


# Slow, stalled and silent servers ------------------------------------------------------------------------------------


def dribbling_headers(exchange: Exchange) -> None:
    """Feed each single read, for ever."""
    exchange.dribble(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 10_000, each=1, every=0.05)


def endless_continue(exchange: Exchange) -> None:
    """Promise an answer, for ever."""
    exchange.dribble(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, each=25, every=0.01)


@pytest.mark.parametrize("fault", [Exchange.hang, dribbling_headers, endless_continue])
def test_a_server_that_never_ends_its_headers_is_given_up(world: World, fault: Fault) -> None:
    """However it feeds the single read (field report 15)."""
    world.server.script = [fault]
    with at_most(4):
        error = world.refused(idle_seconds=0.5)
    assert "no answer within 0.5 s" in error.message
    assert "0 bytes moved" in error.message
    assert world.on_disk == {}


@pytest.mark.parametrize("count", [0, 30_000])
def test_a_body_that_stalls_is_ended(world: World, count: int) -> None:
    """The error names bytes and rate, and what came is kept (field report 15)."""
    world.server.script = [hanging_after(count)]
    with at_most(4):
        error = world.refused(idle_seconds=0.5)
    assert "stalled" in error.message
    assert f"{count} bytes moved at " in error.message
    assert "bytes/s" in error.message
    assert world.on_disk.get(world.part.name, 0) == count


@pytest.mark.parametrize("length", [True, False], ids=["with-length", "to-the-end"])
def test_a_body_of_a_byte_now_and_then_is_ended(world: World, *, length: bool) -> None:
    """Each read gets something in time, and still it is too little; an end made by us is not taken for the body's."""

    def fault(exchange: Exchange) -> None:
        exchange.head(200, *([f"Content-Length: {SIZE}"] if length else []))
        exchange.dribble(RELEASE, each=1, every=0.03)

    world.server.script = [fault]
    with at_most(4):
        error = world.refused(idle_seconds=0.5)
    assert "stalled: less than 16384 bytes in 0.5 s" in error.message


def test_a_slow_but_live_transfer_completes(world: World) -> None:
    """It takes four windows, and no limit on the whole ends it (field report 15)."""
    content = RELEASE * 6

    def slow(exchange: Exchange) -> None:
        exchange.head(200, f"Content-Length: {len(content)}")
        exchange.dribble(content, each=16_384, every=0.05)

    world.server.script = [slow]
    began = time.monotonic()
    world.fetch(world.wanted(content=content), idle_seconds=0.4)
    took = time.monotonic() - began
    assert took > 1.6
    assert world.final.read_bytes() == content
    assert 2 <= len(world.told) <= took / 0.2 + 2
    assert [one.bytes_done for one in world.told] == sorted(one.bytes_done for one in world.told)


@given(garbage=st.binary(max_size=300) | st.binary(max_size=300).map(lambda tail: b"HTTP/1.1 200 OK\r\n" + tail))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_server_sends_only_our_errors_leave(world: World, garbage: bytes) -> None:
    """Random bytes in the answer's place never end in a foreign exception, nor in a file."""
    world.server.script = [lambda exchange: exchange.send(garbage)]
    with pytest.raises(BcdError) as caught:
        world.fetch(idle_seconds=1)
    assert caught.value.message.isprintable()
    assert not world.final.exists()


# Stopping ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [Exchange.hang, hanging_after(30_000)], ids=["waiting", "in-the-body"])
def test_a_download_that_is_called_off_ends_at_once(world: World, fault: Fault) -> None:
    """Also while it waits, and what came is kept for the next."""
    world.server.script = [fault]
    timer = threading.Timer(0.3, world.cancelled.set)
    timer.start()
    with at_most(2):
        error = world.refused(idle_seconds=20)
    timer.join()
    assert "the download was stopped" in error.message
    world.cancelled.clear()
    kept = world.on_disk.get(world.part.name, 0)
    world.fetch()
    assert world.asked()[1:] == ([f"bytes={kept}-"] if kept else [""])


def test_a_download_called_off_before_it_began_asks_nobody(world: World) -> None:
    """And keeps what an earlier one left."""
    world.server.script = [cut_after(10_000)]
    world.refused()
    world.cancelled.set()
    world.refused()
    assert len(world.server.requests) == 1
    assert world.on_disk[world.part.name] == 10_000
