"""The entrypoint, the two links, and the two files: what a crash, an attacker or a helping hand makes of them."""

import os
import struct

from bcd.doctor.finding import Level
from bcd.doctor.probes import Ran
from bcd.doctor.selftest.fault import Fault, Faults
from bcd.doctor.selftest.faults.configuration import STRANGER
from bcd.doctor.selftest.root import NEW, OLD, Root, program

_NO_CURRENT = frozenset({"slots.entrypoint-link"})
"""An entrypoint that leads to a `current` which leads nowhere is one to report too."""


def _foreign_elf(root: Root) -> None:
    header = b"\x7fELF" + bytes([2, 1]) + bytes(10) + struct.pack("=HH", 2, 243)
    root.fill_slot("b", header, *NEW)


def _bare_entrypoint(root: Root) -> None:
    root.remove("bin/bcd")
    root.write("bin/bcd", program("1.5.0"), 0o755)


def _directory_as_current(root: Root) -> None:
    root.remove("lib/current")
    (root.home / "lib" / "current").mkdir()


def _fifo_in_slot(root: Root) -> None:
    root.fifo("lib/bcd-b")
    (root.home / "lib" / "bcd-b").chmod(0o755)


def _torn_before_rollback(root: Root) -> None:
    root.swap()
    root.write("lib/bcd-b", b"#!/bin/sh\n", 0o755)


def _no_previous_while_pending(root: Root) -> None:
    root.swap()
    root.remove("lib/previous")


def _program_that(root: Root, script: str) -> None:
    root.fill_slot("b", f"#!/bin/sh\n{script}\n".encode(), *NEW)


def _said(root: Root, name: str, said: Ran | Exception) -> None:
    root.machine.said[name] = said


def _record_of_the_group(root: Root) -> None:
    root.use_helper()
    (root.home / "lib" / "update.json").chmod(0o664)


