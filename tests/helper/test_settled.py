"""A start that the helper settles: what runs here need not be what is current."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bcd.core.answers import Settled
from bcd.core.build import Build
from bcd.core.clock import ManualClock
from bcd.core.config import load_config
from bcd.core.records import Failed, PendingRecord
from bcd.core.settle import Outcome
from bcd.helper import wire
from bcd.helper.client import HelperManager

FAILED = Failed("1.4.1", 15, "bcd 1.4.1 was not welcomed by a gateway before its deadline", 1_800_000_200)


def swap(to_version: str) -> PendingRecord:
    return PendingRecord(
        swap_id="5a" * 16,
        from_version="1.4.0",
        to_version=to_version,
        from_slot="a",
        to_slot="b",
        sequence=15,
        command_id=None,
        launched=True,
        swapped_at=1_800_000_000,
        deadline=1_800_000_120,
        boot_id="boot-1",
        swapped_boottime=5_000.0,
    )


@contextmanager
def helper_that_says(settled: Settled, path: Path) -> Iterator[None]:
    """One connection, one answer."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection, connection.makefile() as asked:
                asked.readline()
                connection.sendall(wire.dump_line(wire.good_answer("1.4.0", wire.settled_json(settled))))

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join()


@pytest.mark.parametrize(("runs", "restart"), [("1.4.1", True), ("1.4.0", False)])
def test_a_release_that_root_went_back_from_does_not_run_on(tmp_path: Path, runs: str, restart: bool) -> None:
    build = Build(version=runs, sequence=15, built_at=1_790_000_000, fakehw=True)
    manager = HelperManager(
        config=load_config(str(tmp_path / "none")),
        build=build,
        clock=ManualClock(),
        socket_path=str(tmp_path / "helper.sock"),
        root_uid=os.geteuid(),
    )
    told = Settled(outcome=Outcome.ROLLED_BACK, pending=swap("1.4.1"), failed=FAILED)
    with helper_that_says(told, tmp_path / "helper.sock"):
        assert manager.settle().restart is restart
