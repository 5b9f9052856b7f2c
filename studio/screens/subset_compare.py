"""Two subsets side by side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from textual import work
from textual.widget import Widget
from textual.widgets import Static

from studio.actions import bindings
from studio.screens.frame import Framed
from studio.subset_reading import Difference, differences
from studio.widgets.grid import Column
from studio.widgets.listing import Listing, Text


class Differences(Listing):
    """What only one has, what both have; below, which."""

    EMPTY = "Reading the subsets …"
    COLUMNS = (
        Column("what", "", lambda row: row.what, width=24, flex=1),
        Column("left", "only left", lambda row: row.counts[0], width=14, right=True),
        Column("both", "both", lambda row: row.counts[1], width=10, right=True),
        Column("right", "only right", lambda row: row.counts[2], width=14, right=True),
    )

    def explain(self, row: Difference) -> Text:
        """Which they are."""
        return row.lines


class CompareSubsetsScreen(Framed):
    """Opened with the names of the two."""

    MODE = "subsets"
    ABOUT = (
        "What only the left subset has, what both have and what only the right one has. A model that was trained on "
        "one must not be tested on what the other trains on: such environments are counted."
    )
    BINDINGS = bindings("compare_subsets")

    def __init__(self, left: str, right: str) -> None:
        super().__init__()
        self._left, self._right = left, right

    def body(self) -> Iterable[Widget]:
        """Which two, then the comparison."""
        yield Static(f"left  {self._left}\nright {self._right}", id="compared", markup=False)
        yield Differences()

    def on_mount(self) -> None:
        """Compare them."""
        super().on_mount()
        self.query_one(Differences).grid.focus()
        self._read()

    @work(exclusive=True)
    async def _read(self) -> None:
        if self.studio.workspace is None:
            return
        found: Any = await self.studio.ask(differences, self.studio.workspace.catalog, self._left, self._right)
        if found is not None:
            self.query_one(Differences).show_rows(found)

    def action_back(self) -> None:
        """Back to the subsets."""
        self.dismiss()
