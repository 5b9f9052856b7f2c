"""Where the studio's own log goes, and what is left of it when something breaks."""

from __future__ import annotations

import logging
import os
import tempfile
import threading
from logging.handlers import RotatingFileHandler
from pathlib import Path

SIZE = 1_000_000
"""Bytes a log file may have before it is put aside."""
KEPT = 4
"""How many put-aside files are kept."""

_log = logging.getLogger("studio")


def write_to(folder: Path) -> Path:
    """Write the log to `studio.log` in a folder from now on; a folder that cannot be written to changes nothing."""
    path = folder / "studio.log"
    try:
        handler = RotatingFileHandler(path, maxBytes=SIZE, backupCount=KEPT, encoding="utf-8", delay=False)
    except OSError as error:
        _log.warning("no log in %s: %s", folder, error)
        return path
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    for old in list(_log.handlers):
        _log.removeHandler(old)
        old.close()
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
    _log.propagate = False
    return path


def keep_crash(error: BaseException) -> Path:
    """Write an exception with its traceback to the log and return the log's path.

    Before a workspace is open the log is a file in the temporary folder.
    """
    if not any(isinstance(handler, RotatingFileHandler) for handler in _log.handlers):
        write_to(Path(tempfile.mkdtemp(prefix="awm-studio-")))
    _log.critical("the studio crashed", exc_info=error)
    handler = next(handler for handler in _log.handlers if isinstance(handler, RotatingFileHandler))
    return Path(handler.baseFilename)


def leave_within(seconds: float, code: int) -> None:
    """End the process after so many seconds if nothing else has: writing to a terminal that is gone can block."""
    timer = threading.Timer(seconds, os._exit, (code,))
    timer.daemon = True
    timer.start()
