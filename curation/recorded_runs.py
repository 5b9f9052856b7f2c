"""What agents did in recorded runs: their tool calls and what came back, from files that other programs wrote.

Two layouts are read: the run folders of AWM's agent (`trajectory.json`; keys as in `awm/core/agent.py` of
Snowflake-Labs/agent-world-model), and our own (`trajectories.jsonl`, one record a line). Files that are half-written
are told, and the rest is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from pipeline.errors import UserError
from pipeline.model import Call, normalise

T = TypeVar("T")

TRAJECTORY = "trajectory.json"
RECORDS = "trajectories.jsonl"
OURS = "awm_studio"
"""Where `trajectory.json` of our own rollouts has what AWM's layout does not."""
TOOL_PREFIX = "mcp_tool_"
"""What upstream puts before the names of tools."""

CameBack = Literal["ok", "empty", "refused", "server_error", "timeout"]
"""How a call ended. `empty`: accepted, with nothing in the reply; `refused`: the agent's arguments were at fault."""

_STATUS = re.compile(r"\bStatus code: (\d{3})\b")
_TIMEOUT = re.compile(r"\b(?:timed out|timeout|no answer within)\b", re.I)
_REFUSAL = re.compile(r"\b(?:validation error|unknown tool|invalid|required|not found|missing)\b", re.I)
_ERROR = re.compile(r"^\s*(?:error\b|traceback\b|internal server error)", re.I)


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of a tool: how it ended, and the text the agent was shown."""

    call: Call
    ended: CameBack
    shown: str


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One run of an agent at one task: where it is recorded, and its calls in order."""

    path: Path
    name: str
    task: int
    calls: tuple[RecordedCall, ...]


@dataclass(frozen=True, slots=True)
class HalfWritten:
    """A record that cannot be read, and why."""

    path: Path
    why: str


def read_runs(folder: Path) -> Iterator[RecordedRun | HalfWritten]:
    """The runs recorded in a folder, however deep, in the order of their paths.

    Raises UserError where there is no such folder or nothing is recorded in it.
    """
    for file in record_files(folder):
        yield from _read_folder(file) if file.name == TRAJECTORY else _read_records(file)


def record_files(folder: Path) -> list[Path]:
    """The files with runs in a folder and below, by path. Raises UserError where there is no folder or no such file."""
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder of trajectories.")
    files = sorted((*folder.rglob(TRAJECTORY), *folder.rglob(RECORDS)))
    if not files:
        raise UserError(f"{folder} holds no {TRAJECTORY} or {RECORDS}, here or in folders below.")
    return files


def records_of(file: Path, read: Callable[[dict[str, Any]], T]) -> Iterator[T | HalfWritten]:
    """What `read` makes of each record in a `trajectories.jsonl`; lines that are none, or not whole, are told."""
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield read(json.loads(line))
                except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                    why = f"line {number} is no record of a rollout ({type(error).__name__}: {error})"
                    yield HalfWritten(file, why)
    except OSError as error:
        yield HalfWritten(file, f"{file.name} cannot be read ({error.strerror})")


def read_document(file: Path) -> Mapping[str, Any]:
    """A JSON object from a file. Raises ValueError where there is none, OSError where it cannot be read."""
    try:
        document = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file.name} cannot be read ({error})") from error
    if not isinstance(document, dict):
        raise ValueError(f"{file.name} is not an object")
    return document


def task_of(document: Mapping[str, Any]) -> tuple[str, int]:
    """The environment and the task of a `trajectory.json`. Raises ValueError where it does not say them."""
    name, task = document.get("scenario"), document.get("task_id")
    if not isinstance(name, str) or not isinstance(task, int):
        raise ValueError("it does not say which scenario, by name, and which task, by number")
    return normalise(name), task


