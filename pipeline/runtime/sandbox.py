"""Locks the current process down before it sees any generated code.

Layers, each of which works alone; what a machine lacks is skipped and reported:

- rlimits: address space, file size, descriptors, no core dumps, no new processes;
- namespaces (user, mount, network, IPC, host name; Linux): no network, no capabilities, and a private temporary
  folder of limited size that vanishes with the process;
- Landlock (Linux 5.13, 6.7 for TCP): only Python's own files can be read, only the private folder written;
- seccomp (Linux on x86_64 and aarch64): no processes, threads, sockets, signals (see `seccomp.DENIED`).

What this does not hide: which files exist and their sizes (`stat` is not restricted), the clock, CPU time of the
machine's other users, and whatever the kernel itself gets wrong.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import resource
import signal
import struct
import sys
import sysconfig
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from pipeline.runtime import landlock, seccomp
from pipeline.runtime.limits import Limits

LAYERS = ("rlimits", "namespaces", "landlock", "seccomp")

# linux/sched.h
CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
# sys/mount.h
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
# linux/prctl.h, linux/capability.h
PR_SET_PDEATHSIG = 1
PR_SET_NO_NEW_PRIVS = 38
CAPABILITY_VERSION_3 = 0x20080522

INODES = 1024
"""How many files and folders fit into a private temporary folder."""

SYSTEM_FILES = (
    "/lib",
    "/lib32",
    "/lib64",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/share/zoneinfo",
    "/etc/localtime",
    "/etc/ld.so.cache",
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
)
"""What Python and its shared libraries may open late: libraries, time zones, randomness. Nothing personal."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Whether one layer of the sandbox holds, and its version or the reason why not."""

    active: bool
    detail: str = ""


def lock_down(shared: Path, limits: Limits, *, keep_writable: bool = False, serving: bool = False) -> dict[str, Layer]:
    """Lock this process down; it cannot be undone. Returns what holds, by layer (`LAYERS`).

    Afterwards its private folder is its working directory and its home. Where namespaces work, that is `shared` (an
    existing folder), with a file system of `limits.file_mb` in memory mounted over it that only this process sees.
    Elsewhere it is a folder of its own in `shared`, and writable only with `keep_writable`, since nothing there limits
    how much is written. The process must have one thread. With `serving` it may accept connections on sockets it
    already has.
    """
    layers = {"rlimits": _attempt(_limit_resources, limits)}
    layers["namespaces"] = _attempt(_enter_namespaces, shared, limits)
    own = shared if layers["namespaces"].active else shared / str(os.getpid())
    own.mkdir(mode=0o700, exist_ok=True)
    os.chdir(own)
    os.environ.update(HOME=str(own), TMPDIR=str(own))
    _give_up_privileges()
    writable = (own,) if keep_writable or layers["namespaces"].active else ()
    layers["landlock"] = _attempt(_restrict_files, writable)
    _die_with_parent()
    layers["seccomp"] = _attempt(_restrict_calls, seccomp.SERVING if serving else ())
    return layers


@functools.cache
def readable_paths() -> tuple[Path, ...]:
    """What a worker may read: the standard library, installed packages, this package, system libraries."""
    scheme = sysconfig.get_paths()
    python = [Path(scheme[key]) for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    # Anything else on the path (a checkout installed as editable, say) may hold more than packages: not opened.
    packages = [Path(entry) for entry in sys.path if Path(entry).name in {"site-packages", "dist-packages"}]
    libraries = Path(sys.base_prefix, "lib")
    own = Path(__file__).resolve().parents[1]
    return tuple(dict.fromkeys([*python, *packages, libraries, own, *map(Path, SYSTEM_FILES)]))


def _attempt(layer, *arguments) -> Layer:
    try:
        return Layer(True, layer(*arguments))
    except (OSError, ValueError, AttributeError) as error:  # AttributeError: this libc lacks the function
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Layer(False, reason)


def _limit_resources(limits: Limits) -> str:
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, limits.file_mb << 20)
    _limit(resource.RLIMIT_NOFILE, limits.open_files)
    _limit(resource.RLIMIT_NPROC, 0)
    if not sys.platform.startswith("linux"):
        return "without a memory limit: this system does not enforce one on address space"
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    _limit(resource.RLIMIT_AS, pages * resource.getpagesize() + (limits.memory_mb << 20))
    return f"{limits.memory_mb} MB"


def _limit(what: int, value: int) -> None:
    resource.setrlimit(what, (value, value))


def _enter_namespaces(folder: Path, limits: Limits) -> str:
    libc = _linux_libc()
    user, group = os.geteuid(), os.getegid()
    _check(libc.unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS))
    # Without a mapping of its own user the process could not create files in the file system mounted below.
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    options = f"size={limits.file_mb}m,nr_inodes={INODES},mode=700".encode()
    _check(libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options))
    return "user, mount, network, ipc, uts"


def _give_up_privileges() -> None:
    """Give up root's powers, and those over a namespace just entered; no program it starts could have them either."""
    if sys.platform.startswith("linux"):
        libc = _linux_libc()
        _check(libc.capset(struct.pack("=Ii", CAPABILITY_VERSION_3, 0), bytes(24)))
        _check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def _restrict_files(writable: tuple[Path, ...]) -> str:
    _linux_libc()
    return f"ABI {landlock.restrict(readable_paths(), writable)}"


def _restrict_calls(allowed: Collection[str]) -> str:
    _linux_libc()
    seccomp.restrict(allowed)
    return f"{len(seccomp.DENIED) - len(allowed)} calls denied"


def _die_with_parent() -> None:
    """Have the kernel kill this process when its parent ends (changing namespaces resets that, so do it late)."""
    if sys.platform.startswith("linux"):
        _check(_linux_libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))


def _linux_libc() -> ctypes.CDLL:
    if not sys.platform.startswith("linux"):
        raise OSError(errno.ENOSYS, f"{sys.platform} does not have it")
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
