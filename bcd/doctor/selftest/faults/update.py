"""Updates that wait, are overdue or failed, broken records, a floor above what runs, a lock that is held."""

import fcntl
import os

from bcd.core.records import Confirmed, Failed, UpdateRecord
from bcd.doctor.finding import Level
from bcd.doctor.selftest.fault import Fault, Faults
from bcd.doctor.selftest.machine import NOW
from bcd.doctor.selftest.root import DAY, NEW, Root

_OF_UPDATE_JSON = frozenset({"update.failed-versions", "update.floor", "update.last-confirm"})
"""Who can't say anything without `update.json`: broken is not empty."""
_PENDING = frozenset({"update.pending"})


def _two_failed(root: Root) -> None:
    failed = tuple(Failed(version, 16, "it was not welcomed", NOW - DAY) for version in ("1.4.2", "1.4.3"))
    root.write_update(UpdateRecord(15, Confirmed(*NEW, NOW - DAY, "5a" * 16), failed))


def _confirmed(root: Root, at: int) -> None:
    root.write_update(UpdateRecord(15, Confirmed(*NEW, at, "5a" * 16), ()))


def _held_lock(root: Root) -> None:
    # A real lock and the kernel's real list of them.
    handle = os.open(root.home / "var" / "update" / "update.lock", os.O_RDWR)
    root.machine.held.append(handle)
    fcntl.flock(handle, fcntl.LOCK_EX)
    root.link("proc/locks", "/proc/locks")


def _unreadable_pending(root: Root) -> None:
    root.swap(switched=False)
    root.forbid("var/update/upgrade.json")


def _stepped(root: Root, seconds: float) -> None:
    root.swap()
    root.machine.clock.now += seconds


def _agent(root: Root, **changes: object) -> None:
    root.machine.live = {**(root.machine.live or {}), **changes}


def _no_agent(root: Root) -> None:
    root.machine.live = None


def _shy_agent(root: Root) -> None:
    root.machine.live = None
    root.listen("var/node.sock", 0o600)
    root.forbid("var/node.sock")


def _lost_records(root: Root) -> None:
    root.remove("var/update/update.json")
    root.remove("lib/slots.json")


def _expiring(root: Root, seconds: float) -> None:
    root.expire("b", int(NOW + seconds))


def _expiring_pending(root: Root, seconds: float) -> None:
    root.swap()
    root.expire("a", int(NOW + seconds))


def _expiring_unsettled(root: Root) -> None:
    root.swap(switched=False)
    root.expire("a", NOW - DAY)


def _hanging_agent(root: Root) -> None:
    root.machine.hanging.add("live")


