"""`bcd node` as a whole, in this process: settle, the agent, and becoming the entrypoint's program.

Instead of replacing the test run, an exec of a program raises `Replaced`; of anything else it fails as the kernel says.
"""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bcd.core.answers import Way
from bcd.core.build import Build
from bcd.core.clock import ManualClock
from bcd.core.config import Config, HelperConfig
from bcd.core.errors import HostError, UsageError
from bcd.core.exits import ExitStatus
from bcd.core.links import switch_link
from bcd.core.manager import Manager
from bcd.lab.behaviour import SILENT
from bcd.lab.gateway import Gateway
from bcd.lab.pki import Authority
from bcd.lab.server import ReleaseServer
from bcd.node import main as main_module
from bcd.node.main import run_agent
from bcd.node.outbox import Entry, Outbox
from tests.core.node_root import Release, make_release, program, quick_node
from tests.node.stations import NODE_ID, Station, failing

OLD = Build("1.0.0", 0, 0, fakehw=False)
NEW = Build("1.1.0", 11, 0, fakehw=False)
FAR = int(time.time()) + 10 * 365 * 86_400


class Replaced(BaseException):
    """This process has become another program."""

    def __init__(self, path: str, argv: Sequence[str], environ: Mapping[str, str]) -> None:
        super().__init__(path)
        self.path = path
        self.argv = list(argv)
        self.environ = environ


@pytest.fixture(autouse=True)
def _guarded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    execve = os.execve

    def guarded_execve(path: str, argv: list[str], environ: Mapping[str, str]) -> None:
        if Path(path).read_bytes().startswith(b"#!"):
            raise Replaced(path, argv, environ)
        execve(path, argv, environ)  # which fails: it is no program

    monkeypatch.setattr(os, "execve", guarded_execve)
    monkeypatch.setattr("sys.argv", ["/the/file/that/runs", "node", "--config", "/etc/bcd/config.toml"])
    umask = os.umask(0o022)
    yield
    os.umask(umask)


@pytest.fixture
def server(lab_authority: Authority) -> Iterator[ReleaseServer]:
    """The lab's release server."""
    made = ReleaseServer(lab_authority.server_context())
    yield made
    made.close()


@pytest.fixture
def station(tmp_path: Path, gateway: Gateway, lab_authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Station:
    """A node that runs 1.0.0 and keeps the machine's own time."""
    made = Station(quick_node(tmp_path, monkeypatch), gateway, lab_authority)
    made.node.config = made.node.config._replace(
        update=made.node.config.update._replace(ca_file=str(lab_authority.certificate))
    )
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        boot_id = file.read().strip()
    made.node.clock = ManualClock(time.time(), time.clock_gettime(time.CLOCK_BOOTTIME), boot_id)
    return made


def published(server: ReleaseServer, *, data: bytes | None = None) -> Release:
    """1.1.0 on the release server; `data` in place of a program."""
    url = server.publish("/bcd", program("1.1.0") if data is None else data)
    return make_release("1.1.0", 11, data=data, expires_at=FAR, section={"url": url})


@contextmanager
def meanwhile(play: Callable[[], None]) -> Iterator[None]:
    """Play in another thread while the agent runs in this one; in the end SIGTERM, unless it has ended by itself."""
    over = threading.Event()
    failures: list[BaseException] = []

    def playing() -> None:
        try:
            play()
        except BaseException as failure:  # noqa: BLE001  # raised below
            failures.append(failure)
        # A loop is in the way of the signal as long as an agent runs; without one it would end the test run.
        if not over.wait(0.02):
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, lambda *_: None)
    thread = threading.Thread(target=playing, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGTERM, before)
    if failures:
        raise failures[0]


def wait(station: Station, happened: Callable[[Station], object]) -> None:
    """Wait for something at the gateway."""
    assert station.gateway.wait(NODE_ID, lambda _: bool(happened(station)), 15), station.page.frames[-3:]


# Becoming another program --------------------------------------------------------------------------------------------


def test_a_good_update_ends_in_the_entrypoints_program(station: Station, server: ReleaseServer) -> None:
    """From the section over a real download to the exec, through the entrypoint and with the same arguments."""
    release = published(server)
    station.gateway.push_section(NODE_ID, release.section)
    with pytest.raises(Replaced) as caught:
        run_agent("node", station.node.config, OLD)
    entrypoint = station.node.layout.entrypoint
    assert caught.value.path == entrypoint
    assert caught.value.argv == [entrypoint, "node", "--config", "/etc/bcd/config.toml"]
    assert caught.value.environ["PATH"] == os.environ["PATH"]
    assert station.node.runs() == "1.1.0"
    assert len(server.requests("/bcd")) == 1
    assert not os.path.exists(station.live_socket)


