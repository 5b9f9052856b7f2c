"""Finding recorded rollouts: in a run, a file of JSON lines, or a folder of AWM's agent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import UserError
from train.awm_runs import TRAJECTORY, read_awm
from train.records import TRAJECTORIES, has_snapshot, read_records, read_snapshot
from train.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded rollout and where its databases are: in a run's folder, or at hand as bytes."""

    trajectory: Trajectory
    folder: Path | None = None
    databases: tuple[bytes, bytes] | None = None

    @property
    def is_kept(self) -> bool:
        """Whether its databases are at hand; trainings keep none."""
        if self.databases is not None:
            return all(self.databases)
        names = (self.trajectory.initial, self.trajectory.final)
        return self.folder is not None and all(has_snapshot(self.folder, sha) for sha in names)

    def read_databases(self) -> tuple[bytes, bytes]:
        """The initial and the final database. Raises UserError where they were not kept."""
        if self.databases is not None and all(self.databases):
            return self.databases
        if self.folder is None or not self.trajectory.initial:
            raise UserError(f"The databases of {self.trajectory.key} were not kept.")
        initial, final = (read_snapshot(self.folder, sha) for sha in (self.trajectory.initial, self.trajectory.final))
        return initial, final


def recorded(path: Path, runs: Path | None = None) -> Iterator[Recorded]:
    """The rollouts in a run's folder, in its file of records, or in a folder of AWM's agent.

    `runs` is where a number is looked for that is no path. Raises UserError where nothing is found.
    """
    if not path.exists() and runs is not None and path.name.isdigit() and path == Path(path.name):
        path = runs / path.name
    if not path.exists():
        raise UserError(f"There is no {path}: name a run or its folder, or a folder with {TRAJECTORY}.")
    if path.suffix == ".jsonl" or (path / TRAJECTORIES).is_file():
        folder = path if path.is_dir() else path.parent
        for trajectory in read_records(path):
            yield Recorded(trajectory, folder)
        return
    for trajectory, initial, final in read_awm(path):
        yield Recorded(trajectory, databases=(initial, final))


def one(path: Path, runs: Path | None, number: int | None) -> Recorded:
    """The rollout with that number (from 0), or the only one. Raises UserError where that is none, or not one."""
    found = list(recorded(path, runs))
    if number is None and len(found) == 1:
        return found[0]
    if number is None:
        raise UserError(f"{path} holds {len(found)} rollouts: choose one with --number N (from 0).")
    if number >= len(found):
        raise UserError(f"{path} holds rollouts 0 to {len(found) - 1}; there is no number {number}.")
    return found[number]
