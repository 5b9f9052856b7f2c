"""What the last check found."""

from __future__ import annotations

from pipeline.findings import Finding
from studio.widgets.environment.dossier import Dossier
from studio.widgets.grid import Column
from studio.widgets.lines import Piece
from studio.widgets.listing import Listing, Text
from studio.widgets.states import state

TABS = {
    "scenario": "overview",
    "tasks": "tasks",
    "schema": "tables",
    "sample": "tables",
    "spec": "tools",
    "code": "tools",
    "verifier": "verifiers",
    "solution": "tasks",
}
"""The tab that shows what a finding about each part is about."""


def place(where: str) -> tuple[str, str]:
    """The tab and the table, tool or line of code that a finding's `where` means; empty where it names none.

    `where` is a part, and after a colon what of it: "schema: bags", "code: list_bags", "code:123".
    """
    part, _, rest = where.partition(":")
    name = rest.split(maxsplit=1)[0] if rest.strip() else ""
    if part == "code" and (name.isdigit() or not name):
        return "code", name
    return TABS.get(part, ""), name


def _tasks(row: Finding) -> str:
    return ", ".join(map(str, row.tasks))


class Findings(Listing):
    """Every finding; below, its evidence and what to do about it."""

    EMPTY = "Nothing found."
    COLUMNS = (
        Column("severity", "", lambda row: state(row.severity), width=7),
        Column("code", "what", lambda row: row.code, width=12, flex=1),
        Column("where", "where", lambda row: row.where, width=12, flex=1),
        Column("tasks", "tasks", _tasks, width=5, drop=1),
    )

    def show_dossier(self, dossier: Dossier) -> None:
        """Show the findings of the last check."""
        if dossier.summary.check is None:
            self.grid.empty = "Not checked yet: v checks it."
        else:
            self.grid.empty = "The last check found nothing."
        self.show_rows(dossier.findings)

    def explain(self, row: Finding) -> Text:
        """Message, evidence, remedy, blocked tasks."""
        from curation.fixes.proposals import REMEDIES

        lines: list[list[Piece]] = [[(row.message, "strong")], [("at ", "muted"), (row.where, "")]]
        if row.evidence:
            lines += [[], *([(line, "")] for line in row.evidence.splitlines())]
        if row.remedy:
            lines += [[], [("What to do: ", "accent"), (row.remedy, "")]]
        if row.code in REMEDIES:
            lines.append([("f looks for an edit that does it.", "muted")])
        if row.tasks:
            lines += [[], [("Tasks it stands in the way of: ", "muted"), (_tasks(row), "")]]
        return lines
