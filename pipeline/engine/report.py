"""A run in figures: by stage what it took, by environment what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from pipeline.engine.board import Board, Cell, Row, State
from pipeline.model import STAGES

if TYPE_CHECKING:
    from pipeline.catalog import Catalog


def summary(board: Board, catalog: Catalog, run: int) -> dict[str, Any]:
    """The document that `awm-studio synth --json` prints.

    By stage: `attempts`; `first_try` and `final`, the shares of the scenarios that came to an end there which were
    right at once, and which were made at all (None where none has); tokens, money (None where no price is known) and
    the model's seconds. By environment: its state and size. `means` are over the environments that are done.
    """
    environments = [environment(row, catalog) for row in board.wanted]
    done = [each for each in environments if each["state"] == State.done]
    return {
        "run": run,
        "made_by": "model",
        "state": board.state,
        "why": board.why,
        "environments": environments,
        "stages": {stage: stage_figures(stage, board) for stage in STAGES},
        "means": {key: _mean(each[key] for each in done) for key in ("tables", "rows", "tools", "lines", "tokens")},
        "usd": _total(each["usd"] for each in environments),
        "spent_usd": round(board.spent, 6),
    }


def stage_figures(stage: str, board: Board) -> dict[str, Any]:
    """What one stage took, over all scenarios; stage 1 belongs to none of them."""
    cells = [board.source] if stage == "scenario" else [row.cells[stage] for row in board.wanted]
    if stage == "scenario":
        steps = list(board.source.steps.values())
        ended = [log for log in steps if log.attempts]
        first = [log for log in ended if log.attempts[0].right]
        final = [log for log in ended if log.attempts[-1].right]
    else:
        ended = [cell for cell in cells if cell.state in (State.done, State.failed)]
        first = [cell for cell in ended if cell.state is State.done and right_at_once(cell)]
        final = [cell for cell in ended if cell.state is State.done]
    return {
        "attempts": sum(cell.tries for cell in cells),
        "first_try": _share(first, ended),
        "final": _share(final, ended),
        "tokens": sum(cell.tokens for cell in cells),
        "usd": _total(cell.usd for cell in cells),
        "seconds": round(sum(cell.seconds for cell in cells), 3),
    }


def right_at_once(cell: Cell) -> bool:
    """Whether every step of a stage was right at its first attempt."""
    return cell.tries == len(cell.steps) and all(log.attempts and log.attempts[0].right for log in cell.steps.values())


def environment(row: Row, catalog: Catalog) -> dict[str, Any]:
    """What came of one scenario; counts of what it does not have are None."""
    made = catalog.environment(row.name) if row.cells["scenario"].state is State.done else None
    return {
        "name": row.name,
        "state": row.state,
        "stage": row.stage,
        "why": row.cells[row.stage].why,
        "tables": len(made.schema) if made and made.schema else None,
        "rows": sum(len(table.inserts) for table in made.sample) if made and made.sample else None,
        "tools": len(made.operations) if made and made.operations else None,
        "tasks": len(made.tasks) if made and made.tasks else None,
        "lines": made.code.count("\n") + 1 if made and made.code else None,
        "tokens": row.tokens,
        "usd": row.usd,
    }


def board_document(board: Board) -> dict[str, Any]:
    """The board as `awm-studio run show --json` prints it."""
    return {
        "state": board.state,
        "why": board.why,
        "count": board.count,
        "budget": board.budget,
        "spent_usd": round(board.spent, 6),
        "gates": board.gates,
        "models": {stage: profile["model"] for stage, profile in board.models.items()},
        "counts": {state.value: number for state, number in board.counts().items()},
        "source": cell_document(board.source) | {"rounds": len(board.rounds)},
        "scenarios": [row_document(row) for row in board.rows.values()],
    }


def row_document(row: Row) -> dict[str, Any]:
    """One scenario of the board."""
    return {
        "number": row.number,
        "name": row.name,
        "title": row.title,
        "category": row.category,
        "state": row.state,
        "stage": row.stage,
        "paused": row.paused,
        "dropped": row.dropped,
        "tokens": row.tokens,
        "usd": row.usd,
        "stages": {stage: cell_document(cell) for stage, cell in row.cells.items()},
    }


def cell_document(cell: Cell) -> dict[str, Any]:
    """One stage of one scenario."""
    return {
        "state": cell.state,
        "why": cell.why,
        "fault": cell.fault,
        "attempts": cell.tries,
        "tokens": cell.tokens,
        "usd": cell.usd,
        "seconds": round(cell.seconds, 3),
    }


def steps_document(cell: Cell) -> list[dict[str, Any]]:
    """The steps of a stage with their attempts, findings included."""
    return [
        {
            "step": name,
            "version": log.version,
            "attempts": [
                {
                    "number": tried.number,
                    "right": tried.right,
                    "findings": list(tried.findings),
                    "keys": list(tried.keys),
                }
                for tried in log.attempts
            ],
        }
        for name, log in cell.steps.items()
    ]


def _share(some: Sequence[Any], of: Sequence[Any]) -> float | None:
    return round(len(some) / len(of), 4) if of else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(fmean(known), 1) if known else None


def _total(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known), 6) if known else None
