"""Near-duplicates: pairs that are hardly two, side by side, and what to make of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual import on, work
from textual.widget import Widget
from textual.widgets import Static

from curation.duplicates import Decision, decide
from studio.actions import bindings
from studio.concept_reading import PairRow, pairs
from studio.screens.pair import PairScreen
from studio.widgets.grid import Column, Grid
from studio.widgets.source import Source

if TYPE_CHECKING:
    from curation.landscape import Landscape
    from pipeline.catalog import Catalog
    from pipeline.records import StoredDecision


class DuplicatesScreen(PairScreen):
    """The pairs above, most similar first; the two of the current one below."""

    ABOUT = (
        "Pairs that are nearly the same once their names are masked; words that only one of the two has are marked. "
        "Keep both where they differ enough. Merge where they are one thing twice: a subset takes the one on the right "
        "only where the left one is not to be had. Drop what is not wanted at all: no subset takes it. Nothing is "
        "deleted, filters see it as aside:merged and aside:dropped, and u takes a decision back."
    )
    BINDINGS = bindings("duplicates")

    def __init__(self, landscape: Landscape, decisions: Iterable[StoredDecision]) -> None:
        super().__init__(landscape)
        self._landscape = landscape
        self._rows = pairs(landscape, list(decisions))
        self._swapped = False

    def body(self) -> Iterable[Widget]:
        """How many, the list, the two."""
        yield Static("", id="concepts-head", markup=False)
        yield Grid(
            (
                Column("similarity", "alike", lambda row: f"{row.similarity:.2f}", width=5, right=True),
                Column("a", "left", lambda row: row.a, width=20, flex=1),
                Column("b", "right", lambda row: row.b, width=20, flex=1),
                Column("said", "decision", lambda row: (row.said, "accent"), width=14, flex=1),
            ),
            empty="No two environments are near-duplicates (at least 0.85 alike).",
            id="pairs",
        )
        yield from self.sides()

    @property
    def grid(self) -> Grid:
        """The list."""
        return self.query_one("#pairs", Grid)

    def on_mount(self) -> None:
        """Begin with the first pair that waits for a decision."""
        super().on_mount()
        self.grid.focus()
        self._list(next((number for number, row in enumerate(self._rows) if row.decision is None), 0))

    def _list(self, cursor: int) -> None:
        self.grid.show(self._rows, cursor=cursor)
        left = sum(row.decision is None for row in self._rows)
        more = self._landscape.duplicate_pairs - len(self._rows)
        rest = f" · {more:,} less similar pairs are not listed" if more > 0 else ""
        self.query_one("#concepts-head", Static).update(f"{left:,} of {len(self._rows):,} pairs to decide{rest}")

    @on(Grid.Highlighted, "#pairs")
    def _highlighted(self) -> None:
        self._swapped = False
        self._show()

    @on(Grid.Selected, "#pairs")
    def _read(self) -> None:
        self.query_one("#left", Source).focus()

    def _show(self) -> None:
        if self.grid.row is not None:
            self.show_pair(*self._sides(self.grid.row))

    def _sides(self, row: PairRow) -> tuple[str, str]:
        return (row.b, row.a) if self._swapped else (row.a, row.b)

    # Actions

    def action_keep(self) -> None:
        """Both stay."""
        self._decide(Decision.keep, None)

    def action_merge(self) -> None:
        """They are one: the right one gives way."""
        self._decide(Decision.merge, 1)

    def action_drop(self) -> None:
        """The right one is not wanted."""
        self._decide(Decision.drop, 1)

    def action_drop_left(self) -> None:
        """The left one is not wanted."""
        self._decide(Decision.drop, 0)

    def action_undo(self) -> None:
        """Forget the decision."""
        self._decide(None, None)

    def action_swap(self) -> None:
        """Left becomes right."""
        self._swapped = not self._swapped
        self._show()

    @work(exclusive=True, group="decide")
    async def _decide(self, decision: Decision | None, side: int | None) -> None:
        row, workspace = self.grid.row, self.studio.workspace
        if row is None or workspace is None:
            return
        leaves = None if side is None else self._sides(row)[side]
        done = await self.studio.ask(_decided, workspace.catalog, row, decision, leaves)
        if done is None:
            return
        number = self.grid.cursor
        self._rows = pairs(self._landscape, done)
        following = [n for n, each in enumerate(self._rows) if each.decision is None and n > number]
        self._list(following[0] if following and decision is not None else number)

    def action_back(self) -> None:
        """Back to the map."""
        self.dismiss()

    def copy_text(self) -> str:
        """The names of the two."""
        return "\t".join((self.grid.row.a, self.grid.row.b)) if self.grid.row else ""


def _decided(catalog: Catalog, row: PairRow, decision: Decision | None, leaves: str | None) -> list[StoredDecision]:
    decide(catalog, row.a, row.b, decision, leaves=leaves)
    return catalog.decisions()
