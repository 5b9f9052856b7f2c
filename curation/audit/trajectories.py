"""Known solutions from trajectories: run folders of AWM whose outcome was judged complete.

A run folder holds `trajectory.json` (scenario, task_id, messages), `initial.db`, `final.db`, and what judged it:
`verify.code.json` (`reward_type`) or `verify.sql.json` (`llm_judge.classification`); our own rollouts keep their reward
in `trajectory.json`. A trajectory that only the very verifier under audit has judged shows what that verifier accepts,
not that it is right; `Known.source` says who judged.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from curation.audit.states import Known
from curation.audit.subject import differences
from curation.recorded_runs import OURS, TRAJECTORY, calls_of, read_document, task_of
from pipeline.errors import UserError
from pipeline.model import Call
from pipeline.sqlite_files import read_database

JUDGEMENTS = {"code": "verify.code.json", "sql": "verify.sql.json"}


@dataclass(frozen=True)
class RunFolder:
    """One run that was judged complete, by whom, and the calls and words of its agent."""

    path: Path
    name: str
    task: int
    judge: str
    answer: str
    calls: tuple[Call, ...]

    def known(self, now: datetime) -> Known:
        """The solution with its databases, of which damaged ones raise UserError; `now` is the time verifiers see."""
        initial, final = (read_database(self.path / f"{which}.db") for which in ("initial", "final"))
        source = f"trajectory {self.path.name}, judged complete by {self.judge}"
        asks = not differences(initial, final)
        return Known(self.task, source, initial, final, self.answer, asks, now, self.calls)

    def digest(self) -> str:
        """A hash of everything it holds."""
        digest = hashlib.sha256()
        for file in sorted(self.path.iterdir()):
            if file.suffix in (".json", ".db") and file.is_file():
                digest.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
        return digest.hexdigest()


@dataclass
class Trajectories:
    """What a folder of runs holds: the complete ones by environment, and how many were left out and why."""

    complete: dict[str, list[RunFolder]] = field(default_factory=dict)
    not_complete: int = 0
    problems: list[str] = field(default_factory=list)

    def of(self, name: str) -> list[RunFolder]:
        """The complete runs of an environment."""
        return self.complete.get(name, [])


def find_trajectories(folder: Path) -> Trajectories:
    """The run folders in a folder, however deep. Half-written ones are problems, not errors.

    Raises UserError where there is no such folder or no run in it.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder of trajectories.")
    found = Trajectories()
    files = sorted(folder.rglob(TRAJECTORY))
    if not files:
        raise UserError(f"{folder} holds no {TRAJECTORY}, here or in folders below.")
    for file in files:
        try:
            run = read_run(file.parent)
        except (OSError, ValueError) as error:
            found.problems.append(f"{file.parent}: {error}")
            continue
        if run is None:
            found.not_complete += 1
        else:
            found.complete.setdefault(run.name, []).append(run)
    return found


def read_run(folder: Path) -> RunFolder | None:
    """One run folder; None where nothing says that it is complete. Raises ValueError where it is half-written."""
    document = read_document(folder / TRAJECTORY)
    name, task = task_of(document)
    judge = next(
        (f"its {mode}-mode verifier" for mode, file in JUDGEMENTS.items() if _is_complete(folder / file)), None
    )
    judge = judge or _own_judge(document.get(OURS))
    if judge is None:
        return None
    for database in ("initial.db", "final.db"):
        if not (folder / database).is_file():
            raise ValueError(f"there is no {database}")
    calls = tuple(call for call, _ in calls_of(document.get("trajectory")))
    return RunFolder(folder, name, task, judge, _answer(document), calls)


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
