"""systemd: units that start something else, crashed, do not bring the old binary back, or do not answer."""

from bcd.core.units import NODE_UNIT, ROLLBACK_UNIT
from bcd.doctor.checks import CHECKS
from bcd.doctor.finding import Level
from bcd.doctor.probes import Ran
from bcd.doctor.selftest.fault import Fault, Faults
from bcd.doctor.selftest.machine import UP
from bcd.doctor.selftest.root import DAY, Root

_ALL = frozenset(check.id for check in CHECKS if check.id.startswith("service."))
_FRESH = frozenset({"slots.entrypoint-link", "update.last-confirm"})


def _unit(root: Root, **properties: str) -> None:
    root.machine.units[NODE_UNIT].update(properties)


def _rollback_unit(root: Root, **properties: str) -> None:
    root.machine.units[ROLLBACK_UNIT].update(properties)


def _no_systemd(root: Root) -> None:
    (root.home / "systemd").rmdir()


def _no_unit(root: Root) -> None:
    root.machine.units[NODE_UNIT] = {"LoadState": "not-found"}


def _starts(root: Root, program: str) -> None:
    _unit(root, ExecStart=f"{{ path={program} ; argv[]={program} node ; ignore_errors=no ; pid=0 }}")


def _starts_by_another_name(root: Root) -> None:
    root.link("usr-bin", "bin")
    _starts(root, f"{root.home}/usr-bin/bcd")


def _restarted_long_ago(root: Root) -> None:
    root.machine.clock.up = 10 * DAY
    _unit(root, NRestarts="1", ExecMainStartTimestampMonotonic=str(int(0.5 * DAY * 1e6)))


def _systemctl(root: Root, said: Ran | Exception) -> None:
    root.machine.said["systemctl"] = said


_BUS_IS_DEAD = Ran(status=1, stdout="", stderr="Failed to connect to bus: No such file or directory\n")


def _failed(root: Root) -> None:
    _unit(root, ActiveState="failed", SubState="failed", Result="exit-code")


