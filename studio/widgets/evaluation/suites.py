"""The suites, with what each needs before it can be run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studio.widgets.grid import Column
from studio.widgets.lines import Piece
from studio.widgets.listing import Listing, Text
from studio.widgets.states import state

if TYPE_CHECKING:
    from train.harness.readiness import Readiness


ENTER = {"ready": "Enter starts an evaluation.", "not installed": "Enter installs it."}
"""What Enter does, by state."""


class Suites(Listing):
    """Each suite with its state; below, its parts and what they are missing."""

    COLUMNS = (
        Column("title", "suite", lambda row: (row.title, "strong"), width=13),
        Column("version", "version", lambda row: (row.version, "muted"), width=10, drop=2),
        Column("state", "state", lambda row: state(row.state), width=15),
        Column("summary", "", lambda row: "" if row.summary == row.state else row.summary, width=16, flex=1, drop=1),
    )
    EMPTY = "Looking what can be run here …"

    def explain(self, row: Readiness) -> Text:
        """What is missing, what comes next, and which of its parts can be run."""
        lines: list[list[Piece]] = [[(f"{row.title} ", "strong"), (f"{row.package} {row.version}  ", "muted"),
                                     state(row.state)]]  # fmt: skip
        lines += [[("missing  ", "muted"), (words, "warn")] for words in row.missing]
        lines += [[("next     ", "muted"), (row.how, "")]] if row.how else []
        lines += [[("in       ", "muted"), (row.folder, "")]] if row.folder else []
        for domain in row.domains:
            tasks = "" if domain.tasks is None else f"{domain.tasks} tasks"
            mark: Piece = ("✓ ", "ok") if domain.ready else ("✗ ", "warn")
            lines.append([mark, (f"{domain.name}  ", ""), (tasks, "muted"), (f"  {'; '.join(domain.missing)}", "warn")])
        if told := ENTER.get(row.state):
            lines.append([(told, "muted")])
        return lines


def summary_line(found: list[Readiness]) -> list[Piece]:
    """All suites in one line; of those that are ready a sign is enough."""
    pieces: list[Piece] = []
    for row in found:
        ready = row.state == "ready"
        told = "✓" if ready else f"✗ {row.state}"
        pieces += [(f"{row.title} ", "strong"), (f"{told}  ", "ok" if ready else "muted")]
    return pieces
