"""The AWM release layout: which file holds which part, and how a row becomes a part and back.

Reading and writing are each other's inverse. What a row says beside its content goes into the part's `extra`, except
what writing gives back anyway: the scenario's title, the database path, the text of a verifier's task. Two things are
ours, and other readers of the layout pass over them: the key `awm_studio` in a row of `gen_scenario.jsonl` (what is
known of the environment as a whole, where it is not the default), and the file `gen_solution.jsonl`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from pipeline.changes import NAME_LIMIT
from pipeline.model import DEFAULT_NOW, AuthorKind, Mode, Part, normalise
from pipeline.parts import (
    dumps,
    kind_of,
    read_sample,
    read_schema,
    read_solution,
    read_spec,
    read_tasks,
    verifier_slot,
)

OURS = "awm_studio"
"""The key of a scenario row that holds what the layout has no place for."""

TASK_LIMIT = 10_000
"""Task numbers are below this; the release has ten tasks a scenario."""


@dataclass(frozen=True, slots=True)
class LayoutFile:
    """One file: the part it holds, the key of its rows that has the content, and, of verifiers, the usual mode."""

    name: str
    part: Part
    key: str
    mode: Mode | None = None


FILES = (
    LayoutFile("gen_scenario.jsonl", Part.scenario, ""),
    LayoutFile("gen_tasks.jsonl", Part.tasks, "tasks"),
    LayoutFile("gen_db.jsonl", Part.schema, "db_schema"),
    LayoutFile("gen_sample.jsonl", Part.sample, "sample_data"),
    LayoutFile("gen_spec.jsonl", Part.spec, "api_spec"),
    LayoutFile("gen_envs.jsonl", Part.code, "full_code"),
    LayoutFile("gen_verifier.pure_code.jsonl", Part.verifier, "verification", Mode.code),
    LayoutFile("gen_verifier.jsonl", Part.verifier, "verification", Mode.sql),
    LayoutFile("gen_solution.jsonl", Part.solution, "solution"),
)
"""In the order they are read: what names a scenario and its tasks comes before what refers to them."""


class RowFault(ValueError):
    """A row that cannot be used; the message says which field is wrong, and how."""


@dataclass(frozen=True, slots=True)
class About:
    """What the files read so far say of a scenario as a whole."""

    title: str
    origin: str | None = None
    domain: str | None = None
    now: datetime | None = None
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One row, read: the scenario's name, also as `written` there, and the part it holds.

    `content` is None in the scenario row of an environment that has no scenario part. `problems` are things in the
    content that readers will pass over.
    """

    name: str
    written: str
    part: Part
    slot: str
    content: str | None
    extra: Mapping[str, Any]
    about: About
    problems: list[str] = field(default_factory=list)


def read_row(file: LayoutFile, value: object, known: Mapping[str, About]) -> Row:
    """Read one row; `known` is what was read of the folder's scenarios so far, by name.

    Raises RowFault where the row cannot be used.
    """
    if not isinstance(value, dict):
        raise RowFault(f"is {kind_of(value)}, not an object")
    usual, other = ("name", "scenario") if file.part is Part.scenario else ("scenario", "name")
    name_key, written = _written_name(value, usual, other)
    name = scenario_name(written)
    if file.part is Part.scenario:
        return _read_scenario(name, written, value)
    about = known.get(name) or About(written_title(written))
    rest = {key: item for key, item in value.items() if key != name_key}
    problems: list[str] = []
    match file.part:
        case Part.code:
            slot, content = "", _take(rest, file.key, str)
        case Part.verifier:
            slot, content = _read_verifier(file, rest, about.tasks)
        case Part.solution:
            task, solution = _take(rest, "task_idx", int), _take(rest, file.key, dict)
            read_solution(task, solution, problems)
            slot, content = str(task), dumps(solution)
        case Part.tasks:
            tasks = _take(rest, file.key, list)
            about = replace(about, tasks=read_tasks(tasks, problems))
            slot, content = "", dumps(tasks)
        case _:
            structure = _take(rest, file.key, dict)
            {Part.schema: read_schema, Part.sample: read_sample, Part.spec: read_spec}[file.part](structure, problems)
            slot, content = "", dumps(structure)
    if "db_path" in rest and _is_derived_path(name, rest["db_path"]):
        del rest["db_path"]
    if written != usual_name(name, about.title):
        rest["scenario"] = written
    return Row(name, written, file.part, slot, content, rest, about, [f"{file.key}: {text}" for text in problems])


