"""Tries from inside a worker what the sandbox is there to prevent."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

from pipeline.runtime.limits import Limits


def attempts(limits: Limits) -> dict[str, bool]:
    """What each layer prevents here: True where it was refused."""
    return {
        "rlimits": _refused(lambda: bytearray(2 * limits.memory_mb << 20)),
        "landlock": _refused(lambda: list(Path("/").iterdir())) and _refused(Path("/etc/passwd").read_bytes),
        "seccomp": _refused(socket.socket) and _refused(_fork),
    }


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)
    os.wait()


def _refused(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except (OSError, MemoryError):
        return True
    return False
