"""The tour says what happened, to people and to scripts, and never passes what did not end as the rules say."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bcd.core.errors import UsageError
from bcd.core.exits import ExitStatus
from bcd.lab.scenario import Group, Scenario, Stage
from bcd.lab.scenarios import GROUPS
from bcd.lab.tour.marks import marks_for
from bcd.lab.tour.result import Result, choose
from bcd.lab.tour.table import table
from bcd.lab.tour.tour import run_tour
from tests.lab.processes import nodes_in, until


def group(play: Callable[[Stage], str]) -> tuple[Group, ...]:
    return (Group(title="A group", scenarios=(Scenario(name="one", title="a title", proves="It is.", play=play),)),)


def ends_well(stage: Stage) -> str:
    stage.check("a number", 1, 1)
    return "well"


def ends_otherwise(stage: Stage) -> str:
    stage.node.root.log.write_text("what the node said\n")
    stage.check("a number", 1, 2)
    return "well"


def breaks(_: Stage) -> str:
    raise KeyError("a fault in the scenario")


def tour(
    play: Callable[[Stage], str], directory: Path | None, *, terminal: bool = False, color: bool | None = None
) -> tuple[ExitStatus, str]:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    color = terminal if color is None else color
    status = run_tour(
        directory=directory, only=(), color=color, terminal=terminal, out=out, err=out, groups=group(play)
    )
    out.seek(0)
    return status, out.read()


def test_all_as_the_rules_say_is_well_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    status, said = tour(ends_well, None)
    assert status is ExitStatus.OK
    assert "1 of 1 ended as the rules say" in said
    assert list(tmp_path.iterdir()) == []


def test_what_was_expected_and_seen_is_told_and_the_logs_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    status, said = tour(ends_otherwise, None)
    assert status is ExitStatus.PROBLEM
    for told in ("✗ one: a title", "a number", "expected 1", "saw      2", "what the node said", "0 of 1 ended"):
        assert told in said
    (kept,) = tmp_path.iterdir()
    assert str(kept / "nodes") in said
    assert (kept / "nodes" / "one" / "node.log").exists()


def test_a_scenario_that_breaks_has_failed(tmp_path: Path) -> None:
    status, said = tour(breaks, tmp_path / "lab")
    assert (status, "a fault in the scenario" in said) == (ExitStatus.PROBLEM, True)


def test_a_pipe_gets_no_escapes_and_a_terminal_does(tmp_path: Path) -> None:
    assert "\x1b" not in tour(ends_well, tmp_path / "lab")[1]
    assert "\x1b[" in tour(ends_well, tmp_path / "lab", terminal=True)[1]


def test_colour_that_was_asked_for_reaches_a_pipe_too(tmp_path: Path) -> None:
    """`--color always`, as for `less -R`."""
    said = tour(ends_well, tmp_path / "lab", color=True)[1]
    assert "\x1b[32m✓" in said
    assert "\x1b[?" not in said


def results() -> dict[str, Result]:
    return {
        scenario.name: Result(
            scenario=scenario,
            ended="refused: wrong-platform-binary",
            mismatches=(),
            took_seconds=123.4,
            offline_seconds=120.6,
            log="",
            log_tail=(),
        )
        for group in GROUPS
        for scenario in group.scenarios
    }


@pytest.mark.parametrize("width", [80, 100, 120, 140, 162, 400])
def test_the_table_fits_and_cuts_nothing_off(width: int) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    lines = [line.plain for line in table(GROUPS, results(), marks_for(stream), width)]
    assert max(map(len, lines)) <= width
    words = " ".join(" ".join(lines).split())
    for shown in GROUPS:
        assert shown.title in words
        for scenario in shown.scenarios:
            assert scenario.title in words
            assert any(scenario.proves.split()[-1] in line for line in lines)


@pytest.mark.parametrize(("encoding", "good"), [("utf-8", "✓"), ("ascii", "+"), ("latin-1", "+")])
def test_marks_are_what_the_stream_can_write(encoding: str, good: str) -> None:
    assert marks_for(io.TextIOWrapper(io.BytesIO(), encoding=encoding)).good == good


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_it_with_everything_that_it_started(tmp_path: Path, number: signal.Signals, status: int) -> None:
    code = "from bcd.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", code, "lab", "tour"],
        cwd=Path(__file__).parents[2],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        until(lambda: bool(nodes_in(tmp_path)))
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
    assert (process.returncode, said.count("\n")) == (status, 1), said
    assert nodes_in(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_only_takes_names_and_patterns_and_suggests_the_nearest() -> None:
    chosen = choose(GROUPS, ["by-section", "cut-in-*"])
    assert [s.name for g in chosen for s in g.scenarios] == ["by-section", "cut-in-rollback"]
    assert choose(GROUPS, []) == GROUPS
    with pytest.raises(UsageError) as error:
        choose(GROUPS, ["by-sektion"])
    assert (error.value.code, "by-section" in error.value.hint) == ("unknown-scenario", True)