def calls_of(steps: Any) -> Iterator[tuple[Call, str | None]]:
    """The tool calls in the steps of a `trajectory.json`, out of upstream's `call_tool`, with what was shown for them.

    What is malformed is left out: it was no call of a tool.
    """
    for step in steps if isinstance(steps, list) else ():
        if not isinstance(step, Mapping):
            continue
        response = step.get("tool_response")
        shown = response.get("content") if isinstance(response, Mapping) else None
        calls = step.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            arguments = _decoded(call.get("arguments")) if isinstance(call, Mapping) else None
            if not isinstance(arguments, Mapping) or not isinstance(arguments.get("tool_name"), str):
                continue
            inner = _decoded(arguments.get("arguments"))
            if isinstance(inner, Mapping):
                made = Call(arguments["tool_name"].removeprefix(TOOL_PREFIX), dict(inner))
                yield made, shown if isinstance(shown, str) else None


def came_back(shown: str) -> CameBack:
    """How a call ended, from the text that the agent was shown: upstream's errors say their status."""
    if status := _STATUS.search(shown):
        return "server_error" if status[1].startswith("5") else "refused"
    if _ERROR.match(shown):
        return "timeout" if _TIMEOUT.search(shown) else "refused" if _REFUSAL.search(shown) else "server_error"
    if shown.startswith(("Input validation error", "Unknown tool")):
        return "refused"
    return "empty" if _is_empty(shown) else "ok"


def _read_folder(file: Path) -> Iterator[RecordedRun | HalfWritten]:
    try:
        document = read_document(file)
        name, task = task_of(document)
    except (OSError, ValueError) as error:
        yield HalfWritten(file, str(error))
        return
    ours = document.get(OURS)
    if isinstance(ours, Mapping):
        yield RecordedRun(file, name, task, tuple(_of_turns(ours.get("turns"))))
        return
    made = calls_of(document.get("trajectory"))
    calls = tuple(RecordedCall(call, came_back(shown), shown) for call, shown in made if shown is not None)
    yield RecordedRun(file, name, task, calls)


def _read_records(file: Path) -> Iterator[RecordedRun | HalfWritten]:
    return records_of(file, lambda record: _read_record(file, record))


def _read_record(file: Path, record: Mapping[str, Any]) -> RecordedRun:
    name, task = record["environment"], record["task"]
    if not isinstance(name, str) or not isinstance(task, int):
        raise TypeError(f"environment {name!r}, task {task!r}")
    return RecordedRun(file, normalise(name), task, tuple(_of_turns(record["turns"])))


def _of_turns(turns: Any) -> Iterator[RecordedCall]:
    """The calls in the turns of one of our own records, which say the status and the kind of error."""
    for turn in turns if isinstance(turns, list) else ():
        if isinstance(turn, Mapping) and turn.get("move") == "call":
            shown = str(turn.get("shown") or "")
            call = Call(str(turn.get("tool", "")), turn.get("arguments") or {})
            yield RecordedCall(call, _ended(turn.get("status"), turn.get("fault"), shown), shown)


def _ended(status: Any, fault: Any, shown: str) -> CameBack:
    if fault == "timeout":
        return "timeout"
    if fault in ("server_error", "crash") or (isinstance(status, int) and status >= 500):
        return "server_error"
    if fault is not None or (isinstance(status, int) and status >= 400):
        return "refused"
    return "empty" if _is_empty(shown) else "ok"


def _is_empty(shown: str) -> bool:
    """Whether a reply says nothing: no text, or JSON without a value besides nulls, zeros of totals and empty lists."""
    if not shown.strip():
        return True
    try:
        value = json.loads(shown)
    except (ValueError, RecursionError):
        return False
    return not any(_leaves(value))


def _leaves(value: Any) -> Iterator[bool]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
            if not isinstance(inner, Mapping | list):
                yield True
    else:
        yield isinstance(value, bool) or bool(value)


def _decoded(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value


def by_task(runs: Iterable[RecordedRun]) -> dict[tuple[str, int], list[RecordedRun]]:
    """The runs by environment and task."""
    found: dict[tuple[str, int], list[RecordedRun]] = {}
    for run in runs:
        found.setdefault((run.name, run.task), []).append(run)
    return found
