"""The node's side: whoever answers wrong, late, never or in another protocol is told as an unreachable helper."""

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bcd.core.answers import Fetch, Prepared, Settled
from bcd.core.clock import ManualClock
from bcd.core.errors import BcdError, HostError, Refusal
from bcd.core.records import Failed
from bcd.core.settle import Outcome
from bcd.helper import wire
from bcd.helper.client import HelperManager, ask_info
from tests.core.node_root import NOW, Node
from tests.node.updating import PENDING

ROOT = os.geteuid()
INFO = {"protocol": 1, "version": "1.4.0", "ok": True, "result": {"running": "1.4.1"}}


@contextmanager
def answering(path: str, answer: Callable[[bytes], bytes | None], *, backlog: int = 8) -> Iterator[None]:
    """Somebody who listens at `path` and says that to each line; None: nothing, and keeps the line open."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(backlog)
        open_ones: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    one, _ = listening.accept()
                except OSError:
                    return
                open_ones.append(one)
                read = b""
                while not read.endswith(b"\n") and (chunk := one.recv(65536)):
                    read += chunk
                said = answer(read)
                if said is not None:
                    try:
                        one.sendall(said)
                    except OSError:
                        pass
                    one.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            for one in open_ones:
                one.close()
            thread.join(5)


def noted(to: list[bytes], line: bytes, answer: bytes) -> bytes:
    """Keep what was asked."""
    to.append(line)
    return answer


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where it listens."""
    return str(tmp_path / "s")


def unreachable(path: str, answer: object, seconds: float = 5.0) -> HostError:
    """What the node makes of an answer."""
    data = answer if isinstance(answer, bytes) or answer is None else json.dumps(answer).encode() + b"\n"
    with answering(path, lambda _: data), pytest.raises(HostError) as caught:
        ask_info(path, seconds, root_uid=ROOT)
    assert caught.value.code == "helper-unreachable"
    assert path in caught.value.message
    assert "systemctl restart bcd-helper.service" in caught.value.hint
    return caught.value


def test_who_answers_is_told(path: str) -> None:
    with answering(path, lambda _: json.dumps(INFO).encode() + b"\n"):
        assert ask_info(path, 5.0, root_uid=ROOT) == (1, "1.4.0", "1.4.1")


GARBAGE: dict[str, bytes] = {
    "nothing": b"",
    "half a line": b'{"protocol":1',
    "an empty line": b"\n",
    "no JSON": b"hello\n",
    "a list": b"[]\n",
    "no UTF-8": b"\xff\xfe\n",
    "900 levels": b"[" * 900 + b"]" * 900 + b"\n",
    "a lone surrogate": b'{"protocol":1,"ok":"\\ud800"}\n',
    "a number without end": b"9" * 5000 + b"\n",
    "no result": b'{"protocol":1,"version":"1","ok":true}\n',
    "a result that is a list": b'{"protocol":1,"version":"1","ok":true,"result":[]}\n',
    "no version": b'{"protocol":1,"ok":true,"result":{"running":"1"}}\n',
    "an error without a code": b'{"protocol":1,"ok":false,"message":"","hint":""}\n',
    "an error with a number": b'{"protocol":1,"ok":false,"code":7,"message":"","hint":""}\n',
    "an end and more": b"{}\n{}\n",
    "5 MiB": b" " * (5 * 1024 * 1024),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_an_answer_that_makes_no_sense_is_an_unreachable_helper(path: str, name: str) -> None:
    """Never a traceback, and never taken for an answer."""
    unreachable(path, GARBAGE[name])


@pytest.mark.parametrize(
    ("protocol", "says"),
    [(0, "older"), (2, "newer"), ("2\x1b[2J", "newer"), (None, "newer"), (True, "newer"), (1.0, "newer")],
)
def test_a_helper_of_another_protocol_is_told_as_older_or_newer(path: str, protocol: object, says: str) -> None:
    """With both numbers, cleaned."""
    error = unreachable(path, {**INFO, "protocol": protocol})
    assert f"it is {says} than the node" in error.message
    assert "\x1b" not in error.message


def test_a_peer_that_is_not_root_is_not_asked(path: str) -> None:
    """It would tell the node what to restart into."""
    heard: list[bytes] = []
    with (
        answering(path, lambda line: noted(heard, line, b"{}\n")),
        pytest.raises(HostError, match="listens there, not root"),
    ):
        ask_info(path, 5.0, root_uid=ROOT + 1)
    assert heard in ([], [b""])


def test_one_that_never_answers_is_given_up_in_time(path: str) -> None:
    began = time.monotonic()
    assert "did not answer in time" in unreachable(path, None, 0.2).message
    assert time.monotonic() - began < 2


def test_none_at_all_and_a_file_in_its_place_are_told(path: str) -> None:
    with pytest.raises(HostError, match="No such file"):
        ask_info(path, 1.0, root_uid=ROOT)
    Path(path).touch()
    with pytest.raises(HostError, match="refused"):
        ask_info(path, 1.0, root_uid=ROOT)


def test_a_queue_that_is_full_is_waited_for(path: str) -> None:
    """By somebody's flood, for a moment; then it is told as late."""
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as other:
        listening.bind(path)
        listening.listen(0)
        other.connect(path)
        began = time.monotonic()
        with pytest.raises(HostError, match="did not answer in time"):
            ask_info(path, 0.3, root_uid=ROOT)
        assert time.monotonic() - began >= 0.3


# The manager's interface ----------------------------------------------------------------------------------------------


@pytest.fixture
def manager(tmp_path: Path, path: str) -> HelperManager:
    """The node's side of a node whose disk is here."""
    node = Node(tmp_path / "node", helper=True)
    build = node.manager()._build
    return HelperManager(config=node.config, build=build, clock=ManualClock(NOW), socket_path=path, root_uid=ROOT)


def said(result: object) -> Callable[[bytes], bytes]:
    return lambda _: wire.dump_line(wire.good_answer("1.4.0", result))


FETCH = Fetch(version="1.1.0", sequence=11, url="https://a\x1b", sha256="0" * 64, size=1000)
FAILED = Failed("1.1.0", 11, "it was not welcomed", 5)


@pytest.mark.parametrize(
    "prepared", [None, Prepared(version="1.1.0", fetch=None), Prepared(version="1.1.0", fetch=FETCH)]
)
def test_what_was_prepared_comes_over_as_it_was(manager: HelperManager, path: str, prepared: Prepared | None) -> None:
    with answering(path, said(wire.prepared_json(prepared))):
        assert manager.prepare({}, server_time=None) == prepared


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.SETTLED])
def test_what_was_settled_comes_over_as_it_was(manager: HelperManager, path: str, outcome: Outcome) -> None:
    stayed = HostError("io-error", "the old slot is gone", "install bcd")
    settled = Settled(outcome=outcome, pending=PENDING, failed=FAILED, restart=True, stayed=stayed)
    with answering(path, said(wire.settled_json(settled))):
        found = manager.settle()
    assert (found.outcome, found.pending, found.failed, found.restart) == (outcome, PENDING, FAILED, True)
    assert found.stayed is not None
    assert (found.stayed.code, found.stayed.message, found.stayed.hint) == (stayed.code, stayed.message, stayed.hint)


