"""Where the records of a run are kept: one JSON line a rollout as it ends, databases beside them by their sha256.

A line that was being written when its process was killed is dropped when the run goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

from pipeline.errors import UserError
from pipeline.snapshots import replace_file
from train.json_lines import drop_cut_line, json_line, read_json_line
from train.replay import digest
from train.trajectory import Trajectory

TRAJECTORIES = "trajectories.jsonl"
SNAPSHOTS = "snapshots"


class Records:
    """The records of one run, for writing. A context manager; threads may share it."""

    def __init__(self, folder: Path) -> None:
        """Open a run's folder to add records. Raises UserError where it cannot be written to."""
        self._path = folder / TRAJECTORIES
        self._snapshots = folder / SNAPSHOTS
        self._lock = threading.Lock()
        self._known: set[str] = set()
        try:
            self._snapshots.mkdir(parents=True, exist_ok=True)
            drop_cut_line(self._path)
            self._file = self._path.open("ab")
        except OSError as error:
            raise UserError(f"{folder} cannot be written to: {error.strerror}.") from error

    def add(self, trajectory: Trajectory) -> None:
        """Append a record. Raises UserError where the disk is full."""
        line = json_line(trajectory.to_json())
        with self._lock:
            try:
                self._file.write(line)
                self._file.flush()
            except OSError as error:
                raise _disk(self._path, error) from error

    def keep(self, snapshot: bytes) -> str:
        """Keep a database; returns its sha256. Raises UserError where the disk is full."""
        sha = digest(snapshot)
        if sha not in self._known:
            path = self._snapshots / f"{sha}.db"
            try:
                if not path.exists():
                    replace_file(path, snapshot)
            except OSError as error:
                raise _disk(path, error) from error
            self._known.add(sha)
        return sha

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Records:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_records(path: Path) -> Iterator[Trajectory]:
    """The records in a run's folder or in a file of JSON lines; a last line that was cut is left out.

    Raises UserError where there are none, or a line is something else.
    """
    path = path / TRAJECTORIES if path.is_dir() else path
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return
                yield read_record(line, f"{path}, line {number}")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error


def read_record(text: bytes, where: str) -> Trajectory:
    """One record. Raises UserError, which begins with `where`, for anything else."""
    try:
        return Trajectory.from_json(read_json_line(text))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise UserError(f"{where}: this is not a record of a rollout ({type(error).__name__}: {error}).") from error


def has_snapshot(folder: Path, sha: str) -> bool:
    """Whether a run has kept a database."""
    return bool(sha) and (folder / SNAPSHOTS / f"{sha}.db").is_file()


def read_snapshot(folder: Path, sha: str) -> bytes:
    """A database of a run, by its sha256. Raises UserError where it was not kept."""
    path = folder / SNAPSHOTS / f"{sha}.db"
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"The database {sha[:12]}… is not in {path.parent}: {error.strerror}.") from error


def _disk(path: Path, error: OSError) -> UserError:
    return UserError(
        f"{path} cannot be written ({error.strerror}): free some space, then go on; what is there is kept."
    )
