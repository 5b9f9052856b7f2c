"""Who works on a run: a lock that the operating system takes back when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from pipeline.errors import UserError

NAME = "engine.lock"
PATIENCE_S = 1.0
"""How long a held lock is tried again: a killed process with many threads lets go of it a little after it has gone, and
whoever asks for the `worker` holds it for a moment."""
TRY_AGAIN_S = 0.02
"""Seconds between two tries: the kernel tells nobody that a lock is free unless they wait for it without end."""


@contextmanager
def work_on(folder: Path, run: int) -> Generator[None]:
    """Hold a run's lock. Raises UserError where another process holds it, and names that process."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / NAME).open("a+") as file:
        if not _locked(file):
            raise UserError(
                f"Process {worker(folder) or '?'} is working on run {run} already: watch it with "
                f"awm-studio run show {run}, or stop it with awm-studio run stop {run}."
            )
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _locked(file: TextIO) -> bool:
    """Take the lock of a file; whether it could be had."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() > until:
                return False
            time.sleep(TRY_AGAIN_S)
        else:
            return True


def worker(folder: Path) -> int | None:
    """The process that works on a run, or None. The number is 0 where it has not been written yet."""
    try:
        with (folder / NAME).open("r+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return int(file.read() or 0)
    except OSError:
        pass
    return None
