"""The proxy's log: one JSON line a request of the harness, which is what a run can be followed by."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.errors import UserError
from train.json_lines import drop_cut_line, json_line, read_json_line

LAST_BYTES = 256 * 1024
"""Of a log, what is looked at for its newest entries: some dozens."""


@dataclass
class ProxyLog:
    """Appends to a log. Threads may share it; keys are never among what it is given."""

    path: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Raises UserError where the file cannot be written."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            drop_cut_line(self.path)
            self.path.open("ab").close()
        except OSError as error:
            raise UserError(f"{self.path} cannot be written: {error.strerror}.") from error

    def add(self, entry: Mapping[str, Any]) -> None:
        """Append an entry. Raises OSError where the disk is full."""
        with self._lock, self.path.open("ab") as file:
            file.write(json_line({"t": round(time.time(), 3), **entry}))


def read_log(path: Path) -> Iterator[dict[str, Any]]:
    """The entries of a log; a last line that is being written is left out."""
    try:
        with path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield read_json_line(line)
    except FileNotFoundError:
        return


def read_last(path: Path, most: int = LAST_BYTES) -> list[dict[str, Any]]:
    """The newest entries of a log that are within its last `most` bytes; a long log is not read for them."""
    try:
        with path.open("rb") as file:
            begin = max(0, file.seek(0, os.SEEK_END) - most)
            file.seek(begin)
            lines = file.read().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    whole = lines[1:] if begin else lines  # the first one may have been cut
    return [read_json_line(line) for line in whole if line.endswith(b"\n")]


def summed(path: Path) -> dict[str, int]:
    """What went through a proxy: requests of the harness and to the model, calls, errors, tokens."""
    totals = {"requests": 0, "asked": 0, "calls": 0, "errors": 0, "tokens_in": 0, "tokens_out": 0}
    for entry in read_log(path):
        totals["requests"] += 1
        totals["asked"] += len(entry["said"])
        totals["calls"] += len(entry["calls"])
        totals["errors"] += bool(entry["error"])
        totals["tokens_in"] += entry["usage"]["prompt_tokens"]
        totals["tokens_out"] += entry["usage"]["completion_tokens"]
    return totals
