"""A limit to all the memory of a machine, kept by the kernel's OOM killer, and how often it had to."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.system.machine import Machine

_V1 = Path("/sys/fs/cgroup/memory")


class Limit:
    """The group that a machine's processes are in, with its limit set."""

    def __init__(self, events: Path) -> None:
        self._events = events

    def kills(self) -> int:
        """How many processes the kernel has killed for it."""
        found = re.search(r"^oom_kill (\d+)$", self._events.read_text(), re.MULTILINE)
        assert found is not None, self._events
        return int(found[1])


@contextmanager
def limited(machine: Machine, size: int) -> Iterator[Limit]:
    """Bound everything that runs on the machine to `size` bytes, from outside: its own systemd may have no controller."""
    if _V1.is_dir():
        with _old_group(machine, size) as group:
            yield Limit(group / "memory.oom_control")
        return
    inside = Path(f"/proc/{machine.leader}/cgroup").read_text().strip().removeprefix("0::/")
    group = Path("/sys/fs/cgroup") / Path(inside).parent  # the leader's own is init.scope
    if not (group / "memory.max").exists():
        pytest.skip("the memory controller is not given to machines here")
    (group / "memory.max").write_text(str(size))
    yield Limit(group / "memory.events")


@contextmanager
def _old_group(machine: Machine, size: int) -> Iterator[Path]:
    """In the first kind of control groups memory is a tree of its own: to move a process is nothing to systemd."""
    group = _V1 / f"bcd-machine-{machine.leader}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(size))
        leader = psutil.Process(machine.leader)
        _move([leader.pid, *(child.pid for child in leader.children(recursive=True))], group)
        yield group
    finally:
        _move([int(pid) for pid in (group / "cgroup.procs").read_text().split()], _V1)
        with suppress(OSError):  # one was born while the others were moved: an empty group is left behind, no more
            os.rmdir(group)


def _move(pids: list[int], group: Path) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            (group / "cgroup.procs").write_text(str(pid))
