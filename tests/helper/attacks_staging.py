"""What the node may put where root looks for the download."""

import ctypes
import fcntl
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.helper.attack import Attack
from tests.helper.attacker import Attacker, exchange, remove
from tests.helper.world import BIG, OTHER_UID, TWO, UID, World

Answer = dict[str, Any] | str
_NAME = f"bcd-{TWO.version}"


def plant(make: Callable[[Attacker, Path], object]) -> Callable[[Attacker], Answer]:
    """Lay something in the download's place, and have it swapped in."""

    def play(node: Attacker) -> Answer:
        make(node, node.staging / _NAME)
        return node.swap(TWO)

    return play


def link(target: str) -> Callable[[Attacker], Answer]:
    """A symbolic link; `{root}` is root's directory."""
    return plant(lambda node, path: path.symlink_to(target.format(root=node.root, good=node.data / "good")))


def good_elsewhere(node: Attacker, path: Path) -> Path:
    """The right bytes, in another place of the node's."""
    elsewhere = node.data / "elsewhere"
    elsewhere.mkdir()
    good = elsewhere / path.name
    good.write_bytes(TWO.data)
    return good


def unix_socket(_: Attacker, path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def hard_link_of_own(node: Attacker, path: Path) -> None:
    os.link(good_elsewhere(node, path), path)


def staging_link(node: Attacker, path: Path) -> None:
    good = good_elsewhere(node, path)
    node.staging.rmdir()
    node.staging.symlink_to(good.parent)


def staging_file(node: Attacker, _: Path) -> None:
    node.staging.rmdir()
    node.staging.write_bytes(TWO.data)


def staging_fifo(node: Attacker, _: Path) -> None:
    node.staging.rmdir()
    os.mkfifo(node.staging)


def sparse(size: int) -> Callable[[Attacker, Path], None]:
    def make(_: Attacker, path: Path) -> None:
        path.write_bytes(TWO.data)
        os.truncate(path, size)

    return make


def lease(node: Attacker) -> Answer:
    """Who opens the file has to wait until its owner gives the lease up."""
    node.stage(TWO)
    handle = os.open(node.staging / _NAME, os.O_RDWR)
    import signal

    signal.signal(signal.SIGIO, signal.SIG_IGN)
    fcntl.fcntl(handle, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    return node.swap(TWO)


def locked(node: Attacker) -> Answer:
    node.stage(TWO)
    handle = os.open(node.staging / _NAME, os.O_RDWR)
    fcntl.lockf(handle, fcntl.LOCK_EX)
    fcntl.flock(handle, fcntl.LOCK_EX)
    return node.swap(TWO)


def growing(node: Attacker) -> Answer:
    path = node.stage(BIG)

    def grow() -> None:
        with path.open("ab") as file:
            file.write(b"#" * 4096)

    with node.meanwhile(grow):
        while path.stat().st_size <= len(BIG.data):
            pass
        return node.swap(BIG)


def shrinking(node: Attacker) -> Answer:
    path = node.stage(BIG)

    def shrink() -> None:
        os.truncate(path, max(0, path.stat().st_size - 65_536))

    with node.meanwhile(shrink):
        while path.stat().st_size == len(BIG.data):
            pass
        return node.swap(BIG)


def racing(trade: Callable[[Attacker], Callable[[], None]], rounds: int = 30) -> Callable[[Attacker], Answer]:
    """Ask again and again while something is exchanged; the right bytes are one of the two, so that a hit swaps them in."""

    def play(node: Attacker) -> Answer:
        answers = set()
        with node.meanwhile(trade(node)):
            for _ in range(rounds):
                answer = node.swap(TWO)
                if answer["ok"]:
                    return "ok"
                answers.add(answer["code"])
        return "|".join(sorted(answers))

    return play


def files(bad: Callable[[Attacker, Path], object]) -> Callable[[Attacker], Callable[[], None]]:
    def make(node: Attacker) -> Callable[[], None]:
        good, other = node.stage(TWO), node.staging / "other"
        bad(node, other)
        return lambda: exchange(good, other)

    return make


def bytes_in_place(node: Attacker) -> Callable[[], None]:
    good, evil = node.stage(TWO), TWO.data.replace(b"echo", b"evil")
    texts = [evil, TWO.data]

    def write() -> None:
        texts.reverse()
        with good.open("r+b") as file:
            file.write(texts[0])

    return write


def directories(bad: Callable[[Attacker, Path], object]) -> Callable[[Attacker], Callable[[], None]]:
    def make(node: Attacker) -> Callable[[], None]:
        node.stage(TWO)
        other = node.data / "other"
        bad(node, other)
        return lambda: exchange(node.staging, other)

    return make


def renamed_away(node: Attacker) -> Callable[[], None]:
    good = node.stage(TWO)
    away = node.staging / "away"

    def back_and_forth() -> None:
        good.rename(away)
        away.rename(good)

    return back_and_forth


def data_dir_link(node: Attacker) -> Answer:
    """Only where the directory above is the node's too; here it can't even be tried."""
    try:
        node.data.rename(node.data.with_name("away"))
    except PermissionError:
        return "not permitted"
    return "moved"


def swallowed(node: Attacker) -> Answer:
    """A directory so deep below that no path names it any more."""
    here = os.open(node.staging, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d" * 200, dir_fd=here)
        here = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
    return node.swap(TWO)


def many_names(node: Attacker) -> Answer:
    for number in range(1000):
        (node.staging / f"bcd-{number}.0.0").touch()
    return node.swap(TWO)


def without_rights(node: Attacker, path: Path) -> None:
    path.write_bytes(TWO.data)
    path.chmod(0)
    node.staging.chmod(0)


def set_bits(_: Attacker, path: Path) -> None:
    path.write_bytes(TWO.data)
    path.chmod(0o6777)


def unnamed_memory(node: Attacker) -> Answer:
    """A link into /proc, to a file that lies nowhere."""
    handle = os.memfd_create("evil")
    os.write(handle, TWO.data)
    (node.staging / _NAME).symlink_to(f"/proc/{os.getpid()}/fd/{handle}")
    return node.swap(TWO)


def own_root(node: Attacker) -> Answer:
    """The way to a mount namespace of the node's own, through /proc."""
    libc = ctypes.CDLL(None)
    node.stage(TWO)
    libc.unshare(0x10000000 | 0x00020000)  # a user and a mount namespace, where the kernel gives them to users
    node.staging.rename(node.data / "real")
    node.staging.symlink_to(f"/proc/{os.getpid()}/root{node.data}/real")
    return node.swap(TWO)


# What root has to lay there, since the node can't ----------------------------------------------------------------------


def of_owner(uid: int) -> Callable[[World], None]:
    def prepare(world: World) -> None:
        world.stage(TWO.version, TWO.data)
        os.chown(world.data / "staging" / _NAME, uid, uid)

    return prepare


def device(world: World) -> None:
    path = world.data / "staging" / _NAME
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    os.chown(path, UID, UID)


def second_name(world: World) -> None:
    """Of a file that only root may read, as where nothing protects hard links."""
    os.link(world.root / "secret", world.data / "staging" / _NAME)


def second_name_given_away(world: World) -> None:
    path = world.data / "staging" / _NAME
    world.stage(TWO.version, TWO.data)
    os.link(path, world.root / "bin" / "second")


def tmpfs(content: bytes, uid: int) -> Callable[[World], None]:
    def prepare(world: World) -> None:
        staging = str(world.data / "staging")
        world.inside("mount", "-t", "tmpfs", "-o", f"uid={uid},gid={uid}", "attack", staging)
        source = world.root / "run" / "content"
        source.write_bytes(content)
        world.inside("cp", str(source), f"{staging}/{_NAME}")
        world.inside("chown", f"{uid}:{uid}", f"{staging}/{_NAME}")
        source.unlink()

    return prepare


def bound(world: World) -> None:
    """A directory of root's with a secret under the download's name."""
    secrets = world.root / "run" / "secrets"
    secrets.mkdir(exist_ok=True)
    (secrets / _NAME).write_bytes(world.secret)
    (secrets / _NAME).chmod(0o600)
    world.inside("mount", "--bind", str(secrets), str(world.data / "staging"))


def ask(node: Attacker) -> Answer:
    return node.swap(TWO)


MOVED = "swapped"
EITHER = "updated|swapped"
ATTACKS = (
    Attack("a link to a secret of root's", link("{root}/secret"), "io-error"),
    Attack("a link to the right bytes", plant(lambda n, p: p.symlink_to(good_elsewhere(n, p))), "io-error"),
    Attack("a link to nowhere", link("nowhere"), "io-error"),
    Attack("a link to itself", link(_NAME), "io-error"),
    Attack("a link to /dev/zero", link("/dev/zero"), "io-error"),
    Attack("a link to /proc/self/mem", link("/proc/self/mem"), "io-error"),
    Attack("a link to the slot's own temporary name", link("{root}/lib/bcd/bcd-a.tmp"), "io-error"),
    Attack("a link to memory of a process", unnamed_memory, "io-error"),
    Attack("a hard link to a file of its own", plant(hard_link_of_own), "io-error"),
    Attack("a hard link to a secret of root's", ask, "io-error", prepare=second_name),
    Attack("a file that has a second name of root's", ask, "io-error", prepare=second_name_given_away),
    Attack("a FIFO that nobody writes", plant(lambda _, p: os.mkfifo(p)), "io-error"),
    Attack("a socket", plant(unix_socket), "io-error"),
    Attack("a device", ask, "io-error", prepare=device),
    Attack("a directory", plant(lambda _, p: p.mkdir()), "io-error"),
    Attack("nothing at all", ask, "io-error"),
    Attack("a file of root's", ask, "io-error", prepare=of_owner(0)),
    Attack("a file of another user's", ask, "io-error", prepare=of_owner(OTHER_UID)),
    Attack("an empty file", plant(lambda _, p: p.touch()), "io-error"),
    Attack("other bytes of the same size", plant(lambda _, p: p.write_bytes(b"#" * len(TWO.data))), "io-error"),
    Attack("one byte too few", plant(lambda _, p: p.write_bytes(TWO.data[:-1])), "io-error"),
    Attack("one byte too many", plant(lambda _, p: p.write_bytes(TWO.data + b"#")), "io-error"),
    Attack("a sparse file of 1 TiB", plant(sparse(1 << 40)), "io-error"),
    Attack("a growing file", growing, "io-error"),
    Attack("a shrinking file", shrinking, "io-error"),
    Attack("a write lease on the file", lease, "io-error"),
    Attack("locks on the file", locked, "ok", ends=MOVED),
    Attack("a file without any right", plant(without_rights), "ok", ends=MOVED),
    Attack("a set-uid file that all may write", plant(set_bits), "ok", ends=MOVED),
    Attack("a staging directory that is a link", plant(staging_link), "io-error"),
    Attack("a staging directory that is a file", plant(staging_file), "io-error"),
    Attack("a staging directory that is a FIFO", plant(staging_fifo), "io-error"),
    Attack("no staging directory", plant(lambda n, _: n.staging.rmdir()), "io-error"),
    Attack("a staging directory that leads into another root", own_root, "io-error"),
    Attack("a mount on staging with a secret of root's", ask, "io-error", prepare=bound),
    Attack("a tmpfs on staging with other bytes", ask, "io-error", prepare=tmpfs(b"evil", UID)),
    Attack("a tmpfs on staging with another's file", ask, "io-error", prepare=tmpfs(TWO.data, OTHER_UID)),
    Attack("an operator's tmpfs on staging", ask, "ok", ends=MOVED, prepare=tmpfs(TWO.data, UID)),
    Attack("a data_dir put aside", data_dir_link, "not permitted"),
    Attack("a tree too deep for any path", swallowed, "io-error"),
    Attack("1,000 names in staging", many_names, "io-error"),
    Attack(
        "a race: the file and a link to a secret trade places",
        racing(files(lambda n, p: p.symlink_to(n.root / "secret"))),
        "ok|io-error",
        ends=EITHER,
    ),
    Attack(
        "a race: the file and a FIFO trade places", racing(files(lambda _, p: os.mkfifo(p))), "ok|io-error", ends=EITHER
    ),
    Attack(
        "a race: the file and another file trade places",
        racing(files(lambda _, p: p.write_bytes(b"evil" * 100))),
        "ok|io-error",
        ends=EITHER,
    ),
    Attack("a race: the bytes change in place", racing(bytes_in_place), "ok|io-error", ends=EITHER),
    Attack("a race: the file comes and goes", racing(renamed_away), "ok|io-error", ends=EITHER),
    Attack(
        "a race: staging and a link to root's slots trade places",
        racing(directories(lambda n, p: p.symlink_to(n.root / "lib" / "bcd"))),
        "ok|io-error",
        ends=EITHER,
    ),
    Attack(
        "a race: staging and another directory trade places",
        racing(directories(lambda _, p: p.mkdir())),
        "ok|io-error",
        ends=EITHER,
    ),
)


def cleaned(world: World) -> None:
    """Take away what an attack's root left."""
    for path in (world.root / "bin" / "second", world.root / "run" / "secrets"):
        if path.exists():
            remove(path)
