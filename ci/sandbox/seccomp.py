"""System calls that contributed code cannot make, as a seccomp filter: a program in the language of packet filters.

What is not named here is allowed; what is newer than this list does not exist for the code.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Sequence

Instruction = tuple[int, int, int, int]  # operation, jump if true, jump if false, operand

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column in the table, the kernel's name of it
# Numbers on x86_64 and aarch64.
DENIED = {
    # Keyrings are shared by all processes of a login: a channel between two sandboxes, and to the host.
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # The memory and the files of other processes.
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    # Large and young parts of the kernel, where most of its holes were found.
    "bpf": (321, 280), "userfaultfd": (323, 282), "perf_event_open": (298, 241), "fanotify_init": (300, 262),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    # Other namespaces and mounts.
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    # Memory that belongs to no process, so that nobody could count it.
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "vmsplice": (278, 75), "mq_open": (240, 180),
    "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190),
    # The machine itself.
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "syslog": (103, 116), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
}  # fmt: skip
CLONE, CLONE3, SOCKET, MMAP = (56, 220), (435, 435), (41, 198), (9, 222)
UNKNOWN = 463  # the first number that was not given away when this list was made; also above: the x32 interface
NAMESPACES = 0x7E020000  # CLONE_NEW…
FAMILIES = (1, 2, 10)  # Unix, and the two of the internet, for servers on the sandbox's own loopback
SHARED, ANONYMOUS = 0x01, 0x20  # flags of mmap

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _MACHINE = (_LOAD, 0, 0, 0), (_LOAD, 0, 0, 4)


def program(machine: str = "") -> bytes:
    """The filter for a machine, or nothing if its numbers are not known here."""
    if (machine or platform.machine()) not in MACHINES:
        return b""
    column, name = MACHINES[machine or platform.machine()]
    steps = [_MACHINE, (_EQUAL, 1, 0, name), (_RETURN, 0, 0, _KILL), _NUMBER]
    steps += [(_AT_LEAST, 0, 1, UNKNOWN), _fail(errno.ENOSYS)]
    # The flags of clone3 are out of sight; without it the C library falls back to clone.
    steps += [(_EQUAL, 0, 1, CLONE3[column]), _fail(errno.ENOSYS)]
    for numbers in DENIED.values():
        steps += [(_EQUAL, 0, 1, numbers[column]), _fail(errno.EPERM)]
    steps += _look_at(CLONE[column], 0, [(_ANY_BIT, 0, 1, NAMESPACES), _fail(errno.EPERM)])
    steps += _look_at(MMAP[column], 3, [(_ANY_BIT, 0, 2, SHARED), (_ANY_BIT, 0, 1, ANONYMOUS), _fail(errno.EPERM)])
    families = [(_EQUAL, len(FAMILIES) - i, 0, family) for i, family in enumerate(FAMILIES)]
    steps += _look_at(SOCKET[column], 0, [*families, _fail(errno.EAFNOSUPPORT)])
    return b"".join(struct.pack("=HBBI", *step) for step in [*steps, (_RETURN, 0, 0, _ALLOW)])


def _fail(error: int) -> Instruction:
    return (_RETURN, 0, 0, _FAIL | error)


def _look_at(number: int, argument: int, steps: Sequence[Instruction]) -> list[Instruction]:
    """Steps for one call only, about the lower half of one argument; afterwards the number is loaded again."""
    load = (_LOAD, 0, 0, 16 + 8 * argument)
    return [(_EQUAL, 0, len(steps) + 2, number), load, *steps, _NUMBER]
