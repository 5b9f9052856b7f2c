"""The tasks, which verifiers they have, and their reference solutions."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pipeline.model import Mode, Solution
from studio.widgets.environment.dossier import Dossier
from studio.widgets.grid import Column
from studio.widgets.lines import Piece
from studio.widgets.listing import Listing, Text


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task as it is listed."""

    number: int
    text: str
    modes: str
    solution: Solution | None


class Tasks(Listing):
    """Every task by number; below, its text and its solution."""

    EMPTY = "This environment has no tasks."
    COLUMNS = (
        Column("number", "#", lambda row: str(row.number), width=3, right=True),
        Column("verifiers", "verifier", lambda row: (row.modes or "·", "" if row.modes else "muted"), width=8),
        Column("solution", "sol", lambda row: ("✓", "ok") if row.solution else ("·", "muted"), width=3),
        Column("text", "task", lambda row: row.text, width=20, flex=1),
    )

    def show_dossier(self, dossier: Dossier) -> None:
        """Show the tasks of an environment."""
        env = dossier.env
        self.show_rows(
            [
                TaskRow(
                    number,
                    text,
                    " ".join(mode.value for mode in Mode if env.verifier(number, mode)),
                    env.solution(number),
                )
                for number, text in enumerate(env.tasks)
            ],
            of=env.name,
        )

    def explain(self, row: TaskRow) -> Text:
        """The whole text, then the calls of the reference solution."""
        lines: list[list[Piece]] = [[(line, "")] for line in row.text.splitlines()]
        if row.solution is None:
            return [*lines, [], [("No reference solution yet: call its tools (c), then save (^s).", "muted")]]
        lines += [[], [("Reference solution", "strong")]]
        for call in row.solution.calls:
            lines.append([(call.tool, "name"), (f" {json.dumps(dict(call.arguments), ensure_ascii=False)}", "")])
        if row.solution.answer is not None:
            lines.append([("answer ", "muted"), (row.solution.answer, "string")])
        return lines
