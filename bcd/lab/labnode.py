"""One node of the lab as a scenario handles it: its root, its supervisor, and its page at the gateway."""

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bcd.core.steps import STEPS
from bcd.lab.behaviour import SILENT, Behaviour
from bcd.lab.binary import FAULT_FILE_VARIABLE
from bcd.lab.book import Json, Page
from bcd.lab.clock import CLOCK_FILE_VARIABLE, set_step
from bcd.lab.gateway import Gateway
from bcd.lab.releases import Release
from bcd.lab.root import Root
from bcd.lab.server import ReleaseServer, Request
from bcd.lab.supervisor import Supervisor, Unit

PATIENCE_SECONDS = 40.0
"""How long anything may take that takes a second on an idle machine."""
_LOOK_SECONDS = 0.05
_ENDS = frozenset({"READY", "FAILED", "UNSUPPORTED"})
_OF_A_SERVICE = ("LANG", "LC_ALL", "TERM", "TZ")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SYSTEMD_VARIABLES = ("INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET", "SYSTEMD_EXEC_PID")


class Unmet(Exception):
    """Something that the rules promise did not happen.

    Attributes:
        what: what it is about.
        expected: what was to be.
        seen: what was.
    """

    def __init__(self, what: str, expected: object, seen: object) -> None:
        super().__init__(f"{what}: expected {expected}, saw {seen}")
        self.what = what
        self.expected = str(expected)
        self.seen = str(seen)


