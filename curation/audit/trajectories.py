"""Known solutions from trajectories: recorded runs whose outcome was judged complete.

A run folder holds `trajectory.json` (scenario, task_id, messages), `initial.db`, `final.db`, and what judged it:
`verify.code.json` (`reward_type`) or `verify.sql.json` (`llm_judge.classification`); our own rollouts keep their reward
in `trajectory.json`, or in `trajectories.jsonl` with the databases in `snapshots/` by their digests. A trajectory that
only the very verifier under audit has judged shows what that verifier accepts, not that it is right; `Known.source`
says who judged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from curation.audit.states import Known
from curation.audit.subject import differences
from curation.recorded_runs import (
    OURS,
    TRAJECTORY,
    HalfWritten,
    calls_of,
    read_document,
    record_files,
    records_of,
    task_of,
)
from pipeline.model import Call
from pipeline.sqlite_files import read_database

JUDGEMENTS = {"code": "verify.code.json", "sql": "verify.sql.json"}


@dataclass(frozen=True)
class CompleteRun:
    """One run that was judged complete, by whom, and the calls and words of its agent.

    `label` tells it from others; `files` are all that it is made of, its two databases among them, and `record` what
    it is besides.
    """

    path: Path
    label: str
    name: str
    task: int
    judge: str
    answer: str
    calls: tuple[Call, ...]
    initial: Path
    final: Path
    files: tuple[Path, ...]
    record: str = ""

    def known(self, now: datetime) -> Known:
        """The solution with its databases, of which damaged ones raise UserError; `now` is the time verifiers see."""
        initial, final = read_database(self.initial), read_database(self.final)
        source = f"trajectory {self.label}, judged complete by {self.judge}"
        asks = not differences(initial, final)
        return Known(self.task, source, initial, final, self.answer, asks, now, self.calls)

    def digest(self) -> str:
        """A hash of everything it holds."""
        digest = hashlib.sha256(self.record.encode())
        for file in self.files:
            digest.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
        return digest.hexdigest()


@dataclass
class Trajectories:
    """What a folder of runs holds: the complete ones by environment, and how many were left out and why."""

    complete: dict[str, list[CompleteRun]] = field(default_factory=dict)
    not_complete: int = 0
    problems: list[str] = field(default_factory=list)

    def of(self, name: str) -> list[CompleteRun]:
        """The complete runs of an environment."""
        return self.complete.get(name, [])


def find_trajectories(folder: Path) -> Trajectories:
    """The runs in a folder, however deep. Half-written ones are problems, not errors.

    Raises UserError where there is no such folder or no run in it.
    """
    found = Trajectories()
    for file in record_files(folder):
        if file.name == TRAJECTORY:
            runs = _read_folder(file.parent)
        else:
            runs = records_of(file, lambda record, file=file: _read_record(file, record))
        for run in runs:
            if isinstance(run, HalfWritten):
                found.problems.append(f"{run.path}: {run.why}")
            elif run is None:
                found.not_complete += 1
            else:
                found.complete.setdefault(run.name, []).append(run)
    return found


def _read_folder(folder: Path) -> Iterator[CompleteRun | HalfWritten | None]:
    """One run folder of AWM's layout; None where nothing says that it is complete."""
    try:
        document = read_document(folder / TRAJECTORY)
        name, task = task_of(document)
        judges = (f"its {mode}-mode verifier" for mode, file in JUDGEMENTS.items() if _is_complete(folder / file))
        judge = next(judges, None) or _own_judge(document.get(OURS))
        initial, final = folder / "initial.db", folder / "final.db"
        if judge is not None:
            _require(initial, final)
    except (OSError, ValueError) as error:
        yield HalfWritten(folder, str(error))
        return
    if judge is None:
        yield None
        return
    calls = tuple(call for call, _ in calls_of(document.get("trajectory")))
    files = tuple(file for file in sorted(folder.iterdir()) if file.suffix in (".json", ".db") and file.is_file())
    yield CompleteRun(folder, folder.name, name, task, judge, _answer(document), calls, initial, final, files)


def _read_record(file: Path, record: Mapping[str, Any]) -> CompleteRun | None:
    """One of our own records; None where it was not judged complete. Raises ValueError where a database is gone."""
    judge = _own_judge(record)
    if judge is None:
        return None
    initial, final = (file.parent / "snapshots" / Path(f"{record[which]}.db").name for which in ("initial", "final"))
    _require(initial, final)
    name, task, attempt = str(record["environment"]), int(record["task"]), record.get("attempt", 0)
    calls = tuple(
        Call(str(turn["tool"]), turn.get("arguments") or {}) for turn in record["turns"] if turn.get("move") == "call"
    )
    label = f"{name}/{task}/{attempt} of {file.parent.name}"
    answer = record.get("answer") or ""
    return CompleteRun(
        file, label, name, task, judge, answer, calls, initial, final, (initial, final), json.dumps(record)
    )


def _require(*databases: Path) -> None:
    for database in databases:
        if not database.is_file():
            raise ValueError(f"there is no {database.name}")


def _is_complete(file: Path) -> bool:
    if not file.is_file():
        return False
    document = read_document(file)
    judged = document.get("llm_judge")
    said = judged.get("classification") if isinstance(judged, Mapping) else document.get("reward_type")
    return said == "complete"


def _own_judge(ours: Any) -> str | None:
    """Who gave one of our own rollouts a reward for a completed task."""
    reward = ours.get("reward") if isinstance(ours, Mapping) else None
    if not isinstance(reward, Mapping) or reward.get("outcome") != "complete":
        return None
    verifier = reward.get("verifier")
    mode = verifier.get("mode") if isinstance(verifier, Mapping) else None
    return f"its {mode}-mode verifier" if mode else "a judge"


def _answer(document: Mapping[str, Any]) -> str:
    """What the agent said last, as upstream takes it."""
    messages = document.get("messages")
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, Mapping) and message.get("role") == "assistant":
            content = message.get("content")
            return content if isinstance(content, str) else ""
    return ""
