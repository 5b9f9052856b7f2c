"""What a call changed in the database, cell by cell."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from studio.widgets.cells import shown
from studio.widgets.grid import Column, Grid

GLYPHS = {"added": "+", "removed": "-", "changed": "~"}


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """One cell that changed, or came or went with its row."""

    table: str
    what: str
    key: str
    column: str
    before: str
    after: str


class Changes(Grid):
    """A state diff as a table; what changed is marked by a glyph and a colour."""

    COLUMNS = (
        Column("what", "", lambda row: (GLYPHS[row.what], row.what), width=1),
        Column("table", "table", lambda row: row.table, width=12, flex=1),
        Column("key", "row", lambda row: (row.key, "muted"), width=8, flex=1),
        Column("column", "column", lambda row: (row.column, "name"), width=10, flex=1),
        Column("before", "before", lambda row: (row.before, "removed"), width=14, flex=2),
        Column("after", "after", lambda row: (row.after, "added"), width=14, flex=2),
    )

    def __init__(self, id: str | None = None) -> None:
        super().__init__(self.COLUMNS, empty="No call yet.", id=id)

    def show_changes(self, changes: Mapping[str, Any]) -> None:
        """Show a diff as `pipeline.runtime.diff` gives it."""
        self.empty = "The database was not changed."
        self.show([row for table, difference in changes.items() for row in _rows(table, difference)])


def _rows(table: str, difference: Mapping[str, Any]) -> Iterator[ChangeRow]:
    for row in difference.get("changed", ()):
        key = _brief(row["key"])
        for column, before in row["before"].items():
            yield ChangeRow(table, "changed", key, column, shown(before), shown(row["after"].get(column)))
    for row in difference.get("added", ()):
        for number, (column, value) in enumerate(row.items()):
            yield ChangeRow(table, "added", "" if number else "new row", column, "", shown(value))
    for row in difference.get("removed", ()):
        for number, (column, value) in enumerate(row.items()):
            yield ChangeRow(table, "removed", "" if number else "row gone", column, shown(value), "")


def _brief(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{column}={json.dumps(value, ensure_ascii=False)}" for column, value in row.items())
