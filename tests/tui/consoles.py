"""A console over a world of values: what it reads can be changed while it is open, what it clears is kept."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from textual.pilot import Pilot

from bcd.core.acceptance import Acceptance
from bcd.core.errors import UsageError
from bcd.core.records import Failed, Json
from bcd.doctor.finding import Finding, Level, Report
from bcd.tui.app import ConsoleApp
from bcd.tui.journal import NoJournal
from bcd.tui.lab_port import LabPort
from bcd.tui.snapshot import Snapshot
from bcd.tui.view import View
from tests.tui import states

NARROW, WIDE = (80, 24), (200, 50)


def report_of(*findings: Finding) -> Report:
    """A doctor's report."""
    return Report(
        findings=findings,
        complete=True,
        started_at=int(states.NOW),
        seconds=0.1,
        looked_as="uid 0 (root)",
        about="here",
    )


WELL = report_of(Finding(id="slots.current", level=Level.OK, message="current names slot b"))


class World:
    """What a console reads and does."""

    def __init__(self, snapshot: Snapshot, *, events: tuple[Json, ...] = (), report: Report = WELL) -> None:
        self.snapshot = snapshot
        self.events = events
        self.report = report
        self.examined = 0
        self.cleared: list[tuple[str, ...]] = []
        """What was asked to be cleared, one entry a call."""
        self.lab: LabPort | None = None
        self.read_only = False
        self.clear: Callable[[tuple[str, ...]], tuple[Failed, ...]] = self._clear

    def _clear(self, versions: tuple[str, ...]) -> tuple[Failed, ...]:
        self.cleared.append(versions)
        return tuple(states.failed_entry(version) for version in versions)

    def _examine(self) -> Report:
        self.examined += 1
        return self.report

    def _judge(self, given: str) -> Acceptance:
        raise UsageError("bad-manifest", f"{given} is no manifest")

    def app(
        self, start_at: str = "overview", *, signals: bool = False, view: View | None = None, theme: str = "bcd-dark"
    ) -> ConsoleApp:
        """A console over this world."""
        return ConsoleApp(
            read=lambda: self.snapshot,
            read_events=lambda: self.events,
            examine=self._examine,
            clear=lambda versions: self.clear(versions),  # noqa: PLW0108  # a test may change it later
            judge=self._judge,
            journal=NoJournal("no journal here"),
            view=view or View(screen=start_at),
            theme=theme,
            signals=signals,
            lab=self.lab,
            read_only=self.read_only,
        )


@asynccontextmanager
async def opened(
    world: World, start_at: str = "overview", size: tuple[int, int] = NARROW
) -> AsyncIterator[tuple[ConsoleApp, Pilot[int]]]:
    """An open console, its first frame drawn."""
    app = world.app(start_at)
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        yield app, pilot


def lines_of(app: ConsoleApp) -> list[str]:
    """What is on the screen, a string a line."""
    return [strip.text for strip in app.screen._compositor.render_strips()]


def text_of(app: ConsoleApp) -> str:
    """What is on the screen."""
    return "\n".join(lines_of(app))


def flat(app: ConsoleApp) -> str:
    """What is on the screen, with every run of blanks and borders as one blank: a sentence may be wrapped."""
    return " ".join("".join(" " if c in "│┃║▎▊" else c for c in text_of(app)).split())


async def until(pilot: Pilot[int], happened: Callable[[], object], seconds: float = 5.0) -> None:
    """Let the console run until something has happened."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        await pilot.pause(0.02)


async def change(pilot: Pilot[int], world: World, snapshot: Snapshot) -> None:
    """Change what the console reads, and wait until it has seen that by itself."""
    world.snapshot = snapshot
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    await until(pilot, lambda: app.snapshot is snapshot)
    await pilot.pause()
