"""Rollouts in the layout of AWM's own agent: a folder a rollout, with `trajectory.json`, `initial.db` and `final.db`.

The keys are those of `awm/core/agent.py` in Snowflake-Labs/agent-world-model. Ours are kept beside them under
`awm_studio`, so that what was exported comes back whole; a run of upstream's agent has none, and what it does not say
(why it ended, token ids, times) is empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from curation.recorded_runs import task_of
from pipeline.errors import UserError
from pipeline.llm.request import Message
from pipeline.runtime.diff import diff
from pipeline.sqlite_files import read_database
from train.protocol import CALL, LIST, Form, Said, plain_name, read_move
from train.records import Records, read_snapshot
from train.replay import digest
from train.rules import Rules
from train.trajectory import End, Trajectory, Turn

TRAJECTORY, INITIAL, FINAL = "trajectory.json", "initial.db", "final.db"
OURS = "awm_studio"


def export_awm(trajectories: Iterable[Trajectory], run: Path, folder: Path) -> int:
    """Write rollouts whose databases are in a run's folder; returns how many.

    Each goes to `SCENARIO/task_N`, the second and later tries at a task to `SCENARIO/task_N/try_K`. Raises UserError
    where the folder cannot be written, or is not empty.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UserError(f"{folder} is not empty: name a new folder.")
        count = 0
        for trajectory in trajectories:
            place = folder / trajectory.environment / f"task_{trajectory.task}"
            place = place / f"try_{trajectory.attempt}" if trajectory.attempt else place
            place.mkdir(parents=True, exist_ok=True)
            document = awm_document(trajectory)
            (place / TRAJECTORY).write_text(json.dumps(document, ensure_ascii=False, indent=4, default=str), "utf-8")
            for name, sha in ((INITIAL, trajectory.initial), (FINAL, trajectory.final)):
                if sha:
                    (place / name).write_bytes(read_snapshot(run, sha))
            count += 1
    except OSError as error:
        raise UserError(f"{error.filename or folder} cannot be written: {error.strerror}.") from error
    return count


def awm_document(trajectory: Trajectory) -> dict[str, Any]:
    """A rollout as the object that upstream writes to `trajectory.json`."""
    return {
        "scenario": trajectory.environment,
        "task_id": trajectory.task,
        "task": trajectory.text,
        "model": trajectory.policy,
        "max_iterations": trajectory.rules.max_turns,
        "total_iterations": len(trajectory.turns),
        "timestamp": trajectory.started,
        "trajectory": [_awm_step(turn, number) for number, turn in enumerate(trajectory.turns)],
        "messages": [message.document() for message in trajectory.messages()],
        OURS: trajectory.to_json(),
    }


def _awm_step(turn: Turn, number: int) -> dict[str, Any]:
    step: dict[str, Any] = {"iteration": number + 1, "role": "assistant", "content": turn.content}
    if turn.shown is None:
        return {**step, "tool_calls": [], "is_final": True}
    name = {"list": LIST, "call": CALL}.get(turn.move, turn.tool)
    arguments = {"tool_name": turn.tool, "arguments": dict(turn.arguments)} if turn.move == "call" else None
    call = {"id": f"call_{number}", "name": name, "arguments": arguments}
    return {**step, "tool_calls": [call], "tool_response": {"tool_call_id": call["id"], "content": turn.shown}}


def read_awm(folder: Path) -> Iterator[tuple[Trajectory, bytes, bytes]]:
    """The rollouts in a folder and below, in the order of their paths, each with its databases (empty where missing).

    Raises UserError where there are none, or a file is something else.
    """
    found = [folder] if folder.name == TRAJECTORY else sorted(folder.rglob(TRAJECTORY))
    if not found:
        raise UserError(f"There is no {TRAJECTORY} in {folder} or below.")
    tries: dict[tuple[str, int], int] = {}
    for path in found:
        document = _read(path)
        initial, final = _database(path.with_name(INITIAL)), _database(path.with_name(FINAL))
        if isinstance(document.get(OURS), dict):
            trajectory = _known(document[OURS], path)
        else:
            task = task_of(document)
            tries[task] = tries.get(task, -1) + 1
            try:
                trajectory = _foreign(document, task, tries[task], initial, final)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise _no_trajectory(path, error) from error
        yield trajectory, initial, final


def import_awm(folder: Path, records: Records) -> int:
    """Take the rollouts of a folder into a run; returns how many. Raises UserError as `read_awm` does."""
    count = 0
    for trajectory, *databases in read_awm(folder):
        for snapshot in filter(None, databases):
            records.keep(snapshot)
        records.add(trajectory)
        count += 1
    return count


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text("utf-8"))
        if document["scenario"] is None or document["task_id"] is None:
            raise UserError(f"{path} does not say which scenario and task it is about.")
        task_of(document)
        if not isinstance(document["messages"], list) or not isinstance(document["trajectory"], list):
            raise TypeError("messages or trajectory is not a list")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _no_trajectory(path, error) from error
    return document


def _no_trajectory(path: Path, error: Exception) -> UserError:
    return UserError(f"{path} is not a trajectory of AWM's agent ({type(error).__name__}: {error}).")


def _known(record: Mapping[str, Any], path: Path) -> Trajectory:
    try:
        return Trajectory.from_json(record)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path}: what is under {OURS!r} is not a record of a rollout ({error}).") from error


def _database(path: Path) -> bytes:
    return read_database(path) if path.is_file() else b""


def _foreign(
    document: Mapping[str, Any], task: tuple[str, int], attempt: int, initial: bytes, final: bytes
) -> Trajectory:
    """A rollout of upstream's agent."""
    messages = document["messages"]
    head = tuple(Message(m["role"], str(m["content"])) for m in messages[:2])
    system = head[0].content if head and head[0].role == "system" else None
    limit = document.get("max_iterations") or 30  # upstream's default
    lenient = {"window": None, "time_limit_s": None, "stop_on_slip": False, "stop_on_fault": False}
    rules = Rules.model_validate({**lenient, "max_turns": limit, "system": system})
    turns = tuple(_foreign_turn(step) for step in document["trajectory"])
    answered = bool(turns) and turns[-1].shown is None
    return Trajectory(
        environment=task[0],
        task=task[1],
        attempt=attempt,
        text=str(document.get("task") or ""),
        policy=str(document.get("model") or ""),
        rules=rules,
        contents={},
        now="",
        head=head,
        turns=turns,
        end=End.answered if answered else End.turn_limit,
        answer=read_move(turns[-1].said, Form.text).answer if answered else None,
        initial=digest(initial) if initial else "",
        final=digest(final) if final else "",
        diff=diff(initial, final) if initial and final else {},
        started=str(document.get("timestamp") or ""),
    )


def _foreign_turn(step: Mapping[str, Any]) -> Turn:
    said = Said(str(step.get("content") or ""))
    response = step.get("tool_response")
    if not response:
        return Turn(content=said.content)
    move = read_move(said, Form.text)
    shown = str(response.get("content") or "")
    return Turn(
        content=said.content,
        move=move.kind,
        tool=plain_name(move.tool),
        arguments=dict(move.arguments),
        dropped=move.dropped,
        slip=move.slip,
        status=None if move.kind != "call" else 0 if shown.startswith("Error:") else 200,
        shown=shown,
    )
