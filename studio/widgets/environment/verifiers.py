"""The verifiers: which task, which mode, and their source."""

from __future__ import annotations

from pipeline.model import Mode, Verifier
from studio.widgets.environment.dossier import Dossier
from studio.widgets.grid import Column
from studio.widgets.listing import Listing, Text

JUDGES = {Mode.code: "gives a verdict", Mode.sql: "gives evidence to a judge"}


class Verifiers(Listing):
    """Every verifier; below, its source."""

    EMPTY = "This environment has no verifiers."
    NUMBERED = True
    WRAP = False
    COLUMNS = (
        Column("task", "task", lambda row: str(row[0].task), width=4, right=True),
        Column("mode", "mode", lambda row: row[0].mode.value, width=4),
        Column("lines", "lines", lambda row: str(row[0].code.count("\n") + 1), width=5, right=True),
        Column("text", "what it judges", lambda row: row[1], width=20, flex=1),
    )

    def show_dossier(self, dossier: Dossier) -> None:
        """Show the verifiers of an environment."""
        tasks = dossier.env.tasks
        self.show_rows(
            [
                (verifier, tasks[verifier.task] if verifier.task < len(tasks) else "✗ there is no such task")
                for verifier in dossier.env.verifiers
            ]
        )

    def explain(self, row: tuple[Verifier, str]) -> Text:
        """The source."""
        return row[0].code, "python"
