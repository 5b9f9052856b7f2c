"""The nouns: what an environment is made of, as immutable values.

An environment is kept as *parts*, one per file of the AWM release layout. A part's content is text: JSON for
structured parts, source for code. `Environment` is the typed view over those contents that everything else
(runtime, checks, screens) works with.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

DEFAULT_NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
"""The pinned time of environments that do not say when they were made.

The AWM layout carries no creation time and its rows use `datetime('now', '-3 days')`, so a constant is what makes
two imports of one folder build the same bytes. `import --now` chooses another.
"""


class Part(StrEnum):
    """One stage's output for one scenario; the value is the word used in the CLI and the catalog."""

    scenario = "scenario"  # JSON object: name, description
    tasks = "tasks"  # JSON array of strings
    schema = "schema"  # JSON object: tables → name, ddl, indexes
    sample = "sample"  # JSON object: tables → table_name, insert_statements
    spec = "spec"  # JSON object: api_groups → endpoints
    code = "code"  # Python source of a FastAPI application
    verifier = "verifier"  # Python source; slot "TASK/MODE", for example "3/code"
    solution = "solution"  # JSON object: calls, answer; slot "TASK"


STAGES: Mapping[str, tuple[Part, ...]] = {
    "scenario": (Part.scenario,),
    "tasks": (Part.tasks,),
    "database": (Part.schema, Part.sample),
    "interface": (Part.spec, Part.code),
    "verification": (Part.verifier,),
}
"""The five stages of AWM (arXiv 2602.10090, section 3) and the parts each one writes."""


class Mode(StrEnum):
    """How a verifier judges: `code` returns a verdict, `sql` returns evidence for a judge."""

    code = "code"
    sql = "sql"


class AuthorKind(StrEnum):
    """Who made a version."""

    model = "model"
    blueprint = "blueprint"
    person = "person"
    imported = "import"


@dataclass(frozen=True, slots=True)
class Author:
    """Who made a version: a kind and a name (model id, blueprint domain, user name, source folder)."""

    kind: AuthorKind
    name: str = ""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a version cost to make. `usd` is None where no price is known (not zero)."""

    tokens_in: int = 0
    tokens_out: int = 0
    usd: float | None = None
    seconds: float | None = None


def normalise(name: str) -> str:
    """The scenario name as AWM joins its files by it.

    Lower case; every character outside `[a-z0-9_]` becomes `_`; runs of `_` collapse; ends are stripped.
    """
    return re.sub(r"_+", "_", re.sub(r"[^a-z0-9_]", "_", name.lower())).strip("_")


def content_hash(content: str) -> str:
    """The sha256 hex digest that a part's content is stored under."""
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One table's DDL and its index statements, as written."""

    name: str
    ddl: str
    indexes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableRows:
    """The INSERT statements of one table, as written."""

    table: str
    inserts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Operation:
    """One endpoint of the API spec; `operation_id` is the tool's name."""

    operation_id: str
    method: str
    path: str
    group: str = ""
    summary: str = ""
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    response: Mapping[str, Any] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verifier:
    """Code that judges task number `task` (0-based) in one mode."""

    task: int
    mode: Mode
    code: str


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Solution:
    """Calls (and the final answer, if the task asks for one) known or claimed to solve task `task`."""

    task: int
    calls: tuple[Call, ...]
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """Scenario + tasks + database + interface + verifiers, joined by normalised name.

    Parts that are missing are empty (`()` or None); `missing` names them. `domain` is known only for blueprint
    environments. `now` is the pinned time of its instances.
    """

    name: str
    title: str = ""
    description: str = ""
    origin: str = AuthorKind.imported.value
    domain: str | None = None
    now: datetime = DEFAULT_NOW
    tasks: tuple[str, ...] = ()
    schema: tuple[TableSchema, ...] = ()
    sample: tuple[TableRows, ...] = ()
    operations: tuple[Operation, ...] = ()
    code: str | None = None
    verifiers: tuple[Verifier, ...] = ()
    solutions: tuple[Solution, ...] = ()

    @property
    def missing(self) -> tuple[Part, ...]:
        """The parts this environment needs and does not have, in stage order (solutions are optional)."""
        have = {
            Part.scenario: bool(self.description),
            Part.tasks: bool(self.tasks),
            Part.schema: bool(self.schema),
            Part.sample: bool(self.sample),
            Part.spec: bool(self.operations),
            Part.code: self.code is not None,
            Part.verifier: bool(self.verifiers),
        }
        return tuple(part for part, present in have.items() if not present)

    def verifier(self, task: int, mode: Mode | None = None) -> Verifier | None:
        """The verifier of a task, in the given mode, or code mode first where both exist."""
        found = [v for v in self.verifiers if v.task == task and mode in (None, v.mode)]
        return min(found, key=lambda v: v.mode != Mode.code, default=None)

    def solution(self, task: int) -> Solution | None:
        """The reference solution of a task, if one is known."""
        return next((s for s in self.solutions if s.task == task), None)
