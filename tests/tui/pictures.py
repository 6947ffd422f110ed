"""What a screen looks like, as text that a reviewer can read in a diff: the lines, and beside them where which style is.

A style is named after its looks in all three themes at once, so one picture holds them all, and a theme that gives two
things the same colour is seen.
"""

import string
from collections.abc import Mapping

from bcd.core.records import Json
from bcd.core.text import Foreign
from bcd.doctor.finding import Finding, Level
from bcd.tui.app import ConsoleApp
from tests.tui import states
from tests.tui.consoles import report_of
from tests.tui.drawn import Piece, Rgb, row

Looks = list[list[tuple[int, Piece]]]
"""A screen's lines, each of pieces with their columns."""
THEMES = ("bcd-dark", "bcd-light", "bcd-contrast")
REPORT = report_of(
    Finding(
        id="slots.current",
        level=Level.FAIL,
        message="current names neither slot",
        evidence=("/var/lib/bcd/slots/current -> ../elsewhere",),
        hint="sudo ln -sfn b/bcd /var/lib/bcd/slots/current",
    ),
    Finding(id="slots.a", level=Level.OK, message="slot a holds what its record says"),
    Finding(id="gateway.session", level=Level.WARN, message="refused", evidence=("not today",), hint="look there"),
    Finding(id="records.update", level=Level.UNKNOWN, message="this user may not read it", hint="sudo bcd doctor"),
    Finding(id="service.unit", level=Level.SKIPPED, message="there is no systemd here"),
)
EVENTS: tuple[Json, ...] = tuple(
    {"at": int(states.NOW) - 3600 * n, "event": event, "version": Foreign(version), "slot": "a", "reason": Foreign(why)}
    for n, (event, version, why) in enumerate(
        [
            ("rolled-back", "1.4.1", states.REASON),
            ("swapped", "1.4.1", ""),
            ("staged", "1.4.1", ""),
            ("confirmed", "1.4.0", ""),
        ]
    )
)
STATES = {
    "settled": states.at_rest,
    "downloading": states.downloading,
    "waiting": states.pending,
    "rolled-back": states.rolled_back,
    "first-run": states.never_updated,
    "no-permission": states.records_unreadable,
    "broken-record": states.record_broken,
    "agent-down": states.agent_down,
    "old-binary": states.old_binary,
}


class Picture:
    """What a screen shows, and in which colours."""

    def __init__(self, looks: Mapping[str, Looks]) -> None:
        texts = {theme: ["".join(p.text for _, p in line).rstrip() for line in lines] for theme, lines in looks.items()}
        first = texts[THEMES[0]]
        assert all(lines == first for lines in texts.values()), "a theme that changes the text"
        self._names: dict[tuple[str, ...], str] = {}
        self._paper: list[Rgb] = []
        """The first colour behind text: that of the screen."""
        out = []
        for number, text in enumerate(first):
            out += [f"|{text}", *self._styles([looks[theme][number] for theme in THEMES])]
        legend = [f"{name} {' / '.join(look)}" for look, name in self._names.items()]
        self.text = "\n".join([*out, "", f"styles: {' / '.join(THEMES)}", *legend, ""])

    def _styles(self, themes: list[list[tuple[int, Piece]]]) -> list[str]:
        """The line under a line of text: a letter where a style begins; none where all of it is in the first style."""
        columns = [{at + n: p for at, p in line for n in range(len(p.text))} for line in themes]
        marks, before, paper = "", "", self._paper
        for column in range(len(columns[0])):
            cells = [each[column] for each in columns]
            papers = [cell.paper for cell in cells]
            if cells[0].text.strip() or papers != paper:  # of a blank only the paper is seen
                name = self._names.setdefault(tuple(_look(cell) for cell in cells), _letter(len(self._names)))
                marks += name if name != before else " "
                before, paper = name, papers
                self._paper = self._paper or papers
            else:
                marks += " "
        return [f":{marks.rstrip()}"] if marks.strip() else []


def _letter(number: int) -> str:
    return (string.ascii_letters + string.digits)[number]


def _look(piece: Piece) -> str:
    return f"{_hex(piece.ink)} on {_hex(piece.paper)}{' ' + piece.marks if piece.marks else ''}"


def _hex(color: tuple[int, int, int]) -> str:
    return "".join(f"{value:02x}" for value in color)


def looks(app: ConsoleApp) -> Looks:
    """The screen's lines in the theme that is on."""
    return [list(row(strip)) for strip in app.screen._compositor.render_strips()]
