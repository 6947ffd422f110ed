"""The plain report: reads top down, one thing a line, and nothing is told by colour or by a sign."""

from dataclasses import replace

from bcd.doctor.finding import Finding, Level
from bcd.doctor.report.plain import plain_lines
from tests.doctor.reports import FINDINGS, of_a_sick_node, report

SENTENCE = FINDINGS[1].message


def test_the_verdict_comes_first_then_the_problems_worst_first_then_the_rest() -> None:
    """What an operator at 3 a.m. needs is in the first lines."""
    lines = plain_lines(report(), verbose=False)
    assert lines[0] == (
        "this node needs someone now: 1 failure, 1 warning, 2 could not be told, 1 note, 2 ok, 1 skipped"
    )
    problems = [line for line in lines if line[:4] in ("FAIL", "WARN", "????")]
    assert problems == [
        f"FAIL  slots.digests: {SENTENCE}",
        "WARN  update.failed-versions: 1.4.2 failed here and is refused: [/foo] it said so",
        "????  update.lock, update.agent: could not be told: the disk is dead",
    ]


def test_each_problem_has_its_evidence_its_remedy_and_its_page() -> None:
    """In this order, right below it."""
    lines = plain_lines(report(), verbose=False)
    start = lines.index(f"FAIL  slots.digests: {SENTENCE}")
    assert [line[:10] for line in lines[start + 1 : start + 5]] == [
        "      saw:",
        "      saw:",
        "      do: ",
        "      see:",
    ]
    assert lines[start + 3].endswith("ln -sfn bcd-a /usr/local/lib/bcd/current && systemctl restart bcd.service")
    assert lines[start + 4] == "      see: docs/reference/checks.md#slotsdigests"


def test_the_quiet_rest_is_a_line_a_category_and_notes() -> None:
    """Folded, unless all of it is asked for."""
    folded = plain_lines(report(), verbose=False)
    assert "slots          1 failure, 1 ok" in folded
    assert "  note  service.manager: no systemd here" in folded
    assert not any("slot a holds 1.4.0" in line for line in folded)
    unfolded = plain_lines(report(), verbose=True)
    assert "  ok    slots.digests: slot a holds 1.4.0, as recorded" in unfolded
    assert "        saw: /run/systemd: missing" in unfolded
    assert "  skip  helper.socket: the node runs as root alone" in unfolded


def test_what_could_not_be_told_for_one_reason_is_one_problem_of_many_names() -> None:
    """A configuration that does not read is not told thirty times; other levels and other reasons stay apart."""
    same = [Finding(id=f"slots.{n}", level=Level.UNKNOWN, message="no configuration") for n in "abc"]
    other = Finding(id="slots.d", level=Level.UNKNOWN, message="timed out")
    failing = [Finding(id=f"slots.{n}", level=Level.FAIL, message="broken", hint="mend it") for n in "ef"]
    lines = plain_lines(report(*same, other, *failing), verbose=False)
    assert "????  slots.a, slots.b, slots.c: no configuration" in lines
    assert "????  slots.d: timed out" in lines
    assert "FAIL  slots.e: broken" in lines
    assert "FAIL  slots.f: broken" in lines


def test_a_run_that_was_cut_short_says_so_in_its_first_line() -> None:
    """Whatever it found."""
    lines = plain_lines(report(Finding(id="slots.a", level=Level.OK, message="well"), complete=False), verbose=False)
    assert lines[0] == "all is well (cut short): 1 ok"


def test_the_last_line_says_who_looked_and_how_long_a_wait_took() -> None:
    """Several tries only where there were."""
    assert plain_lines(report(), verbose=False)[-1] == (
        "node-17, /etc/bcd/config.toml; looked as uid 0 (root) for 0.12 s"
    )
    waited = replace(report(), attempts=4, waited_seconds=12.3)
    assert plain_lines(waited, verbose=False)[-1].endswith("for 0.12 s, after 4 tries in 12 s")


def test_every_line_of_ours_is_ascii() -> None:
    """Marks may be missing from a font, and an ellipsis from a serial line (field report C12)."""
    for line in plain_lines(of_a_sick_node(), verbose=True):
        assert line.isascii(), line
