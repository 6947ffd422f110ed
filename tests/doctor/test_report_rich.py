"""The report on a terminal: the same words as plain, wrapped to its width, in colour only where that is wanted."""

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from bcd.doctor.finding import Report
from bcd.doctor.report.rich_report import rich_report
from bcd.doctor.report.words import problems, verdict_line
from tests.doctor.reports import DIGEST, of_a_sick_node, report

_SGR = re.compile(r"\x1b\[[0-9;]*m")


def drawn(
    shown: Report, *, width: int = 80, color: bool = False, verbose: bool = False, encoding: str = "utf-8"
) -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors="strict", write_through=True)
    console = Console(
        file=stream,
        width=width,
        force_terminal=color,
        color_system="truecolor" if color else None,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    console.print(rich_report(shown, verbose=verbose))
    return raw.getvalue().decode(encoding)


def words(text: str) -> str:
    """Without line ends and the blanks that fill up: what is said."""
    return "".join(_SGR.sub("", text).split())


@pytest.mark.parametrize("width", [40, 80, 140])
@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("verbose", [False, True])
def test_no_line_is_wider_than_the_terminal_and_no_word_is_lost(width: int, color: bool, verbose: bool) -> None:
    """Every message, evidence, remedy and page is there to be read and copied, however narrow it is."""
    for shown in (report(), of_a_sick_node()):
        text = drawn(shown, width=width, color=color, verbose=verbose)
        assert max(cell_len(_SGR.sub("", line)) for line in text.splitlines()) <= width
        said = words(text)
        assert words(verdict_line(shown)) in said
        for name, finding in problems(shown):
            for part in (name, finding.message, *finding.evidence, finding.hint, finding.link):
                assert words(part) in said, part


def test_a_digest_is_whole_on_one_line_where_it_fits() -> None:
    """It is there to be copied."""
    assert any(DIGEST in line for line in drawn(report(), width=140).splitlines())


def test_brackets_in_a_finding_are_no_markup() -> None:
    """A reason of `[/foo]` is shown as it is (field report C05)."""
    text = words(drawn(report(), color=True))
    assert "[/foo]itsaidso" in text
    assert "[bold]isnomarkup[/bold]" in text


def test_without_colour_there_is_no_escape_at_all() -> None:
    """Under NO_COLOR and in a pipe."""
    assert "\x1b" not in drawn(report(), color=False, verbose=True)


def test_with_colour_the_levels_differ_and_the_words_are_the_same() -> None:
    """Colour says again what words said."""
    colored, plain = drawn(report(), color=True), drawn(report(), color=False)
    assert "\x1b[1;31m" in colored
    assert "\x1b[1;33m" in colored
    assert words(colored) == words(plain)


def test_an_ascii_terminal_shows_all_of_it() -> None:
    """Nothing of ours needs more (field report C12); the stream is strict, so that anything else would raise."""
    for width in (80, 140):
        assert "FAIL" in drawn(of_a_sick_node(), width=width, encoding="ascii", verbose=True)


def test_the_problems_come_before_the_quiet_rest() -> None:
    """Read top down."""
    text = drawn(report())
    assert text.index("this node needs someone now") < text.index("FAIL") < text.index("WARN") < text.index("????")
    assert text.index("????") < text.index("configuration  1 ok")


def test_all_of_it_is_shown_when_asked_for() -> None:
    """The evidence of what is well, too."""
    assert "/run/systemd: missing" not in drawn(report())
    assert "/run/systemd: missing" in drawn(report(), verbose=True)
    assert "slot a holds 1.4.0, as recorded" in drawn(report(), verbose=True)
