"""Where reference solutions are kept: as a part of the environment, one for each task, the newest version first.

Whoever knows one (a person who made the calls in the studio, a model that agrees with itself) hands it in here; the
audit plays whichever is current and names its author.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.model import Author, Part, Solution
from pipeline.parts import dumps
from pipeline.records import Version


def keep_solution(
    catalog: Catalog, name: str, solution: Solution, author: Author, *, extra: Mapping[str, Any] | None = None
) -> Version:
    """Keep the calls, and the answer where the task asks for one (else None), as a task's reference solution.

    The one before stays among its versions, and what was audited with it counts as stale. `author` says who knows it:
    `Author(AuthorKind.person, getpass.getuser())` for recorded calls. Raises UserError where the environment or the
    task is not there, or there is neither a call nor an answer.
    """
    tasks = catalog.environment(name, parts=[Part.tasks]).tasks
    if not 0 <= solution.task < len(tasks):
        raise UserError(f"{name} has no task {solution.task}: it has tasks 0 to {len(tasks) - 1}.")
    if not solution.calls and solution.answer is None:
        raise UserError(f"A solution of task {solution.task} needs calls, or an answer: there are neither.")
    calls = [{"tool": call.tool, "arguments": dict(call.arguments)} for call in solution.calls]
    content = dumps({"calls": calls, "answer": solution.answer})
    return catalog.put(
        name, Part.solution, content, slot=str(solution.task), author=author, extra=dict(extra) if extra else None
    )
