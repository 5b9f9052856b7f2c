"""What people tell a run to do: rows in its log, written by any process, taken by the engine."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pipeline.engine.board import Board, Row
from pipeline.engine.config import KIND
from pipeline.errors import UserError
from pipeline.model import STAGES, normalise
from pipeline.records import Run
from pipeline.words import whole_number

if TYPE_CHECKING:
    from pipeline.catalog import Catalog

DO = ("pause", "resume", "stop", "approve", "reject", "edit", "retry", "drop", "set")
"""Everything a run can be told."""


def send(catalog: Catalog, run: int, do: str, *, scenario: str | None = None, by: str = "", **data: Any) -> int:
    """Append a command; returns its id, to be asked for with `answer`.

    Its data, by what is done: approve `stage`; reject `stage`, `part`, `slot`, `reason`; edit `stage`, `part`,
    `slot`, `content`, `keep`; retry `stage`, `part`, `slot`, `hint`, `version`; set `count`, `budget`, `gates`,
    `models`. What a command does not name means what there is only one of, or everything.
    """
    if do not in DO:
        raise ValueError(do)
    return catalog.add_event(run, "command", {"do": do, "by": by or person(), **data}, scenario)


def answer(
    catalog: Catalog,
    run: int,
    command: int,
    *,
    timeout_s: float,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[bool, str] | None:
    """Whether the engine did it and what it says, or None where it has not answered in time."""
    seen, deadline = command, clock() + timeout_s
    while True:
        for event in catalog.events(seen, run=run):
            seen = event.id
            if event.kind == "taken" and event.data["command"] == command:
                return event.data["ok"], event.data["said"]
        if clock() >= deadline:
            return None
        sleep(0.05)


def find_run(catalog: Catalog, number: int | None) -> Run:
    """A synthesis by its number, or the newest one. Raises UserError where there is none."""
    runs = [run for run in catalog.runs() if run.kind == KIND]
    if number is None and runs:
        return runs[0]
    for run in runs:
        if run.id == number:
            return run
    if not runs:
        raise UserError("No synthesis has been started in this workspace: awm-studio synth --count N starts one.")
    raise UserError(f"There is no synthesis {number}; awm-studio run list shows those there are.")


def find_row(board: Board, wanted: str) -> Row:
    """A scenario of a run by its number, name or title. Raises UserError where there is none, or more than one."""
    number = whole_number(wanted)
    if number is not None:
        found = [row for row in board.rows.values() if row.number == number]
    else:
        name = normalise(wanted)
        alike = [row for row in board.rows.values() if row.name.startswith(name)]
        found = [board.rows[name]] if name in board.rows else alike
    if len(found) == 1:
        return found[0]
    if found:
        raise UserError(f"{wanted!r} may be {', '.join(row.name for row in found[:5])}: give more of the name.")
    raise UserError(f"The run has no scenario {wanted!r}; awm-studio run show lists them by number and name.")


def one_stage(row: Row, stage: str | None) -> str:
    """The stage that is meant: the one named, or the one the scenario is at. Raises UserError for an unknown one."""
    if stage is None:
        return row.stage
    if stage not in STAGES:
        raise UserError(f"There is no stage {stage!r}: they are {', '.join(STAGES)}.")
    return stage


def person() -> str:
    """Who sits here, as versions and commands name them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in containers
        return "someone"
