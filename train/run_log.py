"""What another process can follow of a training run: files in the run's folder, appended to or replaced whole.

- `metrics.jsonl`: one JSON object a line with `t` (seconds since 1970) and `kind`: `begin`, `warmup` (a step of the
  supervised training), `step` (of reinforcement learning, with all its figures), `try` (held-out tasks), `checkpoint`,
  `resumed`, `end`
- `status.json`: process, state, phase, step, how many rollouts go on: replaced at every change and every generation
- `trajectories.jsonl`: the rollouts (see `trajectory`), with their step
- `stop`: whoever creates this file asks the run to stop after its step
"""

from __future__ import annotations

import json
import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

from pipeline.errors import UserError
from pipeline.snapshots import replace_file
from train.json_lines import drop_cut_line, json_line, read_json_line
from train.records import TRAJECTORIES

METRICS, STATUS, STOP = "metrics.jsonl", "status.json", "stop"

NUMBERS = {"step": ("t", "step"), "warmup": ("t", "warmup_step"), "try": ("t", "step", "complete", "judged")}
"""The numbers without which an event of a kind says nothing; one of another kind needs its time alone."""

END_OF_TIME = 253_402_300_800
"""The year 10000 in seconds since 1970, from which on there are no dates."""


class RunLog:
    """Writes what happens in a run. Only the first of several processes does."""

    def __init__(self, folder: Path, *, first: bool = True) -> None:
        self.folder = folder
        self.is_first = first
        self._status: dict[str, Any] = {"pid": os.getpid()}
        self._signalled = False

    def event(self, kind: str, **data: Any) -> None:
        """Append an event. Raises UserError where the disk is full."""
        if not self.is_first:
            return
        path = self.folder / METRICS
        try:
            with path.open("ab") as file:
                file.write(json_line({"t": round(time.time(), 3), "kind": kind, **data}))
        except OSError as error:
            raise UserError(f"{path} cannot be written ({error.strerror}): free some space, then resume.") from error

    def status(self, **changes: Any) -> None:
        """Say how the run stands."""
        if not self.is_first:
            return
        self._status |= changes | {"t": round(time.time(), 3)}
        try:
            replace_file(self.folder / STATUS, json_line(self._status))
        except OSError as error:
            raise UserError(f"{self.folder} cannot be written ({error.strerror}): free some space.") from error

    def stop_on_signals(self) -> None:
        """Let SIGTERM and SIGINT ask for a stop; a second SIGINT ends the process at once."""
        if threading.current_thread() is not threading.main_thread():
            return

        def asked(number: int, _: Any) -> None:
            self._signalled = True
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

        signal.signal(signal.SIGTERM, asked)
        signal.signal(signal.SIGINT, asked)

    def stop_asked(self) -> bool:
        """Whether the run is to stop."""
        return self._signalled or (self.folder / STOP).exists()

    def rewind(self, step: int) -> None:
        """Forget what came after a step: a killed run goes on from its last checkpoint, and makes that again."""
        if not self.is_first:
            return
        for name, key in ((METRICS, "step"), (TRAJECTORIES, "step")):
            path = self.folder / name
            drop_cut_line(path)
            if path.exists():
                kept = [line for line in path.read_bytes().splitlines(keepends=True) if _by(line, key, step)]
                replace_file(path, b"".join(kept))
        (self.folder / STOP).unlink(missing_ok=True)


def _by(line: bytes, key: str, step: int) -> bool:
    value = read_json_line(line).get(key)
    return value is None or value <= step


def last_checkpoint(folder: Path) -> tuple[Path, int] | None:
    """The newest whole checkpoint in a folder, and its step: one whose writing was cut off has no state file yet."""
    found = [(int(path.name.rpartition("-")[2]), path) for path in folder.glob("checkpoint-*") if _is_whole(path)]
    if not found:
        return None
    step, path = max(found)
    return path, step


def _is_whole(checkpoint: Path) -> bool:
    return checkpoint.name.rpartition("-")[2].isdigit() and (checkpoint / "trainer_state.json").is_file()


def read_metrics(folder: Path, kind: str | None = None) -> list[dict[str, Any]]:
    """The events of a run, of one kind or all; what is no whole event is left out (see `events_in`)."""
    try:
        whole = (folder / METRICS).read_bytes().rpartition(b"\n")[0]
    except FileNotFoundError:
        return []
    return [event for event in events_in(whole) if kind in (None, event["kind"])]


def events_in(lines: bytes) -> Iterator[dict[str, Any]]:
    """The events that are written in lines. What a full disk or a killed process has left of one is left out."""
    for line in lines.split(b"\n"):
        try:
            event = read_json_line(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict) and isinstance(event.get("kind"), str):
            numbers = [event.get(name) for name in NUMBERS.get(event["kind"], ("t",))]
            if all(map(is_number, numbers)) and 0 <= event["t"] < END_OF_TIME:
                yield event


def is_number(value: Any) -> TypeGuard[int | float]:
    """Whether something is a finite number."""
    return isinstance(value, int | float) and math.isfinite(value)


class Follower:
    """Reads a run's events as they come, however long the run is."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / METRICS
        self._file: int | None = None
        self._read = 0

    def news(self) -> tuple[list[dict[str, Any]], bool]:
        """The events since the last time, and whether they are all there are: at first, and when a run was rewound.

        A last line that is being written comes the next time; what is no whole event is left out (see `events_in`).
        """
        try:
            with self._path.open("rb") as file:
                facts = os.fstat(file.fileno())
                anew = facts.st_ino != self._file or facts.st_size < self._read
                self._file, self._read = facts.st_ino, 0 if anew else self._read
                file.seek(self._read)
                whole = file.read().rpartition(b"\n")[0]
        except FileNotFoundError:
            anew, self._file, self._read = self._file is not None, None, 0
            return [], anew
        self._read += len(whole) + 1 if whole else 0
        return list(events_in(whole)), anew


def read_status(folder: Path) -> dict[str, Any]:
    """How a run stands; empty before it has said anything, or where what it said is damaged."""
    try:
        status = json.loads((folder / STATUS).read_bytes())
    except (FileNotFoundError, ValueError, RecursionError):
        return {}
    return status if isinstance(status, dict) else {}
