"""Which calls a simulator is tried on: those of reference solutions, or of recorded rollouts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.model import Call
from train.ablate_simulator import Case
from train.evaluate_heldout import held_out_tasks
from train.records import read_records
from train.worlds import tasks_of

if TYPE_CHECKING:
    from pipeline.workspace import Workspace


def cases_of_solutions(workspace: Workspace, subset: str | None, environments: Iterable[str]) -> list[Case]:
    """The solved tasks of a subset's test split, or of environments. Raises UserError where none has a solution."""
    catalog = workspace.catalog
    if subset is not None:
        tasks = held_out_tasks(workspace, subset)
    else:
        tasks = [(task.environment, task.number) for task in tasks_of(catalog, environments, None)]
    found = []
    for name, number in tasks:
        solution = catalog.environment(name).solution(number)
        if solution is not None and solution.calls:
            found.append(Case(name, number, solution.calls))
    if not found:
        raise UserError("None of these tasks has a reference solution: give the calls of a run of rollouts (--run).")
    return found


def cases_of_run(workspace: Workspace, number: int) -> list[Case]:
    """The calls of a run's rollouts, one case each. Raises UserError where there are none."""
    found = []
    for record in read_records(workspace.runs / str(number)):
        calls = tuple(Call(turn.tool, turn.arguments) for turn in record.turns if turn.move == "call")
        if calls:
            found.append(Case(record.environment, record.task, calls))
    if not found:
        raise UserError(f"The rollouts of run {number} made no calls.")
    return found