SERVICE_FAULTS: Faults = (
    Fault(
        check="service.manager",
        name="no systemd",
        plant=_no_systemd,
        level=Level.NOTE,
        says="a crash-looping update is not rolled back by itself",
    ),
    Fault(
        check="service.manager",
        name="systemd does not know bcd",
        plant=_no_unit,
        level=Level.NOTE,
        says="does not start bcd",
    ),
    Fault(
        check="service.manager",
        name="systemctl does not answer",
        plant=lambda root: root.machine.time_out("systemctl"),
        level=Level.UNKNOWN,
        says="systemctl did not answer: no answer within 2 s",
        also=_ALL - {"service.manager"},
    ),
    Fault(
        check="service.manager",
        name="systemctl is not installed",
        plant=lambda root: _systemctl(root, FileNotFoundError(2, "No such file or directory", "systemctl")),
        level=Level.UNKNOWN,
        says="systemctl is not installed",
        also=_ALL - {"service.manager"},
    ),
    Fault(
        check="service.manager",
        name="systemd's bus is dead",
        plant=lambda root: _systemctl(root, _BUS_IS_DEAD),
        level=Level.UNKNOWN,
        says="Failed to connect to bus",
        also=_ALL - {"service.manager"},
    ),
    Fault(
        check="service.exec-start",
        name="the unit starts another program",
        plant=lambda root: _starts(root, "/opt/bcd/bcd"),
        level=Level.FAIL,
        says="starts /opt/bcd/bcd, and updates switch",
    ),
    Fault(
        check="service.exec-start",
        name="the unit starts the entrypoint by another name of its directory",
        plant=_starts_by_another_name,
        level=Level.OK,
        says="bcd.service starts",
    ),
    Fault(
        check="service.exec-start",
        name="no systemd",
        plant=_no_systemd,
        level=Level.SKIPPED,
        says="this machine has no systemd",
        also=frozenset({"service.manager"}),
    ),
    Fault(
        check="service.active",
        name="the service failed",
        plant=_failed,
        level=Level.FAIL,
        says="bcd.service failed (exit-code)",
    ),
    Fault(
        check="service.active",
        name="the service is stopped",
        plant=lambda root: _unit(root, ActiveState="inactive", SubState="dead"),
        level=Level.WARN,
        says="bcd.service is inactive (dead)",
    ),
    Fault(
        check="service.active",
        name="the service waits to be restarted",
        plant=lambda root: _unit(root, ActiveState="activating", SubState="auto-restart", Result="exit-code"),
        level=Level.WARN,
        says="bcd.service is activating (auto-restart, exit-code)",
    ),
    Fault(
        check="service.restarts",
        name="systemd restarted it",
        plant=lambda root: _unit(root, NRestarts="3", ExecMainStartTimestampMonotonic=str(int((UP - 600) * 1e6))),
        level=Level.WARN,
        says="restarted bcd.service 3 times by itself, the last time less than an hour ago",
    ),
    Fault(
        check="service.restarts",
        name="systemd restarted it, and nothing runs now",
        plant=lambda root: _unit(root, NRestarts="1", ExecMainStartTimestampMonotonic="0"),
        level=Level.WARN,
        says="restarted bcd.service once by itself",
    ),
    Fault(
        check="service.restarts",
        name="systemd restarted it once, nine days ago",
        plant=_restarted_long_ago,
        level=Level.OK,
        says="restarted bcd.service once by itself, the last time 9 days ago",
    ),
    Fault(
        check="service.start-limit",
        name="the limit is a distribution's",
        plant=lambda root: _unit(root, StartLimitIntervalUSec="10s"),
        level=Level.WARN,
        says="the start limit is not five in 600 s",
    ),
    Fault(
        check="service.start-limit",
        name="there is no limit",
        plant=lambda root: _unit(root, StartLimitIntervalUSec="infinity"),
        level=Level.WARN,
        says="the start limit is not five in 600 s",
    ),
    Fault(
        check="service.start-limit",
        name="before the first update, which writes it",
        plant=Root.unadopted,
        level=Level.SKIPPED,
        says="the first one writes the crash-loop units",
        also=_FRESH,
    ),
    Fault(
        check="service.crash-loop-rollback",
        name="nothing happens on failure",
        plant=lambda root: _unit(root, OnFailure="mail@bcd.service"),
        level=Level.WARN,
        says="does not start bcd-rollback.service on failure",
    ),
    Fault(
        check="service.crash-loop-rollback",
        name="the rollback unit is not there",
        plant=lambda root: _rollback_unit(root, LoadState="not-found"),
        level=Level.FAIL,
        says="there is no such unit",
    ),
    Fault(
        check="service.crash-loop-rollback",
        name="the rollback unit is masked",
        plant=lambda root: _rollback_unit(root, LoadState="masked"),
        level=Level.FAIL,
        says="there is no such unit",
    ),
    Fault(
        check="service.crash-loop-rollback",
        name="systemd has not read it anew",
        plant=lambda root: _rollback_unit(root, NeedDaemonReload="yes"),
        level=Level.WARN,
        says="changed on disk after systemd read it",
    ),
    Fault(
        check="service.units",
        name="the rollback unit's file is missing",
        plant=lambda root: root.remove(f"units/{ROLLBACK_UNIT}"),
        level=Level.WARN,
        says="bcd-rollback.service is missing",
    ),
    Fault(
        check="service.units",
        name="somebody edited the drop-in",
        plant=lambda root: root.write(f"units/{NODE_UNIT}.d/50-bcd-rollback.conf", "[Service]\nRestart=no\n"),
        level=Level.WARN,
        says="50-bcd-rollback.conf differs",
    ),
    Fault(
        check="service.units",
        name="the rollback script is not this version's",
        plant=lambda root: root.write("lib/bcd-rollback.sh", "#!/bin/sh\nexit 0\n", 0o755),
        level=Level.WARN,
        says="bcd-rollback.sh differs",
    ),
    Fault(
        check="service.units",
        name="a FIFO in the place of the rollback unit",
        plant=lambda root: root.fifo(f"units/{ROLLBACK_UNIT}"),
        level=Level.WARN,
        says="bcd-rollback.service is no file",
    ),
    Fault(
        check="service.units",
        name="this user may not read them",
        plant=lambda root: root.forbid(f"units/{ROLLBACK_UNIT}"),
        level=Level.UNKNOWN,
        says="this user may not look at",
        as_nobody=True,
    ),
)
