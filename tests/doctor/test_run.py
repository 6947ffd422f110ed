"""The runner: side by side, each check in its time, and whatever one does, the others are heard."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bcd.core.errors import HostError
from bcd.doctor import probes as probes_module
from bcd.doctor.check import Check, Look, Result, ok, unknown, warn
from bcd.doctor.checks import CHECKS
from bcd.doctor.finding import Finding, Level
from bcd.doctor.probes import CannotTell, Probes, Ran
from bcd.doctor.run import looked_as, run_checks
from bcd.doctor.selftest.root import Root

TIMEOUT_SECONDS = 0.4


@pytest.fixture
def over() -> Iterator[threading.Event]:
    """Set when the test ends: what hangs for it goes on."""
    event = threading.Event()
    yield event
    event.set()


def check(name: str, look: Look) -> Check:
    return Check(id=f"host.{name}", summary="", why="", network=False, look=look)


def well(name: str) -> Check:
    return check(name, lambda _see: ok("well"))


def probes(tmp_path: Path) -> Probes:
    return Probes(config_path=str(tmp_path / "none.toml"), euid=1234)


def raising(error: Exception) -> Look:
    def look(_see: Probes) -> Result:
        raise error

    return look


def hanging(over: threading.Event, while_doing: str = "") -> Look:
    def look(see: Probes) -> Result:
        if while_doing:
            see.doing(while_doing)
        over.wait(30)
        return ok("too late")

    return look


def by_id(findings: tuple[Finding, ...]) -> dict[str, Finding]:
    return {finding.id: finding for finding in findings}


def test_a_hundred_slow_checks_take_the_time_of_one(tmp_path: Path) -> None:
    """They wait side by side."""
    barrier = threading.Barrier(100, timeout=20)

    def meets_the_others(_see: Probes) -> Result:
        barrier.wait()
        return ok("all of them were at it at once")

    checks = [check(f"slow-{n}", meets_the_others) for n in range(100)]
    report = run_checks(checks, probes(tmp_path), timeout_seconds=20)
    assert {finding.level for finding in report.findings} == {Level.OK}
    assert report.complete


def test_findings_come_in_the_order_of_the_checks_and_are_told_as_they_end(tmp_path: Path) -> None:
    """The report does not depend on who was first; the progress does."""
    told: list[str] = []
    first_may_end = threading.Event()

    def late(_see: Probes) -> Result:
        assert first_may_end.wait(20)
        return ok("late")

    def tell(ended: Check, findings: object) -> None:
        assert findings
        told.append(ended.id)
        first_may_end.set()

    report = run_checks([check("late", late), well("early")], probes(tmp_path), timeout_seconds=20, told=tell)
    assert [finding.id for finding in report.findings] == ["host.late", "host.early"]
    assert told == ["host.early", "host.late"]


def test_checks_that_hang_cost_one_timeout_together_and_say_what_they_were_at(
    tmp_path: Path, over: threading.Event
) -> None:
    """However many there are; every other one is heard."""
    stuck = [check(f"stuck-{n}", hanging(over, f"hashing slot {n}")) for n in range(60)]
    started = time.monotonic()
    report = run_checks([*stuck, well("last")], probes(tmp_path), timeout_seconds=TIMEOUT_SECONDS)
    assert time.monotonic() - started < TIMEOUT_SECONDS * 4
    found = by_id(report.findings)
    assert found["host.last"].level is Level.OK
    assert found["host.stuck-7"].level is Level.UNKNOWN
    assert found["host.stuck-7"].message == "could not be told: timed out after 0.4 s while hashing slot 7"
    assert found["host.stuck-7"].hint == "try a longer --timeout"
    assert report.complete


def test_what_a_check_found_before_it_hung_is_kept(tmp_path: Path, over: threading.Event) -> None:
    """Slot a is torn, and slot b lies on a dead mount: both are said."""

    def look(see: Probes) -> Iterator[Result]:
        yield warn("slot a is torn", hint="mend it")
        hanging(over)(see)
        yield ok("slot b is whole")

    report = run_checks([check("digests", look)], probes(tmp_path), timeout_seconds=TIMEOUT_SECONDS)
    assert [(f.level, f.message) for f in report.findings] == [
        (Level.WARN, "slot a is torn"),
        (Level.UNKNOWN, "could not be told: timed out after 0.4 s"),
    ]


def test_what_a_check_found_before_it_broke_is_kept(tmp_path: Path) -> None:
    """And so is why it broke."""

    def look(_see: Probes) -> Iterator[Result]:
        yield warn("slot a is torn", hint="mend it")
        raise OSError(5, "Input/output error", "/slots/bcd-b")

    report = run_checks([check("digests", look)], probes(tmp_path), timeout_seconds=20)
    assert [f.message for f in report.findings] == [
        "slot a is torn",
        "could not be told: /slots/bcd-b: Input/output error",
    ]


@pytest.mark.parametrize(
    ("error", "message", "hint"),
    [
        (CannotTell("systemctl is not installed", "install it"), "systemctl is not installed", "install it"),
        (HostError("io-error", "the disk is dead", "run `x`"), "the disk is dead", "run `x`"),
        (PermissionError(13, "Permission denied", "/a"), "this user may not look at /a", "sudo bcd doctor --config"),
        (PermissionError(13, "Permission denied"), "this user may not look at something", "sudo bcd doctor --config"),
        (OSError(5, "Input/output error", b"/b"), "/b: Input/output error", ""),
        (RuntimeError("oops"), "the check itself broke: RuntimeError: oops", "report it"),
        (KeyError("x"), "the check itself broke: KeyError: 'x'", "report it"),
        (RecursionError(), "the check itself broke: RecursionError: ", "report it"),
    ],
    ids=["cannot tell", "of core's", "not permitted", "not permitted, no path", "disk", "bug", "key", "recursion"],
)
def test_a_check_that_raises_is_unknown_with_the_reason(
    tmp_path: Path, error: Exception, message: str, hint: str
) -> None:
    """Never a traceback, never read as healthy; the next check is heard."""
    report = run_checks([check("a", raising(error)), well("b")], probes(tmp_path), timeout_seconds=20)
    broken, other = report.findings
    assert (broken.level, broken.message) == (Level.UNKNOWN, f"could not be told: {message}")
    assert broken.hint.startswith(hint)
    assert other.level is Level.OK
    assert report.verdict == "unknown"


def test_a_check_that_says_nothing_is_broken(tmp_path: Path) -> None:
    """It must not vanish from the report."""

    def nothing(_see: Probes) -> Iterator[Result]:
        yield from ()

    (finding,) = run_checks([check("mute", nothing)], probes(tmp_path), timeout_seconds=20).findings
    assert finding.level is Level.UNKNOWN
    assert "it found nothing to say" in finding.message


def test_a_run_that_is_stopped_midway_keeps_what_was_found(tmp_path: Path, over: threading.Event) -> None:
    """Incomplete, and what had not ended is unknown."""
    stop = threading.Event()
    checks = [well("a"), check("b", hanging(over, "reading /dead"))]
    report = run_checks(checks, probes(tmp_path), timeout_seconds=20, told=lambda *_: stop.set(), stop=stop)
    found = by_id(report.findings)
    assert not report.complete
    assert found["host.a"].level is Level.OK
    assert found["host.b"].message == "could not be told: the run was cut short while reading /dead"
    assert report.seconds < 10


def test_a_run_that_was_not_stopped_is_complete_though_a_check_timed_out(tmp_path: Path, over: threading.Event) -> None:
    """Each had its say; one of them that it does not know."""
    stop = threading.Event()
    report = run_checks([check("a", hanging(over))], probes(tmp_path), timeout_seconds=TIMEOUT_SECONDS, stop=stop)
    assert report.complete


def test_one_run_asks_each_probe_once(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many checks want it and however many at one time: one run must not contradict itself."""
    asked: Counter[str] = Counter()
    slow_down = threading.Event()

    def counted(name: str, answer: Callable[..., object]) -> Callable[..., object]:
        def ask(*args: object) -> object:
            asked[name] += 1
            slow_down.wait(0.05)  # so that the others come meanwhile
            return answer(*args)

        return ask

    see = root.probes()
    for module, name in ((probes_module, "load_config"), (probes_module, "read_status")):
        monkeypatch.setattr(module, name, counted(name, getattr(module, name)))
    see.look_at_live = counted("live", see.look_at_live)  # type: ignore[assignment]
    see.look_at_session = counted("session", see.look_at_session)  # type: ignore[assignment]
    run = see.run

    def counted_run(command: list[str], timeout_seconds: float) -> Ran:
        asked[" ".join(command)] += 1
        return run(command, timeout_seconds)

    see.run = counted_run  # type: ignore[assignment]
    report = run_checks(CHECKS, see, timeout_seconds=20)
    assert report.verdict == "ok"
    assert {"load_config", "read_status", "live", "session", "systemctl show --no-pager bcd.service"} <= set(asked)
    assert [name for name, count in asked.items() if count > 1] == []


