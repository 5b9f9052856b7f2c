"""Seccomp: the system calls a worker may no longer make, as a classic BPF program.

A list of what is denied, not of what is allowed, so that another libc or Python does not break honest code. What
it denies: new processes and threads, other programs, signals, sockets, other processes' memory, file metadata
(which Landlock does not govern), mounts, identities, own limits, and kernel features with a record of holes.
See seccomp(2), `linux/seccomp.h`, `linux/filter.h`; numbers from `asm/unistd_64.h` and `asm-generic/unistd.h`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct
from collections.abc import Collection, Iterator

ALLOW = 0x7FFF0000
KILL_PROCESS = 0x80000000
ERRNO = 0x00050000

PR_SET_SECCOMP = 22
MODE_FILTER = 2

# Offsets into struct seccomp_data (the low half of an argument, on little-endian machines).
NUMBER = 0
ARCHITECTURE = 4
FIRST_ARGUMENT = 16
SECOND_ARGUMENT = 24

# BPF instructions (linux/bpf_common.h, linux/filter.h).
INSTRUCTION_SIZE = 8
LOAD = 0x20
AND = 0x54
RETURN = 0x06
IF_EQUAL = 0x15
IF_AT_LEAST = 0x35

AUDIT_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32_CALLS = 0x40000000
"""x86_64 kernels may take a second set of numbers from here; the same calls, so all are refused."""
SHARED_NUMBERS = 424
"""From here on (Linux 5.1) a system call has the same number on every architecture."""
SOCKET_TYPE_MASK = 0xF

NEW_CALLS_ALLOWED = {
    "close_range": 436,
    "openat2": 437,
    "faccessat2": 439,
    "epoll_pwait2": 441,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
    "futex_waitv": 449,
}
"""Of the calls since Linux 5.1 only these; the rest answer ENOSYS, which every libc takes as an older kernel."""

DENIED: dict[str, tuple[int | None, int | None]] = {
    # processes, threads, other programs
    "fork": (57, None),
    "vfork": (58, None),
    "clone": (56, 220),
    "execve": (59, 221),
    "execveat": (322, 281),
    # signals, and other processes' memory
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    # sockets, and passing descriptors over them
    "socket": (41, 198),
    "bind": (49, 200),
    "connect": (42, 203),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    "recvmsg": (47, 212),
    "recvmmsg": (299, 243),
    # file metadata, links, truncation by name
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "truncate": (76, 45),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # mounts and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "quotactl": (179, 60),
    # identity, and the limits set here
    "setuid": (105, 146),
    "setgid": (106, 144),
    "setreuid": (113, 145),
    "setregid": (114, 143),
    "setresuid": (117, 147),
    "setresgid": (119, 149),
    "setfsuid": (122, 151),
    "setfsgid": (123, 152),
    "setgroups": (116, 159),
    "capset": (126, 91),
    "prctl": (157, 167),
    "setrlimit": (160, 164),
    "prlimit64": (302, 261),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "sched_setaffinity": (203, 122),
    "setpgid": (109, 154),
    "setsid": (112, 157),
    "personality": (135, 92),
    # memory that the address space limit does not count, or that outlives the process
    "memfd_create": (319, 279),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    # kernel features with a record of holes
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_setup": (206, 0),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "fanotify_init": (300, 262),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "modify_ldt": (154, None),
    "set_mempolicy": (238, 237),
    "mbind": (237, 235),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # the machine
    "reboot": (169, 142),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "syslog": (103, 116),
    "acct": (163, 89),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "iopl": (172, None),
    "ioperm": (173, None),
}
"""Denied with EPERM, which Python turns into PermissionError: (number on x86_64, number on aarch64)."""

DENIED_COMMANDS: dict[str, tuple[tuple[int, int], tuple[int, ...]]] = {
    "fcntl": ((72, 25), (8, 10, 15)),  # F_SETOWN, F_SETSIG, F_SETOWN_EX
    "ioctl": ((16, 29), (0x8901, 0x8902)),  # FIOSETOWN, SIOCSPGRP
}
"""Denied by their second argument: (numbers, values). These have the kernel signal another process about I/O."""

SOCKETPAIR = (53, 199)
"""Allowed only for connected Unix streams, which reach nobody else; asyncio makes one for each event loop."""

_libc = ctypes.CDLL(None, use_errno=True)


SERVING = frozenset({"listen", "accept", "accept4"})
"""What a server needs of what is denied, on a socket it was given."""


def restrict(allowed: Collection[str] = ()) -> None:
    """Install the filter in this process, without the calls in `allowed`; it cannot be taken off again.

    The process must have given up gaining privileges (PR_SET_NO_NEW_PRIVS).

    Raises OSError where the kernel has no seccomp filters or this machine's system call numbers are not known.
    """
    machine = platform.machine()
    if machine not in AUDIT_ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no system call numbers for {machine or 'this machine'}")
    code = b"".join(program(machine, allowed))
    instructions = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HP", len(code) // INSTRUCTION_SIZE, ctypes.addressof(instructions))
    if _libc.prctl(PR_SET_SECCOMP, MODE_FILTER, header) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def program(machine: str, allowed: Collection[str] = ()) -> Iterator[bytes]:
    """The filter's BPF instructions for a machine."""
    column = list(AUDIT_ARCHITECTURES).index(machine)
    yield _step(LOAD, ARCHITECTURE)
    yield _step(IF_EQUAL, AUDIT_ARCHITECTURES[machine], 1, 0)
    yield _step(RETURN, KILL_PROCESS)
    yield _step(LOAD, NUMBER)
    yield _step(IF_AT_LEAST, X32_CALLS, 0, 1)
    yield _step(RETURN, KILL_PROCESS)
    yield _step(IF_AT_LEAST, SHARED_NUMBERS, 0, 2 * len(NEW_CALLS_ALLOWED) + 1)
    for number in NEW_CALLS_ALLOWED.values():
        yield from _answer(number, ALLOW)
    yield _step(RETURN, ERRNO | errno.ENOSYS)
    for name, numbers in DENIED.items():
        number = numbers[column]
        if number is not None and name not in allowed:
            yield from _answer(number, ERRNO | errno.EPERM)
    for numbers, commands in DENIED_COMMANDS.values():
        yield _step(IF_EQUAL, numbers[column], 0, 2 * len(commands) + 2)
        yield _step(LOAD, SECOND_ARGUMENT)
        for command in commands:
            yield from _answer(command, ERRNO | errno.EPERM)
        yield _step(RETURN, ALLOW)
    yield _step(IF_EQUAL, SOCKETPAIR[column], 0, 6)
    yield _step(LOAD, FIRST_ARGUMENT)
    yield _step(IF_EQUAL, socket.AF_UNIX, 0, 3)
    yield _step(LOAD, SECOND_ARGUMENT)
    yield _step(AND, SOCKET_TYPE_MASK)
    yield _step(IF_EQUAL, socket.SOCK_STREAM, 1, 0)
    yield _step(RETURN, ERRNO | errno.EPERM)
    yield _step(RETURN, ALLOW)


def _answer(number: int, answer: int) -> Iterator[bytes]:
    yield _step(IF_EQUAL, number, 0, 1)
    yield _step(RETURN, answer)


def _step(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, operand)
