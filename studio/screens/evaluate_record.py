"""One task of a benchmark, as its harness has written it down."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from textual.widget import Widget
from textual.widgets import Static

from studio.actions import bindings
from studio.screens.frame import Framed
from studio.widgets.lines import Piece
from studio.widgets.source import Source, highlight, plain

if TYPE_CHECKING:
    from train.evaluate_report import Item


class TaskRecordScreen(Framed):
    """The conversation where the harness keeps one, then everything else it has on the task."""

    MODE = "evaluate"
    ABOUT = (
        "What the benchmark's own harness has kept of a task: what was said and called, and how it was judged. State "
        "changes are known only for held-out tasks, which run in environments of the studio."
    )
    BINDINGS = bindings("record")

    def __init__(self, item: Item, records: Sequence[tuple[str, dict[str, Any]]]) -> None:
        super().__init__()
        self.item = item
        self._records = records

    def body(self) -> Iterable[Widget]:
        """Which task, and its records."""
        tries = "".join("✓" if passed else "✗" for passed in self.item.passes) or "not judged"
        yield Static(f"{self.item.id}  {tries}", id="record-head", markup=False)
        yield Source(wrap=True, id="record")

    def on_mount(self) -> None:
        """Show the records."""
        super().on_mount()
        source = self.query_one("#record", Source)
        source.show_lines(_lines(self._records))
        source.focus()

    def action_back(self) -> None:
        """Back to the tasks."""
        self.dismiss()


def _lines(records: Sequence[tuple[str, dict[str, Any]]]) -> list[list[Piece]]:
    from train.evaluate_records import messages_of

    lines: list[list[Piece]] = []
    for place, record in records:
        lines += [[(place, "strong")]]
        for who, text in messages_of(record) or ():
            lines += [[(f"{who}", "name")], *([("  ", ""), *line] for line in plain(text))]
        rest = {name: value for name, value in record.items() if name != "messages"}
        lines += [*highlight(json.dumps(rest, indent=2, ensure_ascii=False), "json"), []]
    return lines or [[("The harness has kept nothing on this task.", "muted")]]
