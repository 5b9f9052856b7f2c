"""What is being said right now, as files beside the run, so that any studio can watch a model write."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

FLUSH_S = 0.2
"""Seconds between two writes of one file: quick enough to watch, few enough with a hundred streams."""


def live_file(folder: Path, scenario: str | None, step: str) -> Path:
    """The file that a step's present reply streams into."""
    return folder / "live" / (scenario or "_scenarios") / f"{step.replace('/', '-').replace(' ', '-')}.txt"


class LiveText:
    """One reply being written to its file. Thinking is set between lines of `<think>` and `</think>`."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._file: TextIO | None = None  # opened when the first words come: thousands may wait for their turn to ask
        self._clock = clock
        self._flushed = clock()
        self._thinking = False

    def write(self, kind: str, text: str) -> None:
        """Add some of the reply."""
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("w", encoding="utf-8")
        if (kind == "thinking") is not self._thinking:
            self._thinking = not self._thinking
            self._file.write("<think>\n" if self._thinking else "\n</think>\n")
        self._file.write(text)
        if self._clock() - self._flushed >= FLUSH_S:
            self._file.flush()
            self._flushed = self._clock()

    def close(self) -> None:
        """Write what is left. The file stays until the step is asked for again."""
        if self._file is not None:
            self._file.close()
