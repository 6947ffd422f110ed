"""The helper's socket, and the machine underneath: clock, memory, platform. And checks that break."""

from bcd.core.errors import HostError
from bcd.doctor.finding import Level
from bcd.doctor.probes import Ran
from bcd.doctor.selftest.fault import Fault, Faults
from bcd.doctor.selftest.root import Root
from bcd.helper.client import Info


def _helper(root: Root, mode: int | None) -> None:
    root.use_helper()
    if mode is None:
        root.remove("helper.sock")
    else:
        root.listen("helper.sock", mode)


def _helper_is_a_file(root: Root) -> None:
    root.use_helper()
    root.write("helper.sock", "")


def _hidden_helper(root: Root) -> None:
    root.use_helper()
    (root.home / "run").mkdir()
    (root.home / "helper.sock").rename(root.home / "run" / "helper.sock")
    root.configure("helper", socket=f"{root.home}/run/helper.sock")
    root.forbid("run")


def _answer(root: Root, answer: Info | HostError) -> None:
    root.use_helper()
    root.machine.helper = answer


def _unreachable(why: str, error: OSError | None = None) -> HostError:
    unreachable = HostError("helper-unreachable", f"the helper could not be asked: {why}")
    unreachable.__cause__ = error
    return unreachable


def _older_helper(root: Root) -> None:
    _answer(root, Info(1, "1.4.0", "1.4.1"))


def _older_helper_while_pending(root: Root) -> None:
    _older_helper(root)
    root.swap()


def _timedatectl(root: Root, said: Ran | Exception) -> None:
    root.machine.said["timedatectl"] = said


def _memory(root: Root, available: int) -> None:
    root.machine.memory = lambda: available


def _broken_memory(root: Root) -> None:
    def broken() -> int:
        raise RuntimeError("psutil: no /proc/meminfo")

    root.machine.memory = broken


def _full_disk(root: Root) -> None:
    root.machine.free_bytes = 3 * 2**30


def _platform(root: Root) -> None:
    root.machine.platform = "linux-riscv64"


MACHINE_FAULTS: Faults = (
    Fault(
        check="helper.socket",
        name="the helper listens",
        plant=Root.use_helper,
        level=Level.OK,
        says="is root's and its group's alone",
        needs_root=True,
    ),
    Fault(
        check="helper.socket",
        name="no socket",
        plant=lambda root: _helper(root, None),
        level=Level.FAIL,
        says="there is no socket at",
    ),
    Fault(
        check="helper.socket",
        name="a plain file in its place",
        plant=_helper_is_a_file,
        level=Level.FAIL,
        says="there is no socket at",
    ),
    Fault(
        check="helper.socket",
        name="everybody may speak",
        plant=lambda root: _helper(root, 0o666),
        level=Level.FAIL,
        says="may be reached by more than root and its group",
    ),
    Fault(
        check="helper.socket",
        name="this user may not look at it",
        plant=_hidden_helper,
        level=Level.UNKNOWN,
        says="this user may not look at",
        as_nobody=True,
    ),
    Fault(
        check="helper.answers",
        name="it does",
        plant=Root.use_helper,
        level=Level.OK,
        says="the helper answers (bcd 1.4.1, protocol 1)",
    ),
    Fault(
        check="helper.answers",
        name="it hangs",
        plant=lambda root: _answer(root, _unreachable("it did not answer in time", TimeoutError())),
        level=Level.FAIL,
        says="it did not answer in time",
    ),
    Fault(
        check="helper.answers",
        name="it speaks another protocol",
        plant=lambda root: _answer(
            root, _unreachable("it speaks protocol 2 and this bcd 1: it is newer than the node")
        ),
        level=Level.FAIL,
        says="it speaks protocol 2",
    ),
    Fault(
        check="helper.answers",
        name="this user may not ask",
        plant=lambda root: _answer(root, _unreachable("Permission denied", PermissionError(13, "Permission denied"))),
        level=Level.UNKNOWN,
        says="this user may not ask the helper",
    ),
    Fault(
        check="helper.version",
        name="helper and node are of one version",
        plant=Root.use_helper,
        level=Level.OK,
        says="helper and node are both bcd 1.4.1",
    ),
    Fault(
        check="helper.version",
        name="the helper was not restarted after an update",
        plant=_older_helper,
        level=Level.NOTE,
        says="the helper still runs bcd 1.4.0, the node bcd 1.4.1",
    ),
    Fault(
        check="helper.version",
        name="the update is not confirmed yet",
        plant=_older_helper_while_pending,
        level=Level.OK,
        says="is not confirmed yet",
        also=frozenset({"update.pending"}),
    ),
    Fault(
        check="host.clock-synchronised",
        name="it is not",
        plant=lambda root: _timedatectl(root, Ran(status=0, stdout="no\n", stderr="")),
        level=Level.WARN,
        says="the clock is not synchronised",
    ),
    Fault(
        check="host.clock-synchronised",
        name="timedatectl does not answer",
        plant=lambda root: root.machine.time_out("timedatectl"),
        level=Level.UNKNOWN,
        says="no answer within 2 s",
    ),
    Fault(
        check="host.clock-synchronised",
        name="timedatectl can't be started",
        plant=lambda root: _timedatectl(root, OSError(5, "Input/output error", "timedatectl")),
        level=Level.UNKNOWN,
        says="Input/output error",
    ),
    Fault(
        check="host.clock-synchronised",
        name="timedatectl says something else",
        plant=lambda root: _timedatectl(root, Ran(status=1, stdout="", stderr="Failed to create bus connection")),
        level=Level.UNKNOWN,
        says="timedatectl ended with 1",
    ),
    Fault(
        check="host.clock-synchronised",
        name="timedatectl is not installed",
        plant=lambda root: _timedatectl(root, FileNotFoundError(2, "No such file or directory", "timedatectl")),
        level=Level.SKIPPED,
        says="timedatectl is not installed",
    ),
    Fault(
        check="host.memory",
        name="hardly any is left",
        plant=lambda root: _memory(root, 60 * 2**20),
        level=Level.WARN,
        says="only 60 MiB of memory are available",
    ),
    Fault(
        check="host.memory",
        name="the check itself breaks",
        plant=_broken_memory,
        level=Level.UNKNOWN,
        says="the check itself broke: RuntimeError: psutil: no /proc/meminfo",
    ),
    Fault(
        check="host.memory",
        name="the kernel does not answer",
        plant=lambda root: root.machine.hanging.add("memory"),
        level=Level.UNKNOWN,
        says="timed out after 1 s while asking for the free memory",
        timeout_seconds=1.0,
    ),
    Fault(
        check="host.disk",
        name="nearly full, with room for the next update yet",
        plant=_full_disk,
        level=Level.NOTE,
        says="is 97 % full, 3072 MiB are free",
    ),
    Fault(
        check="host.disk",
        name="the disk does not answer",
        plant=lambda root: root.machine.hanging.add("disk"),
        level=Level.UNKNOWN,
        says="timed out after 1 s while asking how full the disk of",
        timeout_seconds=1.0,
    ),
    Fault(
        check="host.platform",
        name="one that few releases have a file for",
        plant=_platform,
        level=Level.NOTE,
        says="this is linux-riscv64",
    ),
)
