"""`leash.py SCRIPT ARGUMENT…`: run a script that does not outlive whoever started it.

The starter holds the other end of our standard input. When that closes, however the starter ended, this process and
all it started end. The script itself finds nothing on its standard input, so that a question asked there is answered
by the end of the file and not waited for.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
import time
from pathlib import Path

PATIENCE_S = 5.0
"""Seconds between asking and making the group end."""


def main() -> None:
    """Watch the starter, and run the script."""
    line = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    threading.Thread(target=_end_with_the_starter, args=(line,), daemon=True).start()
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


def _end_with_the_starter(line: int) -> None:
    while os.read(line, 4096):
        pass
    os.killpg(0, signal.SIGTERM)
    time.sleep(PATIENCE_S)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
