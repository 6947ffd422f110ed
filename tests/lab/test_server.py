"""The release server is a proper one where it is not told to be another."""

import ssl
from collections.abc import Iterator
from http.client import HTTPSConnection, IncompleteRead

import pytest

from bcd.lab.pki import Authority
from bcd.lab.server import ReleaseServer
from bcd.lab.spoiling import SOUND, Spoiling

BODY = bytes(range(256)) * 400
PATH = "/file"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def server(authority: Authority) -> Iterator[ReleaseServer]:
    made = ReleaseServer(authority.server_context())
    made.publish(PATH, BODY)
    yield made
    made.close()


@pytest.fixture
def connection(authority: Authority, server: ReleaseServer) -> Iterator[HTTPSConnection]:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    made = HTTPSConnection(server.url.removeprefix("https://"), context=context, timeout=10)
    yield made
    made.close()


def get(connection: HTTPSConnection, **headers: str) -> tuple[int, bytes, str | None, str | None]:
    connection.request("GET", PATH, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    return answer.status, answer.read(), answer.headers["Content-Range"], answer.headers["ETag"]


def test_a_range_is_answered_with_the_range(connection: HTTPSConnection) -> None:
    size = len(BODY)
    assert get(connection, Range="bytes=1000-")[:3] == (206, BODY[1000:], f"bytes 1000-{size - 1}/{size}")
    assert get(connection, Range="bytes=0-9")[:3] == (206, BODY[:10], f"bytes 0-9/{size}")


def test_a_range_past_the_end_is_416(connection: HTTPSConnection) -> None:
    assert get(connection, Range=f"bytes={len(BODY)}-")[:3] == (416, b"", f"bytes */{len(BODY)}")


def test_if_range_with_another_tag_gets_all_of_it(connection: HTTPSConnection) -> None:
    tag = get(connection)[3]
    assert tag is not None
    assert get(connection, Range="bytes=5-", If_Range=tag)[0] == 206
    assert get(connection, Range="bytes=5-", If_Range='"another"')[:2] == (200, BODY)


def test_what_is_not_there_is_404(connection: HTTPSConnection) -> None:
    connection.request("GET", "/nothing")
    assert connection.getresponse().status == 404


def test_a_cut_answer_ends_early_so_many_times(server: ReleaseServer, connection: HTTPSConnection) -> None:
    server.spoil(PATH, Spoiling(cut_after=5000, answers=1))
    with pytest.raises(IncompleteRead) as cut:
        get(connection)
    assert cut.value.partial == BODY[:5000]
    connection.close()
    assert get(connection)[:2] == (200, BODY)


def test_surplus_bytes_are_sent_until_it_is_mended(server: ReleaseServer, connection: HTTPSConnection) -> None:
    server.spoil(PATH, Spoiling(surplus=b"\n"))
    assert get(connection)[1] == BODY + b"\n"
    assert get(connection, Range="bytes=5-")[1] == BODY[5:] + b"\n"
    server.spoil(PATH, SOUND)
    assert get(connection)[1] == BODY


def test_a_stalled_answer_is_silent_until_the_peer_goes(server: ReleaseServer, connection: HTTPSConnection) -> None:
    server.spoil(PATH, Spoiling(stall_after=100))
    connection.request("GET", PATH)
    answer = connection.getresponse()
    assert answer.read(100) == BODY[:100]
    assert connection.sock is not None
    connection.sock.settimeout(0.5)
    with pytest.raises(TimeoutError):
        answer.read(1)


def test_every_request_is_on_record(server: ReleaseServer, connection: HTTPSConnection) -> None:
    get(connection)
    get(connection, Range="bytes=10-19")
    server.spoil(PATH, Spoiling(status=503))
    get(connection)
    # A request is recorded when its answer has ended, which the peer may see a moment earlier.
    connection.request("GET", "/nothing")
    connection.getresponse().read()
    seen = [(request.range, request.status, request.sent) for request in server.requests(PATH)]
    assert seen == [(None, 200, len(BODY)), ("bytes=10-19", 206, 10), (None, 503, 0)]
