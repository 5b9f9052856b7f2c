"""Two evaluations side by side: the verdict, and the tasks gained and lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical

from studio.widgets.cells import fit
from studio.widgets.evaluation.bars import LABEL
from studio.widgets.grid import Cell, Column, Grid
from studio.widgets.lines import Piece
from studio.widgets.source import Source

VERDICTS: Mapping[str, Piece] = {
    "better": ("▲ better", "ok"),
    "worse": ("▼ worse", "fail"),
    "not decided": ("≈ not decided", "warn"),
}


@dataclass(frozen=True, slots=True)
class ChangedTask:
    """A task that one passes more often than the other."""

    id: str
    gained: bool
    before: str
    after: str


def _sign(row: ChangedTask) -> Cell:
    return ("▲ gained", "ok") if row.gained else ("▼ lost", "fail")


class Comparison(Vertical):
    """Shows what `train.evaluate_compare.compare` found."""

    COLUMNS = (
        Column("sign", "", _sign, width=8),
        Column("task", "task", lambda row: row.id, width=24, flex=1),
        Column("before", "before", lambda row: row.before, width=7, right=True),
        Column("after", "after", lambda row: row.after, width=7, right=True),
    )

    def compose(self) -> ComposeResult:
        """The verdict, then the tasks."""
        yield Source(wrap=True, id="verdict-lines")
        yield Grid(self.COLUMNS, empty="No task was gained or lost.", id="changed-tasks")

    def say(self, text: str) -> None:
        """Say why there is nothing to compare."""
        self.query_one(Source).show_lines([[(text, "muted")]])
        self.query_one(Grid).show([])

    def show(self, found: Mapping[str, Any]) -> None:
        """Show a comparison."""
        self.query_one(Source).show_lines(_lines(found))
        rows = [ChangedTask(row["id"], name == "gained", row["before"], row["after"])
                for name in ("lost", "gained") for row in found[name]]  # fmt: skip
        self.query_one(Grid).show(rows)


def _lines(found: Mapping[str, Any]) -> list[list[Piece]]:
    difference = f"{found['difference']:+.3f}"
    if found["interval"] is not None:
        difference += " ({:+.3f} to {:+.3f})".format(*found["interval"])
    p = "" if found["p"] is None else f", p = {found['p']:.4f}"
    why = f"  {found['why']}" if found["why"] else ""
    told: list[tuple[str, list[Piece]]] = [
        ("before", [(f"{found['before_score']:.3f}  run {found['before']['run']}, {found['before']['model']}", "")]),
        ("after", [(f"{found['after_score']:.3f}  run {found['after']['run']}, {found['after']['model']}", "")]),
        ("difference", [(f"{difference} on {found['tasks']} tasks", "")]),
        ("after is", [VERDICTS[found["verdict"]], (f"{why}  ({found['test']}{p})", "muted")]),
    ]
    told += [(f"{name} differs", [(f"{one} / {other}", "warn")]) for name, (one, other) in found["settings"].items()]
    return [[(fit(name, LABEL), "muted"), (" ", ""), *pieces] for name, pieces in told]
