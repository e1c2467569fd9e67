"""Attacks on bubblewrap's sandbox: memory and files that nobody counts, and ways into the kernel or to a neighbour."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import struct
import textwrap
from pathlib import Path

import pytest

from ci import sandbox
from ci.sandbox import Limits, Ran, seccomp
from tests.ci.helpers import need_bubblewrap
from tests.parts import missing

LIMITS = Limits(seconds=60, memory=200 << 20, processes=40, file_size=32 << 20, written=4 << 20, files=200)


@pytest.fixture(autouse=True)
def _bubblewrap() -> None:
    need_bubblewrap()


def run(tmp_path: Path, code: str, *arguments: str, limits: Limits = LIMITS) -> Ran:
    command = ("-c", textwrap.dedent(code), *arguments)
    return sandbox.run(command, read={}, out=tmp_path / "out", limits=limits)


# Each uses more than it may without being a large process or a large visible file, and then ends well.
HOARDS = {
    "a file in memory": ("for i in range(10): os.write(os.memfd_create('x'), BLOCK)", "Operation not permitted"),
    "shared memory that is not mapped": (
        "parts = [mmap.mmap(-1, len(BLOCK)) for _ in range(10)]\n"
        "for part in parts:\n    part.write(BLOCK)\n    part.madvise(mmap.MADV_DONTNEED)",
        "Operation not permitted",
    ),
    "shared memory of /dev/zero": (
        "file = open('/dev/zero', 'r+b')\nparts = [mmap.mmap(file.fileno(), len(BLOCK)) for _ in range(10)]\n"
        "for part in parts:\n    part.write(BLOCK)\n    part.madvise(mmap.MADV_DONTNEED)",
        "Permission denied",
    ),
    "a segment of System V": (
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "if libc.shmget(0, ctypes.c_size_t(1 << 28), 0o1600) < 0: raise OSError(ctypes.get_errno(), 'shmget')",
        "shmget",
    ),
    "page tables of pages that are only read": (  # one page in each 2 MB, and all of them are the page of zeros
        "areas = [mmap.mmap(-1, 1 << 35, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ) for _ in range(8)]\n"
        "for area in areas:\n    area.madvise(mmap.MADV_NOHUGEPAGE)\n"
        "    for place in range(0, 1 << 35, 1 << 21): area[place]",
        "memory",
    ),
    "full sockets": (
        "pairs = [socket.socketpair() for _ in range(450)]\n"
        "for pair in pairs:\n    pair[0].setblocking(False)\n    pair[0].setsockopt(1, 7, 1 << 22)\n"
        "    try:\n        while True: pair[0].send(BLOCK)\n    except BlockingIOError: pass\n",
        "memory",
    ),
    "deleted files in /tmp": (
        "files = [open(f'/tmp/{i}', 'wb') for i in range(10)]\n"
        "for i, file in enumerate(files):\n    file.write(BLOCK)\n    os.unlink(f'/tmp/{i}')",
        "memory",
    ),
    "deleted files among the results": (
        "files = [open(f'/out/{i}', 'wb') for i in range(10)]\n"
        "for i, file in enumerate(files):\n    file.write(BLOCK[:1 << 20])\n    os.unlink(f'/out/{i}')",
        "files|No space left",
    ),
    "files below a path that is too long": (
        "os.chdir('/out')\nfor _ in range(25):\n    os.mkdir('x' * 200)\n    os.chdir('x' * 200)\n"
        "for i in range(10): open(str(i), 'wb').write(BLOCK[:1 << 20])",
        "files|No space left",
    ),
    "empty files in /tmp": ("for i in range(1000): open(f'/tmp/{i}', 'w').close()", "files"),
    "threads": (
        "for _ in range(200): threading.Thread(target=time.sleep, args=(2,), daemon=True).start()",
        "processes|can't start new thread",
    ),
}


@pytest.mark.parametrize("hoard", HOARDS)
def test_what_is_hoarded_out_of_sight_counts(tmp_path: Path, hoard: str) -> None:
    code, reason = HOARDS[hoard]
    imports = "import ctypes, mmap, os, socket, threading, time\nBLOCK = b'x' * (24 << 20)\n"
    ran = run(tmp_path, f"{imports}{code}\ntime.sleep(1)")
    assert not ran.ok
    assert re.search(reason, f"{ran.status}\n{ran.output}")


SYSCALL = """
import ctypes, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    result = libc.syscall(*(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    return result if result >= 0 else -ctypes.get_errno()
"""
INTEL = pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of system calls of another processor")


@INTEL
def test_no_message_through_the_kernels_keyring(tmp_path: Path) -> None:
    """The session's keyring is one for all processes of a login, whatever their namespaces."""
    libc = ctypes.CDLL(None, use_errno=True)
    name = f"neuco-{os.getpid()}".encode()
    key = libc.syscall(248, b"user", name, b"the labels", ctypes.c_long(10), ctypes.c_long(-3))
    if key < 0:
        missing("keyrings", "forbidden here, as in some containers")
    try:
        ask = "print(call(250, 10, -3, b'user', sys.argv[1].encode(), 0), call(250, 11, int(sys.argv[2]), 0))"
        ran = run(tmp_path, SYSCALL + ask, name.decode(), str(key))
        names = run(tmp_path, "print(open('/proc/keys').read())")
    finally:
        libc.syscall(250, ctypes.c_long(9), ctypes.c_long(key), ctypes.c_long(-3))
    assert (ran.status, ran.output) == ("ok", "-1 -1\n")
    assert (name.decode() in names.output, "Permission denied" in names.output) == (False, True)


NEW_USER = 0x10000000
WAYS = {
    "unshare": (f"272, {NEW_USER}", "EPERM"),
    "clone": (f"56, {NEW_USER | 17}, 0, 0, 0, 0", "EPERM"),
    "clone3, whose flags nobody can look at": ("435, 0, 0", "ENOSYS"),
    "ptrace": ("101, 0, 0, 0, 0", "EPERM"),
    "io_uring_setup": ("425, 1, 0", "EPERM"),
    "userfaultfd": ("323, 1", "EPERM"),
    "bpf": ("321, 0, 0, 0", "EPERM"),
    "a call that is newer than this list": ("480, 0, 0", "ENOSYS"),
    "the calls of another binary interface": (f"{0x40000000 + 39}", "ENOSYS"),
}


@INTEL
def test_ways_into_the_kernel_are_closed(tmp_path: Path) -> None:
    calls = "".join(f"    {way!r}: call({arguments}),\n" for way, (arguments, _) in WAYS.items())
    ran = run(tmp_path, f"{SYSCALL}\nfor way, result in {{\n{calls}}}.items():\n    print(way, -result, sep=': ')")
    assert ran.output.splitlines() == [f"{way}: {getattr(errno, error)}" for way, (_, error) in WAYS.items()]


@INTEL
def test_the_calls_of_a_32_bit_program_are_closed(tmp_path: Path) -> None:
    code = """
    import ctypes, mmap
    machine = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
    machine.write(bytes.fromhex("b814000000cd80c3"))  # getpid() by the old interrupt
    address = ctypes.addressof(ctypes.c_char.from_buffer(machine))
    print("pid", ctypes.CFUNCTYPE(ctypes.c_int)(address)())
    """
    ran = run(tmp_path, code)
    assert (ran.status, "pid" in ran.output) == ("failed", False)


FAMILIES = """
import socket
for family, kind in (("VSOCK", "STREAM"), ("NETLINK", "DGRAM"), ("PACKET", "STREAM"), ("ALG", "SEQPACKET")):
    try:
        socket.socket(getattr(socket, f"AF_{family}"), getattr(socket, f"SOCK_{kind}"))
    except OSError as error:
        print(family, error.strerror)
"""


def test_no_socket_to_the_kernel_or_to_the_machine_around_it(tmp_path: Path) -> None:
    """A socket to the hypervisor belongs to no network namespace."""
    errors = [f"{family} Address family not supported by protocol" for family in ("VSOCK", "NETLINK", "PACKET", "ALG")]
    assert run(tmp_path, FAMILIES).output.splitlines() == errors


WORK = """
import multiprocessing, multiprocessing.shared_memory, socket, sys
import numba, numpy, torch
from torch.utils.data import DataLoader

@numba.njit(parallel=True)
def total(values):
    result = 0.0
    for i in numba.prange(values.size):
        result += values[i]
    return result

def square(x):
    return x * x

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(square, [1, 2, 3]))
    shared = multiprocessing.shared_memory.SharedMemory(create=True, size=1 << 20)
    shared.unlink()
    print(multiprocessing.Value("d", 1.5).value, total(numpy.ones(1000)))
    loader = DataLoader(list(range(8)), batch_size=4, num_workers=2)
    print(sum(int(batch.sum()) for batch in loader), float(torch.ones(300, 300).matmul(torch.ones(300, 300)).sum()))
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
"""


@pytest.mark.slow
def test_ordinary_work_still_works(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "work.py").write_text(WORK)
    ran = sandbox.run(("work.py",), read={"/tree": tree}, out=tmp_path / "out")
    assert (ran.status, ran.output) == ("ok", "[1, 4, 9]\n1.5 1000.0\n28 27000000.0\n")


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