def write_row(
    name: str, part: Part, slot: str, content: Any, extra: Mapping[str, Any], *, title: str, tasks: Sequence[str]
) -> dict[str, Any]:
    """The row of a part other than the scenario: the keys upstream reads, then what the source had beside them.

    `content` is the text of source parts, and the JSON value of the others.
    """
    written = extra.get("scenario")
    if not isinstance(written, str) or normalise(written) != name:
        written = usual_name(name, title)
    row: dict[str, Any] = {"scenario": written}
    task, _, _ = slot.partition("/")
    if task:
        row["task_idx"] = int(task)
    if part is Part.verifier:
        if "task" in extra or int(task) < len(tasks):
            row["task"] = extra.get("task") if "task" in extra else tasks[int(task)]
        beside = extra.get("verification")
        content = {"code": content, **(beside if isinstance(beside, dict) else {})}
    if part in (Part.schema, Part.code):
        row["db_path"] = extra.get("db_path", _database_path(name))
    row[file_of(part, slot).key] = content
    return row | {key: item for key, item in extra.items() if key not in row}


def write_scenario_row(
    name: str, content: Mapping[str, Any] | None, extra: Mapping[str, Any], about: About
) -> dict[str, Any]:
    """The row of `gen_scenario.jsonl`, which every environment gets, also one without a scenario part (None)."""
    row = dict(content) if content is not None else {"name": usual_name(name, about.title)}
    ours = {
        "part": None if content is not None else False,
        "title": about.title if about.title != written_title(row["name"]) else None,
        "origin": about.origin if about.origin != AuthorKind.imported.value else None,
        "domain": about.domain,
        "now": about.now.isoformat() if about.now and about.now != DEFAULT_NOW else None,
        "extra": dict(extra) or None,
    }
    ours = {key: item for key, item in ours.items() if item is not None}
    return row | ({OURS: ours} if ours else {})


def file_of(part: Part, slot: str) -> LayoutFile:
    """The file that a part is written to."""
    mode = Mode(slot.partition("/")[2]) if part is Part.verifier else None
    return next(file for file in FILES if file.part is part and file.mode == mode)


def scenario_name(written: str) -> str:
    """The normalised name of a scenario from how a row writes it. Raises RowFault where that leaves nothing usable."""
    name = normalise(written)
    if not name:
        raise RowFault(f"the scenario name {written[:80]!r} has no letter a-z or digit to join its parts by")
    if len(name) > NAME_LIMIT:
        raise RowFault(f"the scenario name is {len(name):,} characters long; at most {NAME_LIMIT} are taken")
    return name


def written_title(written: str) -> str:
    """The title a written name gives: on one line, without control characters, which could steer a terminal."""
    return " ".join("".join(c if c.isprintable() else " " for c in written).split())


def usual_name(name: str, title: str) -> str:
    """How rows write a scenario's name: its title, where the parts would still be joined by that."""
    return title if normalise(title) == name else name


def verifier_mode(code: str) -> Mode | None:
    """How a verifier judges, told from the function it defines; None where it defines neither.

    The file does not tell: code-mode verifiers are found in `gen_verifier.jsonl` too. Parsing the release's 20,000
    verifiers would take as long as the rest of its import (20 s), so the syntax tree is asked only where both names
    seem to be defined.
    """
    found = set(_DEFINITION.findall(code))
    if len(found) > 1:
        try:
            nodes = ast.walk(ast.parse(code))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass  # what the lines said has to do
        else:
            found &= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    return next((mode for name, mode in _MODES.items() if name in found), None)