SLOT_FAULTS: Faults = (
    Fault(
        check="slots.entrypoint-link",
        name="a plain file while the slots are in use",
        plant=_bare_entrypoint,
        level=Level.FAIL,
        says="is a plain file, so the service does not start what the slots hold",
    ),
    Fault(
        check="slots.entrypoint-link",
        name="a link to somewhere else",
        plant=lambda root: root.link("bin/bcd", "/opt/bcd/bin/bcd"),
        level=Level.FAIL,
        says="is a link to /opt/bcd/bin/bcd",
    ),
    Fault(
        check="slots.entrypoint-link",
        name="a link past `current` to a slot",
        plant=lambda root: root.link("bin/bcd", f"{root.home}/lib/bcd-b"),
        level=Level.FAIL,
        says="is a link to",
    ),
    Fault(
        check="slots.entrypoint-link",
        name="nothing there",
        plant=lambda root: root.remove("bin/bcd"),
        level=Level.FAIL,
        says="can't be looked at: No such file or directory",
    ),
    Fault(
        check="slots.entrypoint-link",
        name="before the first update",
        plant=Root.unadopted,
        level=Level.NOTE,
        says="the first update adopts it",
        also=frozenset({"update.last-confirm"}),
    ),
    Fault(
        check="slots.links",
        name="before the first update",
        plant=Root.unadopted,
        level=Level.SKIPPED,
        says="the first update adopts the entrypoint",
        also=frozenset({"slots.entrypoint-link", "update.last-confirm"}),
    ),
    Fault(
        check="slots.links",
        name="current is absolute",
        plant=lambda root: root.link("lib/current", f"{root.home}/lib/bcd-b"),
        level=Level.FAIL,
        says="which is no slot's relative name",
        also=_NO_CURRENT,
    ),
    Fault(
        check="slots.links",
        name="current is a plain file",
        plant=lambda root: root.write("lib/current", program("1.4.1"), 0o755),
        level=Level.FAIL,
        says="current is no link",
        also=_NO_CURRENT,
    ),
    Fault(
        check="slots.links",
        name="current is a directory",
        plant=_directory_as_current,
        level=Level.FAIL,
        says="current is no link",
        also=_NO_CURRENT,
    ),
    Fault(
        check="slots.links",
        name="current dangles",
        plant=lambda root: root.remove("lib/bcd-b"),
        level=Level.FAIL,
        says="current leads to no file",
        also=_NO_CURRENT | {"slots.digests"},
    ),
    Fault(
        check="slots.links",
        name="previous names no slot",
        plant=lambda root: root.link("lib/previous", "../../bin/sh"),
        level=Level.FAIL,
        says="previous points at ../../bin/sh",
    ),
    Fault(
        check="slots.links",
        name="no previous",
        plant=lambda root: root.remove("lib/previous"),
        level=Level.NOTE,
        says="there is no previous yet",
    ),
    Fault(
        check="slots.links",
        name="no previous while an update is pending",
        plant=_no_previous_while_pending,
        level=Level.FAIL,
        says="does not name slot b, which ran before",
        also=frozenset({"update.pending"}),
    ),
    Fault(
        check="slots.links",
        name="this user may not look into the slots",
        plant=lambda root: root.forbid("lib"),
        level=Level.UNKNOWN,
        says="could not be told",
        as_nobody=True,
        also=frozenset(
            {
                *("slots.entrypoint-link", "slots.digests", "slots.runs", "slots.modes", "slots.leftovers"),
                *("update.records", "update.release-expiry"),
                *("service.start-limit", "service.crash-loop-rollback", "service.units"),
            }
        ),
    ),
    Fault(
        check="slots.digests",
        name="the running slot is torn",
        plant=lambda root: root.write("lib/bcd-b", program(NEW[0])[:-3], 0o755),
        level=Level.FAIL,
        says="slot b does not hold the bytes that its record names (1.4.1)",
        also=frozenset({"slots.runs"}),
    ),
    Fault(
        check="slots.digests",
        name="the running slot holds other bytes of the same length",
        plant=lambda root: root.write("lib/bcd-b", program(NEW[0]).replace(b"\n", b" ", 1)[:-1] + b"#", 0o755),
        level=Level.FAIL,
        says="slot b does not hold the bytes",
        also=frozenset({"slots.runs"}),
    ),
    Fault(
        check="slots.digests",
        name="the other slot is torn",
        plant=lambda root: root.write("lib/bcd-a", program(OLD[0])[:-3], 0o755),
        level=Level.WARN,
        says="slot a does not hold the bytes",
    ),
    Fault(
        check="slots.digests",
        name="the slot that a pending update would go back to is torn",
        plant=_torn_before_rollback,
        level=Level.FAIL,
        says="slot b does not hold the bytes",
        also=frozenset({"update.pending"}),
    ),
    Fault(
        check="slots.digests",
        name="the running slot has no record",
        plant=lambda root: root.record_slot("b", None),
        level=Level.WARN,
        says="slot b runs and has no record",
    ),
    Fault(
        check="slots.digests",
        name="this user may not read a slot's file",
        plant=lambda root: root.forbid("lib/bcd-a"),
        level=Level.UNKNOWN,
        says="this user may not read",
        as_nobody=True,
        also=frozenset({"slots.modes"}),
    ),
    Fault(
        check="slots.digests",
        name="this user may not read slots.json",
        plant=lambda root: root.forbid("lib/slots.json"),
        level=Level.UNKNOWN,
        says="slots.json",
        as_nobody=True,
        also=frozenset({"update.records", "update.release-expiry"}),
    ),
    Fault(
        check="slots.runs",
        name="a program for another machine",
        plant=_foreign_elf,
        level=Level.FAIL,
        says="it is an ELF file for machine 243",
    ),
    Fault(
        check="slots.runs",
        name="a program that says nothing",
        plant=lambda root: _program_that(root, "exit 3"),
        level=Level.FAIL,
        says="does not say its version",
    ),
    Fault(
        check="slots.runs",
        name="a program that says what is no JSON",
        plant=lambda root: _program_that(root, "echo bcd 1.4.1"),
        level=Level.FAIL,
        says="does not say its version",
    ),
    Fault(
        check="slots.runs",
        name="a program whose interpreter is missing",
        plant=lambda root: _said(root, "bcd-b", FileNotFoundError(2, "No such file or directory", "/bin/nosh")),
        level=Level.FAIL,
        says="slot b does not start: No such file or directory",
    ),
    Fault(
        check="slots.runs",
        name="a program that does not answer",
        plant=lambda root: root.machine.time_out("bcd-b"),
        level=Level.UNKNOWN,
        says="no answer within 2 s",
    ),
    Fault(
        check="slots.runs",
        name="a program that says another version",
        plant=lambda root: root.fill_slot("b", program("1.3.9"), *NEW),
        level=Level.WARN,
        says="recorded as 1.4.1 and says that it is 1.3.9",
    ),
    Fault(
        check="slots.runs",
        name="current names no slot",
        plant=lambda root: root.link("lib/current", "bcd-c"),
        level=Level.SKIPPED,
        says="names no slot",
        also=frozenset({"slots.links"}) | _NO_CURRENT,
    ),
    Fault(
        check="slots.modes",
        name="a slot may be written by all",
        plant=lambda root: (root.home / "lib" / "bcd-b").chmod(0o777),
        level=Level.FAIL,
        says="may be changed by others than root",
        also=frozenset({"slots.runs"}),
    ),
    Fault(
        check="slots.modes",
        name="nobody may execute the running slot",
        plant=lambda root: (root.home / "lib" / "bcd-b").chmod(0o644),
        level=Level.FAIL,
        says="can't be executed by all",
        also=frozenset({"slots.runs"}),
    ),
    Fault(
        check="slots.modes",
        name="only its owner may execute a slot, and no helper is there to mind",
        plant=lambda root: (root.home / "lib" / "bcd-a").chmod(0o700),
        level=Level.WARN,
        says="can't be executed by all",
    ),
    Fault(
        check="slots.modes",
        name="a FIFO in a slot",
        plant=_fifo_in_slot,
        level=Level.FAIL,
        says="is no regular file",
        also=frozenset({"slots.links", "slots.digests"}) | _NO_CURRENT,
    ),
    Fault(
        check="slots.modes",
        name="a slot is a stranger's",
        plant=lambda root: os.chown(root.home / "lib" / "bcd-a", STRANGER, -1),
        level=Level.FAIL,
        says="may be changed by others than root",
        needs_root=True,
    ),
    Fault(
        check="slots.modes",
        name="under the helper a record may be written by its group",
        plant=_record_of_the_group,
        level=Level.FAIL,
        says="the helper does not start beside it",
    ),
)