def test_a_release_that_cannot_be_started_is_rolled_back_by_the_old_process(
    station: Station, server: ReleaseServer
) -> None:
    """It points `current` back, settles the failure at once, and answers the command; it never stopped being 1.0.0."""
    release = published(server, data=b"\0\1\2 no program")
    command = station.gateway.push_command(NODE_ID, release.section)
    with meanwhile(lambda: wait(station, lambda s: s.page.commands[command].finished and s.page.welcomed())):
        assert run_agent("node", station.node.config, OLD) is ExitStatus.OK
    first, *more = station.page.answers(command)
    assert all(one == first for one in more)
    assert (first["state"], first["reason"], first["code"]) == ("FAILED", "update-failed", "failed-version")
    assert first["message"] == "bcd 1.1.0 could not be started: Exec format error"
    assert station.page.versions() == ["1.0.0"]
    assert station.node.runs() == "1.0.0"
    assert station.node.json(station.node.layout.pending_record) is None
    assert station.node.floor() == 0


def test_systemd_is_told_of_each_agent_that_is_ready_and_of_the_exec_between(
    station: Station, server: ReleaseServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A binary that hangs before its first line has no timer of its own: the exec's time limit ends it."""
    told: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        release = published(server, data=b"\0\1\2 no program")
        command = station.gateway.push_command(NODE_ID, release.section)
        with meanwhile(lambda: wait(station, lambda s: s.page.commands[command].finished and s.page.welcomed())):
            assert run_agent("node", station.node.config, OLD) is ExitStatus.OK
        with suppress(BlockingIOError):
            while True:
                told.append(manager.recv(4096).decode().split("\n")[0])
    once = ["READY=1", "WATCHDOG_USEC=60000000", "WATCHDOG_USEC=0"]
    assert told == [*once, "READY=1", "STOPPING=1"]


def test_no_agent_runs_while_current_names_what_cannot_be_started(
    station: Station, server: ReleaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rollback fails twice (a full disk): an agent meanwhile would confirm the release by its own welcome."""
    monkeypatch.setattr(main_module, "_AGAIN_SECONDS", 0.05)
    roll_back = Manager.rollback
    hellos: list[int] = []

    def seen(manager: Manager, *, way: Way, said: str | None = None) -> bool:
        hellos.append(len(station.page.sessions))
        return roll_back(manager, way=way, said=said)

    full = failing(HostError("no-space", "could not roll back: No space left on device"), 2, seen)
    monkeypatch.setattr(Manager, "rollback", full)
    release = published(server, data=b"\0\1\2 no program")
    command = station.gateway.push_command(NODE_ID, release.section)
    with meanwhile(lambda: wait(station, lambda s: s.page.commands[command].finished and s.page.welcomed())):
        assert run_agent("node", station.node.config, OLD) is ExitStatus.OK
    assert hellos == [1]
    assert station.page.answers(command)[0]["state"] == "FAILED"
    assert station.node.floor() == 0


def test_a_late_start_goes_back_before_any_session(station: Station) -> None:
    """The deadline passed while the machine was off: no hello, no welcome, the old binary."""
    station.node.start()
    station.node.clock.passes(-200)
    station.node.swap(make_release("1.1.0", 11, expires_at=FAR))
    with pytest.raises(Replaced):
        run_agent("node", station.node.config, NEW)
    assert station.node.runs() == "1.0.0"
    assert station.page.sessions == []


def test_an_old_binary_that_cannot_be_started_any_more_leaves_the_new_one_running(
    station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline passed, the rollback was written, and the exec failed: better an agent than none, and no loop."""
    station.node.start()
    station.node.swap(make_release("1.1.0", 11, expires_at=FAR))

    def refuse(path: str, *_: object) -> None:
        raise OSError(13, "Permission denied", path)

    monkeypatch.setattr(os, "execve", refuse)
    monkeypatch.setattr("bcd.node.main.SystemClock", Ahead)
    with meanwhile(lambda: wait(station, lambda s: s.page.welcomed())):
        assert run_agent("node", station.node.config, NEW) is ExitStatus.OK
    failed = station.node.status().update.value
    assert failed is not None
    assert [one.version for one in failed.failed] == ["1.1.0"]
    assert station.node.runs() == "1.0.0"
    assert station.node.floor() == 0


class Ahead(ManualClock):
    """The machine's clock, five minutes from now."""

    def __init__(self) -> None:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot_id = file.read().strip()
        super().__init__(time.time() + 300, time.clock_gettime(time.CLOCK_BOOTTIME) + 300, boot_id)


def test_an_update_whose_command_is_older_than_the_process_is_answered_after_a_rollback(station: Station) -> None:
    """What was rolled back while nothing ran is settled, and told, by the next start."""
    station.node.start()
    Outbox(station.node.config.node.data_dir).put(Entry(id="c1", version="1.1.0", state="RUNNING"))
    station.node.swap(make_release("1.1.0", 11, expires_at=FAR), command_id="c1")
    station.node.manager("1.1.0").settle()
    Path(station.node.layout.rollback_marker).touch()
    switch_link(station.node.layout.current, "bcd-a")
    with meanwhile(lambda: wait(station, lambda s: s.page.answers("c1"))):
        assert run_agent("node", station.node.config, OLD) is ExitStatus.OK
    answer = station.page.answers("c1")[0]
    assert (answer["state"], answer["message"]) == ("FAILED", "bcd 1.1.0 kept crashing before a gateway welcomed it")


# Starting ------------------------------------------------------------------------------------------------------------


def test_a_disk_that_cannot_be_written_is_no_reason_not_to_run(
    station: Station, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Field report 35: updates are off, and that is said once; the node is welcomed all the same."""

    def settle(_: Manager) -> None:
        raise HostError("io-error", "could not settle: Read-only file system")

    monkeypatch.setattr(Manager, "settle", settle)
    with caplog.at_level("ERROR"), meanwhile(lambda: wait(station, lambda s: s.page.welcomed())):
        assert run_agent("node", station.node.config, OLD) is ExitStatus.OK
    assert [record.getMessage() for record in caplog.records] == [
        "updates are off for now: could not settle: Read-only file system (io-error)"
    ]


def test_slots_that_cannot_be_trusted_stop_the_start(station: Station) -> None:
    """`current` is lost and the old slot's file is not what ran before: nothing is touched."""
    station.node.start()
    station.node.swap(make_release("1.1.0", 11, expires_at=FAR))
    os.unlink(station.node.layout.current)
    station.node.slot("a").write_bytes(b"something else")
    before = station.node.tree()
    with pytest.raises(HostError) as caught:
        run_agent("node", station.node.config, NEW)
    assert caught.value.code == "slots-broken"
    assert {name: entry for name, entry in station.node.tree().items() if name != "data/node.lock"} == before
    assert station.page.sessions == []


@pytest.mark.parametrize(
    "url", ["ws://localhost:1/", "WSS://localhost:1/", "http://localhost:1/", "localhost:1", "wss:/localhost", ""]
)
def test_a_gateway_without_tls_is_refused(station: Station, url: str) -> None:
    """Whoever answers in clear text would welcome, and so confirm, whatever runs here."""
    with pytest.raises(UsageError) as caught:
        run_agent("node", with_gateway(station.node.config, url), OLD)
    assert caught.value.code == "bad-config"
    assert "[node] gateway" in caught.value.message


@pytest.mark.parametrize("by", ["a-fakehw-build", "dev_insecure_h2c"])
def test_a_gateway_in_clear_text_is_for_development(station: Station, by: str) -> None:
    """A binary stamped `fakehw`, or the configuration that says so, lets it through."""
    config = with_gateway(station.node.config, "ws://127.0.0.1:1/")
    if by == "dev_insecure_h2c":
        config = config._replace(node=config.node._replace(dev_insecure_h2c=True))
    build = OLD._replace(fakehw=by == "a-fakehw-build")
    with meanwhile(lambda: until(lambda: os.path.exists(station.live_socket))):
        assert run_agent("node", config, build) is ExitStatus.OK


def with_gateway(config: Config, url: str) -> Config:
    """The configuration with another gateway."""
    return config._replace(node=config.node._replace(gateway=url))


def until(true: Callable[[], object]) -> None:
    """Wait until something is true."""
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_data_directory_is_made_whatever_the_umask(station: Station) -> None:
    """With all that is missing above it, 0755."""
    data = station.node.root / "new" / "data"
    config = station.node.config._replace(node=station.node.config.node._replace(data_dir=str(data)))
    os.umask(0o077)
    with meanwhile(lambda: wait(station, lambda s: s.page.welcomed())):
        run_agent("node", config, OLD)
    assert [path.stat().st_mode & 0o777 for path in (data.parent, data)] == [0o755, 0o755]


def test_a_data_directory_that_cannot_be_made_stops_the_start(station: Station) -> None:
    """There is a file in its way."""
    (station.node.root / "file").write_text("")
    data = station.node.root / "file" / "data"
    config = station.node.config._replace(node=station.node.config.node._replace(data_dir=str(data)))
    with pytest.raises(HostError) as caught:
        run_agent("node", config, OLD)
    assert caught.value.code == "io-error"
    assert "make the data directory" in caught.value.message


@pytest.mark.parametrize("role", ["node", "site", "sim", "ramdisk"])
def test_a_helper_that_is_not_there_keeps_no_agent_from_its_gateway(
    tmp_path: Path,
    gateway: Gateway,
    lab_authority: Authority,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    role: str,
) -> None:
    """Updates are off until it answers, which is said; the roles that do not update themselves never ask it."""
    node = quick_node(tmp_path, monkeypatch)
    station = Station(node, gateway, lab_authority, role=role)
    config = node.config._replace(helper=HelperConfig(socket=str(tmp_path / "helper.sock")))
    station.behave(SILENT)
    with meanwhile(lambda: wait(station, lambda s: s.page.sessions)):
        assert run_agent(role, config, OLD) is ExitStatus.OK
    assert ("helper-unreachable" in caplog.text) == (role in ("node", "site"))
    assert not os.path.exists(node.layout.records_dir)
