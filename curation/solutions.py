"""A way of solving a task, a person's or a model's, kept as its reference solution: audits, rollouts and warm starts
use it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.model import Author, Call, Part
from pipeline.records import Version


@dataclass(frozen=True, slots=True)
class Made:
    """A call that was made: whether it worked, and whether it changed the database."""

    call: Call
    ok: bool
    changed: bool


def worked(made: Sequence[Made]) -> tuple[Call, ...]:
    """The calls that a solution is made of: those that worked. A refused call that changed nothing is left out.

    Raises UserError where a call failed and changed something all the same: without it the rest may not work.
    """
    for number, each in enumerate(made, 1):
        if not each.ok and each.changed:
            raise UserError(
                f"Call {number} ({each.call.tool}) failed and changed the database: go back to before it in History."
            )
    return tuple(each.call for each in made if each.ok)


def save_solution(
    catalog: Catalog,
    name: str,
    task: int,
    calls: Sequence[Call],
    answer: str | None,
    author: Author,
    *,
    extra: Mapping[str, Any] | None = None,
) -> Version:
    """Keep calls and the answer as the reference solution of a task: a new version, by its author.

    `extra` is what else is known of it, such as how often a model agreed with itself. What was audited with the version
    before counts as stale. Raises UserError for an unknown environment, a task that it does not have, and a solution
    with nothing in it.
    """
    tasks = catalog.summary(name).tasks or 0
    if not 0 <= task < tasks:
        raise UserError(f"{name} has no task {task}; it has {tasks}, numbered from 0.")
    if not calls and answer is None:
        raise UserError("A solution needs a call or an answer.")
    content = {"calls": [{"tool": one.tool, "arguments": dict(one.arguments)} for one in calls], "answer": answer}
    before = catalog.versions(name, Part.solution, str(task))[-1:]
    return catalog.put(
        name,
        Part.solution,
        json.dumps(content, ensure_ascii=False),
        slot=str(task),
        author=author,
        parents=[version.id for version in before],
        extra=extra,
    )
