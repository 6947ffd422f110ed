"""A terminal that can't hold the console is refused before Textual is loaded: status 2, within 0.3 s."""

import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bcd.core.errors import UsageError
from bcd.tui.preflight import require_terminal

ROOT = Path(__file__).parents[2]
CONSOLE = """
import sys, time
from bcd.core.errors import UsageError
from bcd.tui.preflight import require_terminal
begun = time.monotonic()
try:
    require_terminal()
except UsageError as error:
    print(error.code, error.hint, time.monotonic() - begun < 0.3, "textual" in sys.modules)
    sys.exit(2)
sys.exit(0)
"""


@pytest.fixture
def terminal() -> Iterator[int]:
    """A terminal."""
    master, slave = pty.openpty()
    yield slave
    os.close(master)
    os.close(slave)


def start(*, stdin: int, stderr: int, term: str = "xterm-256color", before: str = "") -> tuple[int, str]:
    """Ask in a process of its own; return its status and what it said."""
    done = subprocess.run(
        [sys.executable, "-c", before + CONSOLE],
        cwd=ROOT,
        stdin=stdin,
        stderr=stderr,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TERM": term},
        timeout=20,
    )
    return done.returncode, done.stdout


REFUSED = (2, "no-terminal", "`bcd update --json`", "`bcd doctor`", "True False")


def assert_refused(status: int, said: str) -> None:
    """Refused, in time, naming what works, with nothing of Textual loaded."""
    assert status == REFUSED[0]
    for part in REFUSED[1:]:
        assert part in said


def test_a_terminal_is_taken(terminal: int) -> None:
    assert start(stdin=terminal, stderr=terminal)[0] == 0


def test_no_terminal_at_all() -> None:
    """C03: a start without a terminal would burn a core and could not be quit."""
    assert_refused(*start(stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL))


def test_standard_input_is_none(terminal: int) -> None:
    assert_refused(*start(stdin=subprocess.DEVNULL, stderr=terminal))


def test_standard_error_is_none(terminal: int) -> None:
    """Textual draws there: the terminal would stay blank with a live console behind it."""
    assert_refused(*start(stdin=terminal, stderr=subprocess.DEVNULL))


@pytest.mark.parametrize("term", ["dumb", "", "unknown"])
def test_a_terminal_that_cannot_be_drawn_on(terminal: int, term: str) -> None:
    assert_refused(*start(stdin=terminal, stderr=terminal, term=term))


@pytest.mark.parametrize("number", [0, 2])
def test_a_closed_stream(terminal: int, number: int) -> None:
    assert_refused(*start(stdin=terminal, stderr=terminal, before=f"import os; os.close({number})\n"))


def test_the_linux_console_is_taken(terminal: int) -> None:
    assert start(stdin=terminal, stderr=terminal, term="linux")[0] == 0


def test_no_term_in_the_environment(terminal: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.isatty", lambda _: True)
    with pytest.raises(UsageError) as error:
        require_terminal({})
    assert error.value.code == "no-terminal"


def test_the_command_itself_refuses_at_once() -> None:
    """`run_console` asks before it loads Textual."""
    code = (
        "import sys, time\n"
        "from bcd.commands.console import Asked, run_console\n"
        "from bcd.core.errors import UsageError\n"
        "begun = time.monotonic()\n"
        "try:\n"
        "    run_console(Asked(config_path='/nonexistent'))\n"
        "except UsageError as error:\n"
        "    assert 'textual' not in sys.modules\n"
        "    assert time.monotonic() - begun < 0.3\n"
        "    sys.exit(2 if error.code == 'no-terminal' else 1)\n"
    )
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, timeout=20
    )
    assert (done.returncode, done.stderr) == (2, b"")
    assert time.monotonic() - begun < 10
