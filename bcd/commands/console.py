"""`bcd console`: the terminal looked at first, then Textual, and an honest exit status at the end."""

from bcd.core.build import this_build
from bcd.core.clock import SystemClock
from bcd.core.config import load_config
from bcd.core.errors import BcdError
from bcd.core.exits import ExitStatus
from bcd.core.history import read_events
from bcd.core.layout import layout_of
from bcd.core.manager import Manager
from bcd.core.records import Failed, Json
from bcd.core.service import NoServiceManager
from bcd.node.client import read_live_state
from bcd.tui.preflight import require_terminal

_EVENTS = 500


def run_console(config_path: str, *, screen: str) -> ExitStatus:
    """Open the console.

    Raises:
        UsageError: `no-terminal`.
    """
    require_terminal()
    from bcd.doctor.checks import CHECKS
    from bcd.doctor.finding import Report
    from bcd.doctor.probes import Probes
    from bcd.doctor.run import run_checks
    from bcd.tui.app import ConsoleApp
    from bcd.tui.source import Source

    build, clock = this_build(), SystemClock()
    source = Source(config_path, build, clock, read_live_state)

    def events() -> tuple[Json, ...]:
        try:
            found = []
            for event in read_events(layout_of(load_config(config_path)).history):
                found.append(event)
                if len(found) == _EVENTS:
                    break
            return tuple(found)
        except (OSError, BcdError):
            return ()

    def examine() -> Report:
        return run_checks(CHECKS, Probes(config_path=config_path, timeout_seconds=4.0), timeout_seconds=5.0)

    def clear(versions: tuple[str, ...]) -> tuple[Failed, ...]:
        manager = Manager(config=load_config(config_path), build=build, clock=clock, service=NoServiceManager())
        return manager.clear_failed(versions)

    app = ConsoleApp(read=source.read, read_events=events, examine=examine, clear=clear, start_at=screen)
    app.run(mouse=False)
    # Textual ends a crashed app with a return code and no exception: it must not pass for a good end.
    code = app.return_code
    return ExitStatus.CRASH if code == 1 else ExitStatus(code or 0)
