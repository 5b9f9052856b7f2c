"""A grid with an explanation of its current row below: how most details of an environment are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical

from studio.widgets.grid import Column, Grid
from studio.widgets.lines import Piece
from studio.widgets.source import Source

Text = tuple[str, str] | list[list[Piece]]
"""What explains a row: a text and its language, or lines with tones."""


class Listing(Vertical):
    """Rows above, the current one explained below. Subclasses say what the columns and the explanation are."""

    COLUMNS: ClassVar[tuple[Column, ...]] = ()
    EMPTY: ClassVar[str] = "Nothing here."
    NUMBERED: ClassVar[bool] = False
    WRAP: ClassVar[bool] = True

    _of = ""

    def explain(self, row: Any) -> Text:
        """The explanation of a row."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        """The grid and the explanation."""
        yield Grid(self.COLUMNS, empty=self.EMPTY)
        yield Source(numbered=self.NUMBERED, wrap=self.WRAP)

    @property
    def grid(self) -> Grid:
        """The rows."""
        return self.query_one(Grid)

    @property
    def source(self) -> Source:
        """The explanation."""
        return self.query_one(Source)

    def show_rows(self, rows: Sequence[Any], *, of: str = "") -> None:
        """Show these rows, the cursor on the first, or where it was if the rows before were `of` the same thing."""
        cursor = self.grid.cursor if of and of == self._of else 0
        self._of = of
        self.grid.show(rows, cursor=cursor)

    @on(Grid.Highlighted)
    def _explain(self, event: Grid.Highlighted) -> None:
        event.stop()
        if event.row is None:
            self.source.show("")
            return
        text = self.explain(event.row)
        if isinstance(text, tuple):
            self.source.show(*text)
        else:
            self.source.show_lines(text)
