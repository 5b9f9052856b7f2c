"""Finding one rollout among the many that a training has written: by its step, without reading the others again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.errors import UserError
from train.json_lines import read_json_line
from train.records import TRAJECTORIES, read_record
from train.trajectory import Trajectory, rollout_key, validated


@dataclass(frozen=True, slots=True)
class Listed:
    """A record as it is listed, and where in the file it is."""

    step: int | None
    key: str
    environment: str
    text: str
    end: str
    detail: str
    outcome: str | None
    reward: float | None
    excluded: bool
    turns: int
    tokens: int
    seconds: float
    begins: int
    length: int


class RecordIndex:
    """Which rollouts a run has, by step."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / TRAJECTORIES
        self._file: int | None = None
        self._read = 0
        self._by_step: dict[int | None, list[Listed]] = {}

    @property
    def steps(self) -> list[int]:
        """The steps that have rollouts, in order."""
        return sorted(step for step in self._by_step if step is not None)

    def of_step(self, step: int | None) -> list[Listed]:
        """A step's rollouts, in the order they were written."""
        return self._by_step.get(step, [])

    def catch_up(self) -> bool:
        """Take in what was written since the last time; whether anything was."""
        try:
            with self._path.open("rb") as file:
                facts = os.fstat(file.fileno())
                if facts.st_ino != self._file or facts.st_size < self._read:
                    self._file, self._read, self._by_step = facts.st_ino, 0, {}
                before = self._read
                file.seek(before)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._add(line)
                    self._read += len(line)
        except FileNotFoundError:
            return False
        return self._read > before

    def read(self, listed: Listed) -> Trajectory:
        """The whole record. Raises UserError where it is not there any more."""
        try:
            with self._path.open("rb") as file:
                file.seek(listed.begins)
                line = file.read(listed.length)
        except OSError as error:
            raise UserError(f"{self._path} cannot be read: {error.strerror}.") from error
        return read_record(line, f"{self._path}, at {listed.begins}")

    def _add(self, line: bytes) -> None:
        """List a record; a line that is none, as a full disk leaves, is left out."""
        try:
            listed = self._listed(read_json_line(line), len(line))
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            return
        self._by_step.setdefault(listed.step, []).append(listed)

    def _listed(self, record: Mapping[str, Any], length: int) -> Listed:
        reward = record["reward"] or {}
        facts = {
            "step": record.get("step"),
            "key": rollout_key(record["environment"], record["task"], record["attempt"]),
            "environment": record["environment"],
            "text": record["text"],
            "end": record["end"],
            "detail": record["detail"],
            "outcome": reward.get("outcome"),
            "reward": reward.get("total"),
            "excluded": reward.get("excluded", False),
            "turns": len(record["turns"]),
            "tokens": sum(turn.get("tokens_out", 0) for turn in record["turns"]),
            "seconds": record["seconds"],
            "begins": self._read,
            "length": length,
        }
        return validated(Listed, facts)
