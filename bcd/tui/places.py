"""The places of the console by name, each screen's module loaded when it is first needed: the first frame waits for one."""

from collections.abc import Callable
from importlib import import_module

from bcd.tui.screens.base import ConsoleScreen
from bcd.tui.widgets.top_bar import SCREENS


def screen_class(name: str) -> type[ConsoleScreen]:
    """The screen of that name."""
    found: type[ConsoleScreen] = getattr(import_module(f"bcd.tui.screens.{name}"), f"{name.capitalize()}Screen")
    return found


def screen_maker(name: str) -> Callable[[], ConsoleScreen]:
    """Makes that screen when it is called, and loads it only then."""

    def make() -> ConsoleScreen:
        return screen_class(name)()

    return make


def load_all() -> None:
    """Load what is not there yet, so that nobody waits at the first look at a screen either."""
    for name in SCREENS:
        screen_class(name)