def test_a_probe_that_fails_fails_for_all_who_ask(tmp_path: Path) -> None:
    """And is not tried again: a dead gateway is not called three times."""
    calls = []

    def fails() -> int:
        calls.append(1)
        raise CannotTell("it is dead")

    see = probes(tmp_path)
    for _ in range(3):
        with pytest.raises(CannotTell, match="it is dead"):
            see.remember("thing", fails)
    assert calls == [1]


def test_a_gateway_that_hangs_costs_one_timeout_and_only_its_own_checks(root: Root) -> None:
    """Three checks want it; the run takes one timeout, and all others are as on a healthy node."""
    root.machine.hanging.add("session")
    started = time.monotonic()
    report = run_checks(CHECKS, root.probes(), timeout_seconds=1.0)
    assert 1.0 <= time.monotonic() - started < 1.9
    hung = {f.id for f in report.findings if f.level is Level.UNKNOWN}
    assert hung == {"gateway.reachable", "gateway.certificate", "gateway.clock"}
    assert {f.level for f in report.findings if f.id not in hung} <= {Level.OK, Level.SKIPPED}


def test_a_dead_mount_under_everything_costs_one_timeout(
    root: Root, over: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nearly all checks want the state; all of them wait, and the whole run waits no longer than one."""

    def never(*_args: object) -> object:
        over.wait(30)
        raise AssertionError

    monkeypatch.setattr(probes_module, "read_status", never)
    started = time.monotonic()
    report = run_checks(CHECKS, root.probes(), timeout_seconds=TIMEOUT_SECONDS)
    assert time.monotonic() - started < TIMEOUT_SECONDS * 4
    assert sum(1 for f in report.findings if "timed out" in f.message) >= 16
    found = by_id(report.findings)
    assert found["configuration.parses"].level is Level.OK
    assert found["gateway.reachable"].level is Level.OK


def test_text_in_a_result_is_made_safe_to_show(tmp_path: Path) -> None:
    """Whoever had a say in it: a record, a server, systemd."""
    evil = "\x1b]52;c;ZXZpbA==\x07\u202e\x9b2J"
    checks = [
        check("a", lambda _see: unknown(evil, evil, hint=evil)),
        check("b", raising(RuntimeError(evil))),
    ]
    for finding in run_checks(checks, probes(tmp_path), timeout_seconds=20).findings:
        for text in (finding.message, *finding.evidence, finding.hint):
            assert text.isprintable()


def test_the_report_says_who_looked_at_what(tmp_path: Path) -> None:
    """Privileges differ, and so do paths."""
    report = run_checks([well("a")], probes(tmp_path), timeout_seconds=20)
    assert report.looked_as == "uid 1234"
    assert report.about.endswith(f", {tmp_path / 'none.toml'}")
    assert looked_as(0) == "uid 0 (root)"
