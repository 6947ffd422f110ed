"""Whether a file can be a program of this machine, by its first bytes (field report 32)."""

import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bcd.core.binary import HEADER_BYTES, check_header
from bcd.core.build import this_platform
from bcd.core.errors import Refusal

MACHINES = {"amd64": (2, 62), "arm64": (2, 183), "386": (1, 3), "arm": (1, 40)}


def elf(bits: int, machine: int, order: int = 1, kind: int = 2) -> bytes:
    """The start of an ELF file: class (1 or 2), byte order (1 little, 2 big), type, machine."""
    ident = b"\x7fELF" + bytes([bits, order, 1]) + bytes(9)
    return ident + struct.pack(("<" if order == 1 else ">") + "HH", kind, machine)


def refused(header: bytes, platform: str, words: str) -> None:
    """It is no program of this platform."""
    with pytest.raises(Refusal, match=words) as caught:
        check_header(header, platform)
    assert caught.value.code == "wrong-platform-binary"
    assert platform in caught.value.message


@pytest.mark.parametrize("arch", MACHINES)
@pytest.mark.parametrize("kind", [2, 3], ids=["fixed", "position-independent"])
def test_a_program_of_this_machine_is_let_through(arch: str, kind: int) -> None:
    """By class and machine; with more bytes or just enough."""
    header = elf(*MACHINES[arch], kind=kind)
    assert len(header) == HEADER_BYTES
    check_header(header, f"linux-{arch}")
    check_header(header + b"\xff" * 100, f"linux-{arch}")


@pytest.mark.parametrize("arch", MACHINES)
@pytest.mark.parametrize("other", [*MACHINES, "riscv", "s390", "none"])
def test_a_program_of_another_machine_is_refused(arch: str, other: str) -> None:
    """Each of them on each other one."""
    machines = {**MACHINES, "riscv": (2, 243), "s390": (2, 22), "none": (2, 0)}
    if arch != other:
        refused(elf(*machines[other]), f"linux-{arch}", f"machine {machines[other][1]}")


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
@pytest.mark.parametrize("bits", [0, 1, 3])
def test_a_32_bit_program_on_a_64_bit_machine_is_refused(arch: str, bits: int) -> None:
    """x32 names the right machine and still needs another loader."""
    refused(elf(bits, MACHINES[arch][1]), f"linux-{arch}", "32-bit")


def test_a_program_in_another_byte_order_is_refused() -> None:
    """Its machine, read as ours, is none."""
    refused(elf(2, 183, order=2), "linux-arm64", "machine 46848")


@pytest.mark.parametrize("length", range(4, HEADER_BYTES))
def test_a_torn_program_is_refused(length: int) -> None:
    """Cut off anywhere in its header."""
    refused(elf(2, 62)[:length], "linux-amd64", "torn")


@pytest.mark.parametrize(
    ("magic", "system"),
    [
        (b"MZ", "Windows"),
        (b"\xcf\xfa\xed\xfe", "macOS"),
        (b"\xce\xfa\xed\xfe", "macOS"),
        (b"\xca\xfe\xba\xbe", "macOS"),
    ],
)
def test_a_program_of_another_system_is_refused(magic: bytes, system: str) -> None:
    """It says for which; also where the file ends there."""
    for header in (magic, magic + bytes(100)):
        refused(header, "linux-amd64", system)
        refused(header, "linux-riscv64", system)


@pytest.mark.parametrize(
    "header", [b"", b"#!/bin/sh\n", b"#!/usr/bin/env python3\n", b"\x7fEL", b"PK\x03\x04", b"text", b"M"]
)
def test_what_is_no_native_program_is_let_through(header: bytes) -> None:
    """A script's interpreter is not ours to judge."""
    check_header(header, "linux-amd64")


def test_on_an_unknown_machine_any_elf_file_is_let_through() -> None:
    """Nothing is known to compare with; torn ones are refused there, too."""
    check_header(elf(2, 243), "linux-riscv64")
    check_header(elf(1, 8), "linux-mips")
    refused(b"\x7fELF", "linux-riscv64", "torn")


def test_the_python_that_runs_this_is_a_program_of_this_machine() -> None:
    """A real file, on a real machine."""
    with open(sys.executable, "rb") as file:
        check_header(file.read(HEADER_BYTES), this_platform())


@given(
    st.binary(max_size=40) | st.binary(max_size=40).map(lambda rest: b"\x7fELF" + rest), st.sampled_from(list(MACHINES))
)
def test_no_bytes_end_in_another_error(header: bytes, arch: str) -> None:
    """They are let through or refused."""
    code = None
    try:
        check_header(header, f"linux-{arch}")
    except Refusal as refusal:
        code = refusal.code
    assert code in {None, "wrong-platform-binary"}
    if header.startswith(b"\x7fELF") and code is None:
        assert header[4] == MACHINES[arch][0] or arch in {"386", "arm"}
