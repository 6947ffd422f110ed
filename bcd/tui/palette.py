"""The command palette: every action of every screen by name, whichever screen is open. Made from the bindings.

An action of another screen goes there first, so that what happens is seen. What can't be done now says so.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from textual.app import App
from textual.binding import Binding
from textual.command import DiscoveryHit, Hit, Hits, Provider

from bcd.tui.places import screen_class
from bcd.tui.widgets.top_bar import SCREENS

_PLAIN = ("app.", "screen.")


class Command(NamedTuple):
    """One line of the palette."""

    name: str
    help: str
    run: Callable[[], object]


def commands_of(app: "App[Any]") -> Iterator[Command]:
    """All of them: the app's, then each screen's, then the themes."""
    for binding in _distinct(type(app).BINDINGS):
        name = f"Go to {binding.description}" if binding.action.startswith("switch_mode") else binding.description
        if binding.action != "command_palette":
            yield Command(name, f"key {app.get_key_display(binding)}", partial(app.run_action, binding.action))
    for mode in SCREENS:
        for binding in _distinct(screen_class(mode).BINDINGS):
            if not binding.action.startswith(_PLAIN):
                name = f"{mode.capitalize()}: {binding.description}"
                yield Command(name, f"key {app.get_key_display(binding)}", partial(_act_on, app, mode, binding))
    for theme in sorted(app.available_themes):
        if theme.startswith("bcd-"):
            yield Command(f"Theme: {theme.removeprefix('bcd-')}", "", partial(_set_theme, app, theme))


def _distinct(bindings: object) -> Iterator[Binding]:
    seen = set()
    for binding in bindings if isinstance(bindings, list) else ():
        if isinstance(binding, Binding) and binding.action not in seen:
            seen.add(binding.action)
            yield binding


def _set_theme(app: "App[Any]", theme: str) -> None:
    app.theme = theme


async def _act_on(app: "App[Any]", mode: str, binding: Binding) -> None:
    if app.current_mode != mode:
        await app.switch_mode(mode)
    screen = app.screen

    async def act() -> None:
        if not await app.run_action(binding.action, screen):
            app.notify(f"not possible now: {binding.description}", severity="warning", markup=False)

    screen.call_after_refresh(act)


class ConsoleCommands(Provider):
    """Offers them, and finds them as they are typed."""

    async def discover(self) -> Hits:
        """Every command."""
        for command in commands_of(self.app):
            yield DiscoveryHit(command.name, command.run, help=command.help)

    async def search(self, query: str) -> Hits:
        """The ones that match."""
        matcher = self.matcher(query)
        for command in commands_of(self.app):
            if (score := matcher.match(command.name)) > 0:
                yield Hit(score, matcher.highlight(command.name), command.run, help=command.help)
