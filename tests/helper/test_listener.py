"""The helper's socket: never reachable by others, not for a moment, whoever made it."""

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from bcd.core.errors import HostError, UsageError
from bcd.helper.listener import inherited, listen
from tests.core.node_root import Process
from tests.helper.attacker import Attacker, attack
from tests.helper.world import OTHER_UID, TREE, UID, World

GID = UID


def test_a_socket_is_made_with_its_owner_and_mode(roots: Path) -> None:
    """Beside it only the lock, which is root's; both are gone or free after it."""
    path = roots / "run" / "helper.sock"
    listener = listen(str(path), GID)
    found = path.lstat()
    assert stat.S_ISSOCK(found.st_mode)
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (0, GID, 0o660)
    assert sorted(os.listdir(path.parent)) == ["helper.sock", "helper.sock.lock"]
    assert stat.S_IMODE((path.parent / "helper.sock.lock").stat().st_mode) == 0o600
    with pytest.raises(HostError) as caught:
        listen(str(path), GID)
    assert caught.value.code == "helper-running"
    listener.close()
    assert os.listdir(path.parent) == ["helper.sock.lock"]
    listen(str(path), GID).close()


def test_at_no_moment_may_others_connect(roots: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name that it is bound under has no rights, whatever the umask; the umask is as it was."""
    seen: list[int] = []
    chown = os.chown

    def watched(path: str, *args: int, **more: bool) -> None:
        seen.append(stat.S_IMODE(os.lstat(path).st_mode))
        chown(path, *args, **more)

    monkeypatch.setattr(os, "chown", watched)
    before = os.umask(0)
    try:
        listen(str(roots / "helper.sock"), GID).close()
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert seen == [0]


@pytest.mark.parametrize("what", ["file", "link", "dead socket"])
def test_whatever_a_dead_helper_left_is_replaced_and_not_followed(roots: Path, what: str) -> None:
    """By one rename."""
    path, outside = roots / "helper.sock", roots / "outside"
    outside.write_bytes(b"precious")
    if what == "file":
        path.touch()
    elif what == "link":
        path.symlink_to(outside)
    else:
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(path))
    listen(str(path), GID).close()
    assert outside.read_bytes() == b"precious"


def test_a_link_at_the_lock_and_a_directory_at_the_socket_are_errors_of_ours(roots: Path) -> None:
    """And no descriptor stays."""
    (roots / "a.sock.lock").symlink_to(roots / "x")
    (roots / "b.sock").mkdir()
    before = len(os.listdir("/proc/self/fd"))
    for name in ("a.sock", "b.sock"):
        with pytest.raises(HostError) as caught:
            listen(str(roots / name), GID)
        assert caught.value.code == "io-error"
    assert len(os.listdir("/proc/self/fd")) == before
    assert sorted(os.listdir(roots)) == ["a.sock.lock", "b.sock", "b.sock.lock"]


# Who reaches it ---------------------------------------------------------------------------------------------------------


def test_another_user_does_not_reach_it_and_is_not_answered_where_it_does(world: World) -> None:
    """By its mode; and by the kernel's word once somebody opened that."""

    def knock(attacker: Attacker) -> dict[str, object] | str:
        try:
            return attacker.ask("helper.info")
        except PermissionError:
            return "not reached"

    world.start()
    before = world.tree()
    assert attack(world, knock, uid=OTHER_UID).outcome == "not reached"
    os.chmod(world.socket, 0o666)
    assert attack(world, knock, uid=OTHER_UID).outcome == "not-permitted"
    assert attack(world, knock).outcome == "ok"
    assert world.tree() == before
    world.serves()


# From systemd -----------------------------------------------------------------------------------------------------------

_ACTIVATE = """
import os, socket, sys
path, mode, gid, config = sys.argv[1:5]
made = socket.socket(socket.AF_UNIX)
made.bind(path)
os.chmod(path, int(mode, 8))
os.chown(path, 0, int(gid))
made.listen(64)
if made.fileno() != 3:
    os.dup2(made.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execv(sys.executable, [sys.executable, "-c", "from bcd.cli import entry; entry()", "helper", "--config", config])
"""

WRONG: dict[str, dict[str, str]] = {
    "the right one": {},
    "another path": {"path": "other"},
    "a mode for all": {"mode": "666"},
    "another owner": {"uid": str(UID)},
    "another group": {"gid": str(OTHER_UID)},
    "datagrams": {"kind": "datagram"},
    "one that does not listen": {"kind": "silent"},
    "no socket": {"kind": "file"},
    "one whose name is gone": {"kind": "gone"},
    "two": {"count": "2"},
    "none": {"count": "0"},
    "a count that is none": {"count": "many"},
}


def words(world: World, mode: str) -> list[str]:
    """The command as systemd starts it, with a socket that it made."""
    return [sys.executable, "-c", _ACTIVATE, world.socket, mode, str(GID), world.config_path]


def test_a_socket_of_systemds_is_served_and_left(world: World) -> None:
    """systemd made it, and systemd keeps it."""
    with subprocess.Popen(words(world, "660"), cwd="/", env={**os.environ, "PYTHONPATH": str(TREE)}) as helper:
        while not os.path.exists(world.socket):
            assert helper.poll() is None
        assert attack(world, lambda node: node.ask("helper.info")).outcome == "ok"
        helper.terminate()
        assert helper.wait(10) == 0
    assert os.path.exists(world.socket)


def test_a_command_that_gets_the_wrong_socket_ends(world: World) -> None:
    """By its code, with what the unit should say."""
    before = world.tree()
    ran = subprocess.run(
        words(world, "666"), cwd="/", env={**os.environ, "PYTHONPATH": str(TREE)}, capture_output=True, text=True
    )
    assert (ran.returncode, "bad-socket" in ran.stderr) == (2, True), ran.stderr
    assert "SocketMode=0660" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert world.tree() == before


@pytest.mark.parametrize("name", WRONG)
def test_a_socket_that_others_may_reach_or_that_is_another_is_refused(roots: Path, name: str) -> None:
    """Looked at in a child, whose descriptor 3 nobody needs."""
    given = {"path": "s", "mode": "660", "uid": "0", "gid": str(GID), "kind": "stream", "count": "1", **WRONG[name]}

    def take() -> int:
        os.chdir(roots)
        if given["kind"] == "file":
            os.dup2(os.open("/dev/null", os.O_RDONLY), 3)
        else:
            made = socket.socket(
                socket.AF_UNIX, socket.SOCK_DGRAM if given["kind"] == "datagram" else socket.SOCK_STREAM
            )
            made.bind(given["path"])
            os.chmod(given["path"], int(given["mode"], 8))
            os.chown(given["path"], int(given["uid"]), int(given["gid"]))
            if given["kind"] not in ("datagram", "silent"):
                made.listen(4)
            if given["kind"] == "gone":
                os.unlink(given["path"])
            os.dup2(made.fileno(), 3)
        os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=given["count"])
        try:
            found = inherited("s", GID)
        except UsageError as error:
            return 42 if error.code == "bad-socket" and "SocketMode=0660" in error.hint else 43
        return 0 if found is not None and "LISTEN_PID" not in os.environ else 44

    assert Process(take).ended() == (0 if name == "the right one" else 42)
