"""Every command, fed what no file should be: it says so, at once, with a status and a code; it never hangs or crashes."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.node_dir import Node
from tests.commands.running import NOBODY, Done, Runner, acting_on_a_terminal

Call = Callable[..., Done]
Make = Callable[[Path], object]


def directory(path: Path) -> None:
    path.mkdir()


def fifo(path: Path) -> None:
    os.mkfifo(path)


def bound_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def binary(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 20)


def huge(path: Path) -> None:
    path.write_bytes(b"# " + b"x" * 10_000_000)


def deep(path: Path) -> None:
    path.write_bytes(b"a = " + b"[" * 50_000)


def link_loop(path: Path) -> None:
    path.symlink_to(path.name)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


KINDS = [directory, fifo, bound_socket, binary, huge, deep, link_loop, endless]

COMMANDS = {
    "update": ("update",),
    "update --json": ("update", "--json"),
    "history": ("update", "history"),
    "check": ("update", "check", "/dev/null"),
    "clear": ("update", "--clear-failed"),
    "node": ("node",),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_a_configuration_that_is_none_is_refused(command: tuple[str, ...], make: Make, call: Call, home: Path) -> None:
    """Also when it would hang its reader, or never end."""
    path = home / "config.toml"
    make(path)
    done = call(*command, "--config", str(path))
    assert (done.status, done.code, done.stdout) == (2, "bad-config", "")
    assert str(path) in done.stderr
    assert acting_on_a_terminal(done.stderr) == []


@pytest.mark.parametrize("command", [COMMANDS["update --json"], COMMANDS["check"], COMMANDS["node"]], ids=" ".join)
def test_a_configuration_that_may_not_be_read_ends_with_4(command: tuple[str, ...], run: Runner, node: Node) -> None:
    node.forbid(node.config)
    done = run(*command, "--config", str(node.config), user=NOBODY)
    assert (done.status, done.code, done.stdout) == (4, "unreadable-config", "")


@pytest.mark.parametrize(
    "text",
    [
        "[update]\nrelease_pin = 1\n",
        "[update]\nrelease_pins = 5\n",
        '[update]\nrelease_pins = "sha256/short"\n',
        "[update]\nrelease_threshold = 0\n",
        '[node]\ndata_dir = "relative"\n',
        '[node]\ndata_dir = ""\n',
        "node = 5\n",
        '[node]\n"\\u001b[2J" = 1\n',
        '[node]\ngateway = "\\u0000"\n',
        '[update]\nrelease_pins = ["\\u001b]52;c;QQ==\\u0007"]\n',
    ],
)
def test_a_wrong_key_or_value_is_named(text: str, call: Call, home: Path) -> None:
    path = home / "config.toml"
    path.write_text(text)
    done = call("update", "--config", str(path))
    assert (done.status, done.code, done.stdout) == (2, "bad-config", "")
    assert acting_on_a_terminal(done.stderr) == []


RECORD_KINDS = [directory, fifo, bound_socket, binary, huge, deep, link_loop]


@pytest.mark.parametrize("make", RECORD_KINDS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("record", ["update_json", "pending_json", "slots_json"])
def test_a_record_that_is_none_stops_no_command(record: str, make: Make, call: Call, node: Node) -> None:
    """The state says which is broken and looks at the rest; clearing moves it aside and goes on."""
    path: Path = getattr(node, record)
    path.unlink(missing_ok=True)
    make(path)
    state = call("update", "--config", str(node.config))
    assert (state.status, state.stderr) == (1, "")
    assert f"corrupt: {path} (" in state.stdout
    assert call("update", "history", "--config", str(node.config)).status == 0
    assert call("update", "check", "/dev/null", "--config", str(node.config)).status == 1
    assert call("update", "--clear-failed", "--config", str(node.config)).status == 0


@pytest.mark.parametrize("make", [directory, fifo, bound_socket, link_loop], ids=lambda make: make.__name__)
def test_a_history_that_is_no_file_is_said(make: Make, call: Call, node: Node) -> None:
    """Status 1 and what to do; nothing that decides is lost with it, so the state is well."""
    make(node.history)
    done = call("update", "history", "--config", str(node.config))
    assert (done.status, done.code, done.stdout) == (1, "io-error", "")
    assert str(node.history) in done.stderr
    assert call("update", "--config", str(node.config)).status == 0


@pytest.mark.parametrize("make", [directory, fifo, bound_socket, link_loop], ids=lambda make: make.__name__)
def test_a_history_that_can_not_be_written_hinders_no_clearing(make: Make, call: Call, node: Node) -> None:
    """A FIFO that nobody reads from would hang its writer for ever, with the update lock held."""
    make(node.history)
    done = call("update", "--clear-failed", "--config", str(node.config))
    assert (done.status, done.stdout.splitlines()[0]) == (0, "failed versions cleared")
    assert done.stderr.startswith("bcd: the history could not be written: ")


@pytest.mark.parametrize("make", [binary, deep, huge], ids=lambda make: make.__name__)
def test_a_history_of_garbage_is_an_empty_one(make: Make, call: Call, node: Node) -> None:
    make(node.history)
    assert call("update", "history", "--config", str(node.config)) == (0, "nothing happened here yet\n", "")


@pytest.mark.parametrize("make", [directory, fifo, binary, link_loop], ids=lambda make: make.__name__)
def test_what_lies_where_an_agents_socket_would_is_no_agent(make: Make, call: Call, node: Node) -> None:
    make(node.socket)
    done = call("update", "--config", str(node.config))
    assert (done.status, done.stderr) == (0, "")


@pytest.mark.parametrize("make", [directory, fifo, bound_socket, link_loop], ids=lambda make: make.__name__)
def test_what_lies_where_the_lock_would_is_said_and_nothing_is_cleared(make: Make, call: Call, node: Node) -> None:
    (node.records / "update.lock").unlink(missing_ok=True)
    make(node.records / "update.lock")
    before = node.update_json.read_bytes()
    done = call("update", "--clear-failed", "--config", str(node.config))
    if done.status == 0:
        assert make is fifo  # which locks as well as any file does
        return
    assert (done.status, done.code, done.stdout) == (1, "io-error", "")
    assert node.update_json.read_bytes() == before


@pytest.mark.parametrize("make", [directory, fifo, bound_socket, binary], ids=lambda make: make.__name__)
@pytest.mark.parametrize("where", ["current", "entrypoint"])
def test_what_lies_where_a_link_would_stops_no_looking(where: str, make: Make, call: Call, node: Node) -> None:
    path = node.entrypoint if where == "entrypoint" else node.slots / where
    path.unlink()
    make(path)
    done = call("update", "--config", str(node.config))
    assert (done.status, done.stderr) == (int(where == "current"), "")
    check = call("update", "check", "/dev/null", "--config", str(node.config))
    assert check.status == 1
