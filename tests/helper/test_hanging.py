"""A file system that never answers, where root looks for the download: the node's own is refused, and none stops the rest."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bcd.core.errors import HostError
from bcd.core.usermount import Mount
from bcd.helper import main
from bcd.helper.worker import Worker
from tests.helper.attacker import attack, started
from tests.helper.world import TWO, UID, World
from tests.node.gateways import eventually

pytestmark = pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="needs /dev/fuse")


@contextmanager
def hanging(world: World, point: Path, uid: int) -> Iterator["subprocess.Popen[bytes]"]:
    """Mount it where the helper sees it."""
    script = str(Path(__file__).parent / "hanging.py")
    words = ["nsenter", "-t", str(world.helper.pid), "-m", "--", sys.executable, script, str(point), str(uid)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as mounted:
        try:
            assert mounted.stdout is not None
            if mounted.stdout.readline() != b"mounted\n":
                pytest.skip("this kernel mounts no FUSE here")
            yield mounted
        finally:
            mounted.kill()


@pytest.mark.parametrize("where", ["data", "data/staging"])
def test_a_file_system_of_the_nodes_own_is_refused_at_once(running_world: World, where: str) -> None:
    """With its mount point and the command that mends it, which does."""
    world = running_world
    world.reset("updated")
    world.stage(TWO.version, TWO.data)
    before, point = world.tree(), world.root / where
    with hanging(world, point, UID):
        began = time.monotonic()
        told = attack(world, lambda node: node.swap(TWO))
        assert time.monotonic() - began < 2.0
        assert told.outcome == "io-error"
        assert f"umount -l {point}" in told.heard
        assert f"that uid {UID} mounted" in told.heard
        assert world.tree() == before
        world.inside("umount", "-l", str(point))
    assert attack(world, lambda node: node.swap(TWO)).outcome == "ok"
    assert world.state() == "swapped"


def test_an_operators_file_system_that_hangs_holds_up_the_swap_and_not_the_helper(running_world: World) -> None:
    """Who asks for the helper is answered; when the mount is gone the swap has failed, and the next one is taken."""
    world = running_world
    world.reset("updated")
    world.stage(TWO.version, TWO.data)
    before = world.tree()
    with hanging(world, world.data / "staging", 0) as mounted, started(world, lambda node: node.swap(TWO)) as waiting:
        time.sleep(0.5)
        world.serves()
        assert world.tree() == before
        mounted.kill()
        assert waiting.ended().outcome == "io-error"
        world.inside("umount", "-l", str(world.data / "staging"))
    assert attack(world, lambda node: node.swap(TWO)).outcome == "ok"


async def test_a_helper_whose_work_never_comes_back_ends_to_be_started_anew() -> None:
    """After a time that no good work takes; its end waits for nothing."""
    worker, go_on = Worker(), threading.Event()
    hung = asyncio.create_task(worker.run(go_on.wait))
    with pytest.raises(HostError, match="hung for") as caught:
        await main._end_when_stuck(worker, seconds=0.1, every_seconds=0.01)
    assert caught.value.code == "helper-stuck"
    go_on.set()
    assert await hung
    await eventually(lambda: worker.busy_seconds == 0, 5)


async def test_root_own_deadline_goes_ahead_of_what_the_node_asked_for() -> None:
    """A hundred requests that wait keep no release alive."""
    worker, go_on, done = Worker(), threading.Event(), list[str]()
    first = asyncio.create_task(worker.run(go_on.wait))
    asked = [asyncio.create_task(worker.run(lambda: done.append("asked"))) for _ in range(100)]
    await asyncio.sleep(0.05)
    due = asyncio.create_task(worker.run(lambda: done.append("due"), first=True))
    await asyncio.sleep(0.05)
    go_on.set()
    await asyncio.gather(first, due, *asked)
    assert done[0] == "due"
    assert len(done) == 101


@pytest.mark.parametrize(
    ("kind", "options", "user"),
    [
        ("fuse.sshfs", "rw,user_id=1000,group_id=1000", 1000),
        ("fuse", "rw,user_id=0,group_id=0", None),
        ("fuseblk", "rw,user_id=7", 7),
        ("fuse", "rw,user_id=many", None),
        ("ext4", "rw,user_id=7", None),
    ],
)
def test_whose_mount_it_is_stands_in_the_kernels_table(kind: str, options: str, user: int | None) -> None:
    """FUSE alone needs no root."""
    assert Mount("/mnt", kind, options).user == user
