"""`bcd lab up`, spoken to from another shell."""

import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bcd.core.errors import UsageError
from bcd.lab.catalogue import OFFERS
from bcd.lab.control import ControlSocket, ask_to_push
from tests.lab.processes import nodes_in

SECONDS = 30.0


class Lab:
    """A lab in a process of its own, as in a shell."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        code = "from bcd.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "lab", "up", "--dir", str(directory)],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def wait_line(self, part: str) -> None:
        while part not in self._lines.get(timeout=SECONDS):
            pass

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(SECONDS)
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path / "lab")
    yield made
    if made.process.poll() is None:
        made.end()


def test_a_release_pushed_from_outside_is_confirmed_and_ending_it_leaves_no_process(lab: Lab) -> None:
    lab.wait_line("What happens to the node")
    assert "1.4.1" in ask_to_push(lab.directory, "good", by_command=True)
    lab.wait_line("SUCCEEDED")
    assert nodes_in(lab.directory)
    with pytest.raises(UsageError) as error:
        ask_to_push(lab.directory, "goood", by_command=False)
    assert (error.value.code, "good" in error.value.hint) == ("unknown-release", True)
    assert lab.end() == 0
    assert nodes_in(lab.directory) == []
    with pytest.raises(UsageError) as gone:
        ask_to_push(lab.directory, "good", by_command=False)
    assert gone.value.code == "no-lab"


def test_a_request_that_is_none_is_answered_and_the_next_one_served(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)  # longer than a socket's address
    deep.mkdir()
    control = ControlSocket(deep, lambda name, by_command: f"{name} {by_command}")
    try:
        assert (deep / "lab.sock").stat().st_mode & 0o777 == 0o600
        assert control.answer(b"[]") == control.answer(b"\xff") == control.answer(b'{"push":"good"}')
        assert control.answer(b"[]")["code"] == "bad-request"
        assert ask_to_push(deep, "good", by_command=True) == "good True"
    finally:
        control.close()
    assert not (deep / "lab.sock").exists()


def test_the_catalogue_has_every_release_that_the_product_promises() -> None:
    assert {
        "good",
        "never-welcomed",
        "exits-at-once",
        "cut",
        "too-long",
        "wrong-bytes",
        "signed-by-one",
        "signed-by-strangers",
        "expired",
        "below-floor",
    } <= {offer.name for offer in OFFERS}