class LabNode:
    """A node. Every wait ends with what it waited for, `Unmet`, or `LabClosed` when the lab ends meanwhile."""

    def __init__(self, *, name: str, role: str, root: Root, gateway: Gateway, server: ReleaseServer) -> None:
        self.name = name
        self.root = root
        self._gateway = gateway
        self._server = server
        self.environment = _environment(root)
        unit = Unit(
            argv=[str(root.entrypoint), role, "--config", str(root.config)],
            environment=self.environment | _of_the_user(root),
            directory=root.home,
            slots=root.slots,
            records=root.records,
            log=root.log,
            uid=root.node_uid,
        )
        self.supervisor = Supervisor(unit)
        helper = replace(
            unit,
            argv=[str(root.entrypoint), "helper", "--config", str(root.config)],
            environment=self.environment,
            log=root.helper_log,
            name="the helper",
            uid=None,
            rolls_back=False,
        )
        self.helper = None if root.node_uid is None else Supervisor(helper)
        """The helper's supervisor, where the node has one."""

    # What is done to it.

    def start(self) -> None:
        """Start it, once its helper, where it has one, serves."""
        if self.helper is not None:
            self.helper.start()
            self.wait_helper()
        self.supervisor.start()

    def stop(self) -> None:
        """End it in order (SIGTERM), then its helper, and leave both stopped."""
        for supervisor in self.supervisors:
            supervisor.stop()

    def power_off(self) -> None:
        """End it and its helper at once (SIGKILL), and leave both stopped."""
        for supervisor in self.supervisors:
            supervisor.power_off()

    def retire(self) -> None:
        """End it and its helper at once, and have neither start again."""
        for supervisor in self.supervisors:
            supervisor.retire()

    @property
    def supervisors(self) -> tuple[Supervisor, ...]:
        """The node's, and its helper's where it has one."""
        return (self.supervisor,) if self.helper is None else (self.supervisor, self.helper)

    @property
    def restarts(self) -> int:
        """How often it or its helper was started again."""
        return sum(max(0, supervisor.starts - 1) for supervisor in self.supervisors)

    def push(self, release: Release) -> int:
        """Make `release` the target in the node's section; return the generation."""
        return self._gateway.push_section(self.name, release.section)

    def command(self, release: Release) -> str:
        """Order `daemon.upgrade` to `release`; return the command's id."""
        return self._gateway.push_command(self.name, release.section)

    def repeat(self, command_id: str) -> None:
        """Deliver a command once more."""
        self._gateway.repeat_command(self.name, command_id)

    def behave(self, behaviour: Behaviour, *, to: Release | None = None) -> None:
        """Have the gateway treat the node so, or only the version of a release."""
        self._gateway.behave(self.name, behaviour, version=None if to is None else to.version)

    def set_memory(self, *, acks: bool, replays: bool) -> None:
        """Have the gateway ack the end of commands or not, and replay unfinished commands or not."""
        with self._gateway.page(self.name) as page:
            page.acks, page.replays = acks, replays

    def set_gateway_clock(self, *, ahead_seconds: float) -> None:
        """Have the gateway tell the node a server time that is ahead of this machine's, from the next welcome on."""
        with self._gateway.page(self.name) as page:
            page.clock_ahead = ahead_seconds

    def step_clock(self, *, ahead_seconds: int) -> None:
        """Step the node's wall clock to so many seconds ahead of this machine's."""
        set_step(self.root.clock_file, ahead_seconds)

    def drop_session(self) -> None:
        """Break its connection to the gateway."""
        self._gateway.drop_session(self.name)

    def command_until_launched(self, release: Release) -> str:
        """Order `daemon.upgrade`, and wait until the new binary runs and comes to a gateway that keeps silent."""
        self.behave(SILENT, to=release)
        command = self.command(release)
        self.wait_hello(release.version)
        self.wait_root(
            lambda root: bool((root.pending() or {}).get("launched")), "a launched update", lambda root: root.pending()
        )
        return command

    def cut_power_at(self, *steps: str) -> None:
        """Have whichever of its processes reaches the first of `steps` next die there; then the second, and so on."""
        for step in steps:
            if step not in STEPS:
                raise ValueError(f"{step} is no step of an update")
        self.root.fault_file.write_text("\n".join(steps), encoding="ascii")

    def run(self, *arguments: str, as_node: bool = False) -> "subprocess.CompletedProcess[str]":
        """Run `bcd` on the machine, as an operator does; `as_node`, as the node's own user."""
        uid = self.root.node_uid if as_node else None
        return subprocess.run(
            [str(self.root.entrypoint), *arguments, "--config", str(self.root.config)],
            env=self.environment,
            cwd=self.root.home,
            user=uid,
            group=uid,
            extra_groups=None if uid is None else (),
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    # What can be seen of it.

    def page(self) -> Page:
        """Its page at the gateway, to look at when nothing happens there any more."""
        with self._gateway.page(self.name) as page:
            return page

    def downloads(self, release: Release) -> list[Request]:
        """The requests for a release's file."""
        return self._server.requests(release.path)

    # What is waited for.

    def wait_welcome(self, version: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait for an open session that was welcomed, of this version."""

        def happened(page: Page) -> bool:
            session = page.welcomed()
            return session is not None and session.version == version

        self.wait(happened, f"a welcomed session of {version}", lambda page: f"sessions of {page.versions()}", seconds)

    def wait_hello(self, version: str, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait for an open session of this version, welcomed or not."""
        self.wait(
            lambda page: (
                bool(page.sessions) and page.sessions[-1].version == version and page.sessions[-1].closed_at is None
            ),
            f"a hello of {version}",
            lambda page: f"hellos of {page.versions()}",
            seconds,
        )

    def wait_section(self, generation: int, state: str, seconds: float = PATIENCE_SECONDS) -> Json:
        """Wait for a status of the section that has `state` and has observed `generation`; not past its end."""

        def last(page: Page) -> Json:
            of_it = [body for body in page.section_statuses() if body.get("observed_generation") == generation]
            return of_it[-1] if of_it else {}

        self._gateway.wait(self.name, lambda page: last(page).get("state") in {state, *_ENDS}, seconds)
        status = last(self.page())
        if status.get("state") != state:
            expected = f"state {state} for generation {generation}"
            raise Unmet("the section's status", expected, status or self.page().section_statuses()[-1:])
        return status

    def wait_trouble(self, code: str, seconds: float = PATIENCE_SECONDS) -> Json:
        """Wait for a status of the section with this code, whatever its state."""

        def fits(page: Page) -> list[Json]:
            return [body for body in page.section_statuses() if body.get("code") == code]

        self.wait(
            lambda page: bool(fits(page)),
            f"a section status that tells {code}",
            lambda page: page.section_statuses()[-1:],
            seconds,
        )
        return fits(self.page())[-1]

    def wait_cut(self) -> None:
        """Wait until power has failed at every step that it was to fail at."""
        self.wait_root(
            lambda root: not root.fault_file.exists(),
            "power to fail",
            lambda root: f"not yet at {root.fault_file.read_text(encoding='ascii').split()}",
        )

    def wait_helper(self) -> None:
        """Wait until its helper, where it has one, serves."""
        if self.helper is not None:
            self.wait_root(lambda root: _answers(root.socket), "a helper that serves", lambda root: root.log_tail(3))

    def pause(self, seconds: float) -> None:
        """Let time pass, unless the lab ends."""
        self._gateway.wait(self.name, lambda _: False, seconds)

    def wait_answer(self, command_id: str, seconds: float = PATIENCE_SECONDS) -> Json:
        """Wait for a command's final status."""
        self.wait(
            lambda page: bool(page.answers(command_id)),
            "a final command status",
            lambda page: page.command_statuses(command_id)[-1:],
            seconds,
        )
        return self.page().answers(command_id)[-1]

    def wait(
        self,
        happened: Callable[[Page], bool],
        expected: str,
        seen: Callable[[Page], object],
        seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """Wait for something at the gateway; `seen` says what there is instead."""
        if not self._gateway.wait(self.name, happened, seconds):
            raise Unmet(f"within {seconds:.0f} s at the gateway", expected, seen(self.page()))

    def wait_root(
        self,
        happened: Callable[[Root], bool],
        expected: str,
        seen: Callable[[Root], object],
        seconds: float = PATIENCE_SECONDS,
    ) -> None:
        """Wait for something on the node's disk, or for something else that announces itself to nobody."""
        until = time.monotonic() + seconds
        while not happened(self.root):
            if time.monotonic() > until:
                raise Unmet(f"within {seconds:.0f} s on the disk", expected, seen(self.root))
            self.pause(_LOOK_SECONDS)


def status_of(node: LabNode) -> Json:
    """What `bcd update --json` says on the node.

    Raises:
        Unmet: it failed or said something else than one JSON object.
    """
    done = node.run("update", "--json")
    try:
        document = json.loads(done.stdout)
    except ValueError:
        document = None
    if done.returncode != 0 or not isinstance(document, dict):
        raise Unmet("`bcd update --json`", "status 0 and one object", f"status {done.returncode}: {done.stderr[-300:]}")
    return document


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
        return True


def _environment(root: Root) -> dict[str, str]:
    """This process's, without what would lead a node away from the lab or make it take the lab for a service.

    Of a split lab's, which was root's or is sudo's, only what a service has.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("BCD_")}
    for name in _SYSTEMD_VARIABLES:
        environment.pop(name, None)
    if root.node_uid is not None:
        environment = {name: environment[name] for name in _OF_A_SERVICE if name in environment}
        environment["PATH"] = _PATH
    for name in ("no_proxy", "NO_PROXY"):
        environment[name] = "127.0.0.1,localhost"
    if root.node_uid is None:
        environment["TMPDIR"] = str(root.temporary)
    environment[FAULT_FILE_VARIABLE] = str(root.fault_file)
    environment[CLOCK_FILE_VARIABLE] = str(root.clock_file)
    return environment


def _of_the_user(root: Root) -> dict[str, str]:
    """What is the node's alone: the helper, which is root, must load nothing from a directory of the node's."""
    if root.node_uid is None:
        return {}
    number = str(root.node_uid)
    return {"HOME": str(root.data), "TMPDIR": str(root.temporary), "USER": number, "LOGNAME": number}