def test_a_swap_a_confirm_and_a_rollback_come_over(manager: HelperManager, path: str) -> None:
    with answering(path, said(wire.pending_json(PENDING))):
        assert manager.swap({}, server_time=1, command_id="c") == PENDING
        assert manager.confirm() == PENDING
    os.unlink(path)
    with answering(path, said({"moved": True})):
        assert manager.rollback(way="deadline")


def test_what_a_gateway_refused_with_goes_with_the_rollback(manager: HelperManager, path: str) -> None:
    lines: list[bytes] = []
    manager.note_gateway_refused("the node is not known")
    with answering(path, lambda line: noted(lines, line, said({"moved": True})(line))):
        manager.rollback(way="exec", said="Exec format error")
    assert json.loads(lines[0])["params"] == {
        "way": "exec",
        "said": "Exec format error",
        "refused": "the node is not known",
    }


WRONG: dict[str, tuple[Callable[[HelperManager], object], object]] = {
    "no pending after a swap": (lambda m: m.swap({}, server_time=None, command_id=None), None),
    "a confirm that is a list": (lambda m: m.confirm(), []),
    "a confirm without a slot": (lambda m: m.confirm(), {"swap_id": "x"}),
    "a rollback without moved": (lambda m: m.rollback(way="exec"), {"moved": 1}),
    "a settle of an unknown outcome": (lambda m: m.settle(), {"outcome": "better", "restart": False}),
    "a settle without restart": (lambda m: m.settle(), {"outcome": "pending"}),
    "a fetch of a negative size": (
        lambda m: m.prepare({}, server_time=None),
        {"version": "1", "fetch": {"version": "1", "sequence": 1, "url": "u", "sha256": "0", "size": -1}},
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_result_of_another_shape_is_an_unreachable_helper(manager: HelperManager, path: str, name: str) -> None:
    ask, result = WRONG[name]
    with answering(path, said(result)), pytest.raises(HostError) as caught:
        ask(manager)
    assert caught.value.code == "helper-unreachable"


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (Refusal("expired", "the manifest expired", "sign it anew"), "expired", Refusal),
        (HostError("no-space", "need 1 byte", ""), "no-space", HostError),
        (HostError("bad-request", "no request", ""), "helper-unreachable", HostError),
        (HostError("helper-busy", "16 are open", ""), "helper-unreachable", HostError),
        (HostError("not-permitted", "only root", ""), "helper-unreachable", HostError),
    ],
)
def test_an_error_keeps_its_family_and_gets_a_code_that_gateways_know(
    manager: HelperManager, path: str, error: BcdError, code: str, kind: type[BcdError]
) -> None:
    with answering(path, lambda _: wire.dump_line(wire.bad_answer("1.4.0", error))), pytest.raises(kind) as caught:
        manager.prepare({}, server_time=None)
    assert caught.value.code == code
    assert error.message in caught.value.message


@pytest.mark.parametrize("spec", [{"version": "\ud800"}, {"signature": "x" * wire.LINE_LIMIT}])
def test_a_section_that_no_request_can_hold_is_refused_unasked(manager: HelperManager, spec: object) -> None:
    """Nobody listens here."""
    with pytest.raises(Refusal) as caught:
        manager.prepare(spec, server_time=None)
    assert caught.value.code == "bad-section"
