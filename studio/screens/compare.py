"""Compare two environments, part by part."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget
from textual.widgets import Static

from pipeline.model import Environment
from studio.actions import bindings
from studio.comparison import Fact, compare
from studio.screens.frame import Framed
from studio.widgets.cells import one_line
from studio.widgets.grid import Cell, Column, Grid
from studio.widgets.listing import Listing, Text


def _side(text: str, other: str) -> Cell:
    if not text:
        return "· not there", "muted"
    return text, "" if text == other else "changed"


class Comparison(Listing):
    """Every fact; below, the difference in full."""

    EMPTY = "There is nothing to compare."
    COLUMNS = (
        Column("same", "", lambda fact: ("=", "muted") if fact.same else ("≠", "changed"), width=1),
        Column("group", "part", lambda fact: (fact.group, "muted"), width=9),
        Column("name", "name", lambda fact: fact.name, width=16, flex=1),
        Column("left", "left", lambda fact: _side(fact.left, fact.right), width=16, flex=1),
        Column("right", "right", lambda fact: _side(fact.right, fact.left), width=16, flex=1),
    )

    def explain(self, row: Fact) -> Text:
        """The difference, or what both have."""
        return row.difference()


class CompareScreen(Framed):
    """Opened with the two environments; n goes to the next difference."""

    MODE = "environments"
    ABOUT = "Everything the two environments have, = where they agree and ≠ where they do not. n goes to the next ≠."
    BINDINGS = bindings("compare")

    def __init__(self, left: Environment, right: Environment) -> None:
        super().__init__()
        self._left = left
        self._right = right

    def body(self) -> Iterable[Widget]:
        """Which two, then the facts."""
        sides = {"left ": self._left, "right": self._right}
        names = (f"{side} {one_line(env.title)}  ({env.name})" for side, env in sides.items())
        yield Static("\n".join(names), id="compared", markup=False)
        yield Comparison()

    def on_mount(self) -> None:
        """Show the facts."""
        super().on_mount()
        listing = self.query_one(Comparison)
        listing.show_rows(compare(self._left, self._right))
        listing.grid.focus()

    def action_next_difference(self) -> None:
        """To the next fact that differs, from the top again after the last."""
        grid = self.query_one(Grid)
        order = [*range(grid.cursor + 1, len(grid.rows)), *range(grid.cursor + 1)]
        grid.cursor = next((number for number in order if not grid.rows[number].same), grid.cursor)

    def action_back(self) -> None:
        """Back to the environments."""
        self.dismiss()
