"""Landlock: from here on, this process reaches only the files it is told to.

The process must have given up gaining privileges (PR_SET_NO_NEW_PRIVS).

Called through ctypes, so that nothing needs to be installed. Numbers and rights are those of
`include/uapi/linux/landlock.h`; see landlock(7) and https://docs.kernel.org/userspace-api/landlock.html.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable
from pathlib import Path

# The same numbers on every architecture, as for all system calls since Linux 5.1.
CREATE_RULESET = 444
ADD_RULE = 445
RESTRICT_SELF = 446

CREATE_RULESET_VERSION = 1
RULE_PATH_BENEATH = 1

WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_DIR = 1 << 3
REMOVE_DIR = 1 << 4
REMOVE_FILE = 1 << 5
MAKE_DIR = 1 << 7
MAKE_REG = 1 << 8
TRUNCATE = 1 << 14

FILE_RIGHTS_BY_ABI = ((1, (1 << 13) - 1), (2, 1 << 13), (3, TRUNCATE), (5, 1 << 15))
"""The file rights that each ABI version added: all of version 1, REFER, TRUNCATE, IOCTL_DEV."""
NETWORK_RIGHTS = 0b11
"""Bind and connect TCP, since ABI 4."""
SCOPES = 0b11
"""Abstract Unix sockets and signals to processes outside, since ABI 6."""

READ = READ_FILE | READ_DIR
WRITE = WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | TRUNCATE
DIRECTORY_ONLY = READ_DIR | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG
"""Rights that the kernel refuses in a rule about a file that is not a directory."""

_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """The Landlock version of this kernel, or 0 where it has none or it is switched off at boot."""
    return max(0, _libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), CREATE_RULESET_VERSION))


def restrict(readable: Iterable[Path], writable: Iterable[Path]) -> int:
    """Deny every file but those beneath `readable` (read) and `writable` (read, write, create, remove).

    TCP, abstract Unix sockets and signals to processes outside are denied too, where the kernel can. Paths that do
    not exist are passed over. Returns the ABI version used. Raises OSError where Landlock is not available.
    """
    version = abi()
    if not version:
        raise OSError(errno.ENOSYS, "this kernel has no Landlock, or it is switched off at boot")
    handled = sum(rights for since, rights in FILE_RIGHTS_BY_ABI if version >= since)
    ruleset = _create_ruleset(handled, NETWORK_RIGHTS if version >= 4 else 0, SCOPES if version >= 6 else 0)
    for paths, rights in ((readable, READ), (writable, READ | WRITE)):
        for path in paths:
            _allow(ruleset, path, rights & handled)
    _enforce(ruleset)
    return version


def forbid_writing() -> None:
    """Take away whatever write access is left; a second call changes nothing. Raises OSError as `restrict` does."""
    handled = WRITE if abi() >= 3 else WRITE & ~TRUNCATE
    _enforce(_create_ruleset(handled, 0, 0))


def _create_ruleset(files: int, network: int, scopes: int) -> int:
    # A kernel refuses set bits beyond the struct it knows, and takes zeros there; so send no more than is needed.
    attributes = struct.pack("=QQQ", files, network, scopes)[: 24 if scopes else 16 if network else 8]
    return _checked(_libc.syscall(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0))


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    try:
        if not path.is_dir():
            rights &= ~DIRECTORY_ONLY
        rule = struct.pack("=Qi", rights, handle)
        _checked(_libc.syscall(ADD_RULE, ruleset, RULE_PATH_BENEATH, rule, 0))
    finally:
        os.close(handle)


def _enforce(ruleset: int) -> None:
    try:
        _checked(_libc.syscall(RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