_MODES = {"verify_task_completion": Mode.code, "verify_task": Mode.sql}
_DEFINITION = re.compile(r"^[ \t]*(?:async +)?def +(verify_task(?:_completion)?) *\(", re.MULTILINE)


def _read_scenario(name: str, written: str, value: Mapping[str, Any]) -> Row:
    content = {key: item for key, item in value.items() if key != OURS}
    content.setdefault("name", written)
    problems: list[str] = []
    ours = _read_ours(value.get(OURS, {}), problems)
    about = About(ours.get("title", written_title(written)), ours.get("origin"), ours.get("domain"), ours.get("now"))
    text = None if ours.get("part") is False else dumps(content)
    return Row(name, written, Part.scenario, "", text, ours.get("extra", {}), about, problems)


def _read_ours(value: object, problems: list[str]) -> dict[str, Any]:
    """What `write_scenario_row` has added to a row; what does not look like it is left out and told."""
    if not isinstance(value, dict):
        problems.append(f"{OURS} is {kind_of(value)}, not an object")
        return {}
    ours: dict[str, Any] = {}
    for key, item in value.items():
        try:
            ours[key] = _OURS[key](item)
        except (KeyError, TypeError, ValueError):
            problems.append(f"{OURS}.{key} is nothing that an export writes")
    return ours


def _text(item: object) -> str:
    if not isinstance(item, str):
        raise TypeError
    return written_title(item)


_OURS: Mapping[str, Callable[[Any], Any]] = {
    "part": bool,
    "title": _text,
    "origin": lambda item: AuthorKind(item).value,
    "domain": _text,
    "now": datetime.fromisoformat,
    "extra": dict,
}


def _read_verifier(file: LayoutFile, rest: dict[str, Any], tasks: Sequence[str]) -> tuple[str, str]:
    task, verification = _take(rest, "task_idx", int), dict(_take(rest, file.key, dict))
    code = _take(verification, "code", str, within=f"{file.key}.")
    if verification:
        rest[file.key] = verification
    if task < len(tasks) and rest.get("task") == tasks[task]:
        del rest["task"]
    return verifier_slot(task, verifier_mode(code) or file.mode or Mode.code), code


def _written_name(row: Mapping[str, Any], key: str, other: str) -> tuple[str, str]:
    """The key that a row has its scenario's name under, and the name as written there."""
    if key not in row and other in row:
        key = other
    if key not in row:
        raise RowFault(f"has no {key}")
    if not isinstance(row[key], str):
        raise RowFault(f"{key} is {kind_of(row[key])}, not text")
    return key, row[key]


def _take(rest: dict[str, Any], key: str, kind: type, *, within: str = "") -> Any:
    """Remove and return a field. Raises RowFault where it is missing or not of its kind."""
    if key not in rest:
        raise RowFault(f"has no {within}{key}")
    value = rest.pop(key)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise RowFault(f"{within}{key} is {kind_of(value)}, not {kind_of(kind())}")
    if kind is int and not 0 <= value < TASK_LIMIT:
        raise RowFault(f"{within}{key} is {value}; tasks are numbered from 0, below {TASK_LIMIT:,}")
    return value


def _database_path(name: str) -> str:
    return f"./outputs/databases/{name}.db"


def _is_derived_path(name: str, value: object) -> bool:
    """Whether a database path says nothing but where upstream's tools put it, or a place on somebody's machine."""
    if not isinstance(value, str):
        return False
    absolute = PurePosixPath(value).is_absolute() or PureWindowsPath(value).is_absolute() or value.startswith("~")
    return absolute or value == _database_path(name)