UPDATE_FAULTS: Faults = (
    Fault(
        check="update.records",
        name="a torn update.json",
        plant=lambda root: root.write("var/update/update.json", '{"format":1,"sequ'),
        level=Level.FAIL,
        says="update.json is broken: it does not parse",
        also=_OF_UPDATE_JSON,
    ),
    Fault(
        check="update.records",
        name="an upgrade.json full of NULs",
        plant=lambda root: root.write("var/update/upgrade.json", bytes(300)),
        level=Level.FAIL,
        says="nothing but NUL bytes",
        also=_PENDING | {"update.clocks"},
    ),
    Fault(
        check="update.records",
        name="an empty slots.json",
        plant=lambda root: root.write("lib/slots.json", ""),
        level=Level.FAIL,
        says="slots.json is broken: it is empty",
        also=frozenset({"slots.digests", "update.release-expiry"}),
    ),
    Fault(
        check="update.records",
        name="a FIFO in the place of update.json",
        plant=lambda root: root.fifo("var/update/update.json"),
        level=Level.FAIL,
        says="no regular file",
        also=_OF_UPDATE_JSON,
    ),
    Fault(
        check="update.records",
        name="a record that was moved aside",
        plant=lambda root: root.write("var/update/update.json.corrupt-1790000000", "torn"),
        level=Level.FAIL,
        says="nobody has looked at it yet",
    ),
    Fault(
        check="update.records",
        name="this user may not read the records",
        plant=lambda root: root.forbid("var/update"),
        level=Level.UNKNOWN,
        says="this user may not read it",
        as_nobody=True,
        also=_OF_UPDATE_JSON | _PENDING | {"update.clocks", "update.lock", "slots.leftovers"},
    ),
    Fault(
        check="update.pending",
        name="an update waits for its welcome",
        plant=Root.swap,
        level=Level.WARN,
        says="1.4.2 waits in slot a for its welcome, 90 s left",
    ),
    Fault(
        check="update.pending",
        name="an update is overdue",
        plant=lambda root: root.swap(ago=300),
        level=Level.FAIL,
        says="1.4.2 is overdue by 180 s and nobody swapped back",
    ),
    Fault(
        check="update.pending",
        name="current is back, and the update is not settled",
        plant=lambda root: root.swap(switched=False),
        level=Level.WARN,
        says="the update to 1.4.2 is not settled yet",
    ),
    Fault(
        check="update.pending",
        name="this user may not read upgrade.json",
        plant=_unreadable_pending,
        level=Level.UNKNOWN,
        says="upgrade.json: this user may not read it",
        as_nobody=True,
        also=frozenset({"update.records", "update.clocks"}),
    ),
    Fault(
        check="update.clocks",
        name="both clocks agree on a pending update",
        plant=Root.swap,
        level=Level.OK,
        says="wall clock and boot clock agree",
        also=_PENDING,
    ),
    Fault(
        check="update.clocks",
        name="the wall clock was set back by an hour",
        plant=lambda root: _stepped(root, -3600),
        level=Level.WARN,
        says="stepped back by 3600 s",
        also=_PENDING,
    ),
    Fault(
        check="update.clocks",
        name="the wall clock was set forward",
        plant=lambda root: _stepped(root, 500),
        level=Level.WARN,
        says="stepped forward by 500 s",
        also=_PENDING,
    ),
    Fault(
        check="update.clocks",
        name="the machine was booted since the swap",
        plant=lambda root: root.swap(boot_id="another"),
        level=Level.NOTE,
        says="before this boot",
        also=_PENDING,
    ),
    Fault(
        check="update.failed-versions",
        name="a version failed",
        plant=lambda root: root.fail_version("1.4.2", "bcd 1.4.2 was not welcomed by a gateway before its deadline"),
        level=Level.WARN,
        says="1.4.2 failed here and is refused: bcd 1.4.2 was not welcomed",
    ),
    Fault(
        check="update.failed-versions",
        name="two versions failed",
        plant=_two_failed,
        level=Level.WARN,
        says="1.4.3 failed here",
    ),
    Fault(
        check="update.floor",
        name="what runs is below the configured floor",
        plant=lambda root: root.configure(release_sequence=20),
        level=Level.WARN,
        says="1.4.1 runs, whose sequence 15 is below the floor of 20",
    ),
    Fault(
        check="update.floor",
        name="every record of it is lost",
        plant=_lost_records,
        level=Level.UNKNOWN,
        says="could not be told whether the floor is more than 15",
        also=frozenset({"slots.digests", "update.last-confirm"}),
    ),
    Fault(
        check="update.last-confirm",
        name="months ago",
        plant=lambda root: _confirmed(root, NOW - 200 * DAY),
        level=Level.NOTE,
        says="200 days ago, and nothing since",
    ),
    Fault(
        check="update.last-confirm",
        name="in this clock's future",
        plant=lambda root: _confirmed(root, NOW + 30 * DAY),
        level=Level.NOTE,
        says="this clock's future",
    ),
    Fault(
        check="update.last-confirm",
        name="never",
        plant=lambda root: root.write_update(UpdateRecord(15)),
        level=Level.NOTE,
        says="no release was ever confirmed here",
    ),
    Fault(
        check="update.release-expiry",
        name="what runs expires in 13 days",
        plant=lambda root: _expiring(root, 13 * DAY + 60),
        level=Level.NOTE,
        says="the manifest of 1.4.1 expires in 13 days",
    ),
    Fault(
        check="update.release-expiry",
        name="what runs expires within the hour",
        plant=lambda root: _expiring(root, 1800),
        level=Level.NOTE,
        says="expires in less than an hour",
    ),
    Fault(
        check="update.release-expiry",
        name="what runs expired after its rollout, as each release does one day",
        plant=lambda root: _expiring(root, -40 * DAY),
        level=Level.OK,
        says="1.4.1 expired 40 days ago; it goes on running",
    ),
    Fault(
        check="update.release-expiry",
        name="a pending release expires before it could be confirmed",
        plant=lambda root: _expiring_pending(root, 60),
        level=Level.NOTE,
        says="1.4.2 is pending here, and its manifest expires in less than an hour",
        also=_PENDING,
    ),
    Fault(
        check="update.release-expiry",
        name="a pending release expired meanwhile",
        plant=lambda root: _expiring_pending(root, -1),
        level=Level.NOTE,
        says="expires by now: nodes that come after it refuse it",
        also=_PENDING,
    ),
    Fault(
        check="update.release-expiry",
        name="a staged release that is not current expired: it is not taken, or is reused without its manifest",
        plant=_expiring_unsettled,
        level=Level.OK,
        says="1.4.1 can be rolled out for 180 more days",
        also=_PENDING,
    ),
    Fault(
        check="update.release-expiry",
        name="staged by an older bcd, which noted no expiry",
        plant=lambda root: root.expire("b", None),
        level=Level.SKIPPED,
        says="says no expiry",
    ),
    Fault(
        check="update.release-expiry",
        name="the running slot has no record",
        plant=lambda root: root.record_slot("b", None),
        level=Level.SKIPPED,
        says="has no record",
        also=frozenset({"slots.digests"}),
    ),
    Fault(
        check="update.release-expiry",
        name="this user may not read slots.json",
        plant=lambda root: root.forbid("lib/slots.json"),
        level=Level.UNKNOWN,
        says="slots.json: this user may not read it",
        as_nobody=True,
        also=frozenset({"slots.digests", "update.records"}),
    ),
    Fault(
        check="update.lock",
        name="somebody holds it",
        plant=_held_lock,
        level=Level.WARN,
        says="the update lock is held by process",
    ),
    Fault(
        check="update.lock",
        name="no update has run here",
        plant=lambda root: root.remove("var/update/update.lock"),
        level=Level.OK,
        says="there is no lock",
    ),
    Fault(
        check="update.agent",
        name="no agent answers",
        plant=_no_agent,
        level=Level.WARN,
        says="no agent answers on its socket",
    ),
    Fault(
        check="update.agent",
        name="the agent runs what is not current",
        plant=lambda root: _agent(root, version="1.4.0"),
        level=Level.WARN,
        says="the agent runs 1.4.0, and the current slot holds 1.4.1",
    ),
    Fault(
        check="update.agent",
        name="the agent has a trouble",
        plant=lambda root: _agent(root, error="download-failed: connection reset"),
        level=Level.NOTE,
        says="its last trouble: download-failed",
    ),
    Fault(
        check="update.agent",
        name="this user may not ask the agent",
        plant=_shy_agent,
        level=Level.UNKNOWN,
        says="this user may not ask",
        as_nobody=True,
    ),
    Fault(
        check="update.agent",
        name="the agent takes the connection and says nothing for ever",
        plant=_hanging_agent,
        level=Level.UNKNOWN,
        says="timed out after 1 s",
        also=frozenset({"configuration.service-paths", "gateway.proxies"}),
        timeout_seconds=1.0,
    ),
)
