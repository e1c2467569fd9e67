"""The filter of system calls, run step by step for both kinds of processor; ``test_escapes`` runs it in the kernel."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest

from ci.sandbox import seccomp

HEADERS = {
    "x86_64": (Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"), r"__NR_(\w+)\s+(\d+)"),
    "aarch64": (Path("/usr/include/asm-generic/unistd.h"), r"__NR(?:3264)?_(\w+)\s+(\d+)"),
}
ALLOWED, KILLED = "allowed", "killed"


def decide(machine: str, number: int, *arguments: int, name: int = 0) -> str:
    """What the kernel would do: run the filter on a system call as the kernel lays it out in memory."""
    name = name or seccomp.MACHINES[machine][1]
    call = struct.pack("<IIQ6Q", number, name, 0, *arguments, *[0] * (6 - len(arguments)))
    steps = list(struct.iter_unpack("=HBBI", seccomp.program(machine)))
    place = loaded = 0
    while True:
        operation, if_true, if_false, operand = steps[place]
        place += 1
        if operation == 0x06:
            return {0x7FFF0000: ALLOWED, 0x80000000: KILLED}.get(operand) or errno.errorcode[operand & 0xFFFF]
        if operation == 0x20:
            (loaded,) = struct.unpack_from("<I", call, operand)
        else:
            true = {0x15: loaded == operand, 0x35: loaded >= operand, 0x45: bool(loaded & operand)}[operation]
            place += if_true if true else if_false


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_the_filter_denies_what_it_names_and_nothing_else(machine: str) -> None:
    column = seccomp.MACHINES[machine][0]
    denied = {numbers[column] for numbers in seccomp.DENIED.values()}
    assert len(denied) == len(seccomp.DENIED)
    special = {seccomp.CLONE3[column], seccomp.SOCKET[column]}
    assert {decide(machine, number) for number in denied} == {"EPERM"}
    assert {decide(machine, number) for number in set(range(seccomp.UNKNOWN)) - denied - special} == {ALLOWED}
    assert {decide(machine, number) for number in (seccomp.UNKNOWN, 500, 0x40000000, 0xFFFFFFFF)} == {"ENOSYS"}
    assert decide(machine, 0, name=0x40000003) == KILLED


@pytest.mark.parametrize("machine", seccomp.MACHINES)
def test_the_filter_looks_at_arguments(machine: str) -> None:
    column = seccomp.MACHINES[machine][0]
    clone, mmap, socket = seccomp.CLONE[column], seccomp.MMAP[column], seccomp.SOCKET[column]
    assert [decide(machine, clone, flags) for flags in (0x11, 0x3D0F00, 0x10000011, 0x20000)] == [
        ALLOWED, ALLOWED, "EPERM", "EPERM",
    ]  # fmt: skip
    assert [decide(machine, mmap, 0, 0, 0, flags) for flags in (0x22, 0x01, 0x21, 0x31)] == [
        ALLOWED, ALLOWED, "EPERM", "EPERM",
    ]  # fmt: skip
    assert [decide(machine, socket, family) for family in (1, 2, 10, 0, 16, 17, 38, 40)] == [
        *[ALLOWED] * 3, *["EAFNOSUPPORT"] * 5,
    ]  # fmt: skip
    assert decide(machine, seccomp.CLONE3[column]) == "ENOSYS"


def test_no_filter_is_made_up_for_an_unknown_processor() -> None:
    assert seccomp.program("riscv64") == b""


@pytest.mark.parametrize("machine", HEADERS)
def test_the_numbers_are_those_of_the_kernels_headers(machine: str) -> None:
    path, pattern = HEADERS[machine]
    if not path.is_file():
        # Justified: a check of constants against a file that few machines have.
        pytest.skip(f"no {path}")
    numbers = {name: int(number) for name, number in re.findall(pattern, path.read_text())}
    column = seccomp.MACHINES[machine][0]
    special = {"clone": seccomp.CLONE, "clone3": seccomp.CLONE3, "socket": seccomp.SOCKET, "mmap": seccomp.MMAP}
    ours = {name: both[column] for name, both in {**seccomp.DENIED, **special}.items()}
    assert {name: numbers[name] for name in ours} == ours
