"""Pictures of every screen of the console, in dark and light, over a real lab in which all of it really happens."""

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path

from picture import recorder, save
from textual.pilot import Pilot

from bcd.commands.console import Asked, open_on_this_machine
from bcd.lab.desk import Desk
from bcd.lab.session import LabSession, lab_session
from bcd.tui.app import ConsoleApp
from bcd.tui.themes import THEMES, palette
from bcd.tui.view import View

_SIZE = (112, 34)
_SECONDS = 120.0


def console_pictures() -> None:
    """Make them all."""
    with lab_session() as lab:
        app, journal = open_on_this_machine(Asked(config_path=lab.config, view=View(screen="lab"), log=lab.log), lab)
        try:
            asyncio.run(_Photographer(app, lab).work())
        finally:
            journal.close()


class _Photographer:
    def __init__(self, app: ConsoleApp, lab: LabSession) -> None:
        self._app = app
        self._lab = lab
        self._desk: Desk = lab.desk
        self._pilot: Pilot[int]

    async def work(self) -> None:
        """What happens on the node, and a picture of each."""
        async with self._app.run_test(size=_SIZE) as self._pilot:
            await self._push("good", lambda: self._confirmed("1.4.1"))
            await self._take("overview-settled", "overview")
            await self._push("slow", lambda: self._app.snapshot is not None and self._part_downloaded() > 0.4)
            await self._take("overview-downloading", "overview")
            await self._until(lambda: self._confirmed("1.4.2"))
            await self._push("exits-at-once", lambda: self._failed("1.4.3"))
            await self._push("not-a-program", lambda: self._failed("1.4.4"))
            await self._until(lambda: self._app.snapshot is not None and self._app.snapshot.session[0] == "welcomed")
            await self._take("overview-rolled-back", "overview")
            await self._take("failed", "failed")
            await self._press("c")
            await self._take("failed-confirm")
            await self._press("escape")
            await self._push("never-welcomed", lambda: self._seconds_left() < 100)
            await self._take("overview-waiting", "overview")
            await self._take("lab", "lab")
            await self._app.switch_mode("overview")
            await self._press("e")
            await self._take("evidence")
            await self._press("escape", "question_mark")
            await self._take("help")
            await self._press("escape")
            await self._app.switch_mode("doctor")
            await self._until(lambda: self._app.report is not None)
            await self._press("down", "down", "down", "down")
            await self._take("doctor", "doctor")
            await self._check("signed-by-one")
            await self._take("check", "check")
            for place in ("history", "journal", "config"):
                await self._take(place, place)

    async def _check(self, name: str) -> None:
        await self._app.switch_mode("check")
        await self._press("slash")
        release = self._desk._shop.make(name, node="node")  # noqa: SLF001  # a release that is not pushed
        path = Path(self._desk.directory) / "release.json"
        path.write_text(release.section["signature"])
        field = self._app.screen.query_one("#check-given")
        setattr(field, "value", str(path))  # noqa: B010  # what typing it would give
        await self._press("enter")
        await self._until(lambda: self._app.acceptance is not None)

    async def _push(self, name: str, done: Callable[[], bool]) -> None:
        await asyncio.to_thread(self._desk.do, name)
        await self._until(done)

    async def _press(self, *keys: str) -> None:
        await self._pilot.press(*keys)
        await self._pilot.pause(0.3)

    async def _until(self, done: Callable[[], bool]) -> None:
        end = time.monotonic() + _SECONDS
        while not done():
            if time.monotonic() > end:
                raise SystemExit("the lab's node did not get where the picture needs it")
            await self._pilot.pause(0.1)

    async def _take(self, name: str, place: str = "") -> None:
        """A picture in either theme, of a screen or of what is on."""
        if place:
            await self._app.switch_mode(place)
        for theme in THEMES[:2]:
            self._app.theme = theme.name
            await self._pilot.pause(0.6)
            await self._until(self._is_whole)
            drawn = recorder(_SIZE[0])
            drawn.height = _SIZE[1]
            screen, behind = self._app.screen, self._app._background_screens  # noqa: SLF001
            drawn.print(
                screen._compositor.render_update(full=True, screen_stack=behind)  # noqa: SLF001  # as Textual's own pictures do
            )
            path = save(drawn, f"console-{name}-{theme.name.removeprefix('bcd-')}", "bcd console --lab", palette(theme))
            sys.stdout.write(f"screenshots/{path.name}\n")
        self._app.theme = THEMES[0].name

    def _is_whole(self) -> bool:
        """Whether the footer, which comes last, is drawn."""
        screen = self._app.screen_stack[0]
        return bool(screen.query("FooterKey")) and all(key.size.width for key in screen.query("FooterKey"))

    def _confirmed(self, version: str) -> bool:
        snapshot = self._app.snapshot
        update = None if snapshot is None or snapshot.status is None else snapshot.status.update.value
        return update is not None and update.confirmed is not None and update.confirmed.version == version

    def _failed(self, version: str) -> bool:
        snapshot = self._app.snapshot
        update = None if snapshot is None or snapshot.status is None else snapshot.status.update.value
        return update is not None and any(entry.version == version for entry in update.failed)

    def _part_downloaded(self) -> float:
        transfer = None if self._app.snapshot is None else self._app.snapshot.transfer
        return 0.0 if transfer is None else transfer[0] / transfer[1]

    def _seconds_left(self) -> float:
        snapshot = self._app.snapshot
        left = None if snapshot is None or snapshot.status is None else snapshot.status.left
        return float("inf") if left is None else left.seconds
