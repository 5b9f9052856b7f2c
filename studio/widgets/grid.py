"""A table that draws only the lines on screen: quick with ten rows and with a million.

Rows are any sequence (a list, a page of a database table); columns say how a row is shown. Which columns fit is
worked out again at every resize: columns with the highest `drop` leave first when room is short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from studio.actions import bindings
from studio.widgets.cells import fit, one_line
from studio.widgets.lines import Lines, Piece

Cell = str | Piece
SAMPLED = 50
"""How many rows are measured to choose the width of a column that does not say its own."""
WIDEST = 40
"""The most cells such a column gets."""
GAP = 1
"""Cells between columns, and before the first."""


@dataclass(frozen=True, slots=True)
class Column:
    """How one fact of a row is shown.

    `width` is in cells (0: as wide as its contents, at most WIDEST). A column with `flex` shares what room is left.
    Columns with the highest `drop` leave first when the grid is narrow; 0 never leaves.
    """

    key: str
    label: str
    cell: Callable[[Any], Cell]
    width: int = 0
    flex: int = 0
    right: bool = False
    drop: int = 0


class Grid(Lines):
    """Rows under a heading, with a row cursor, keys, mouse, sorting marks and horizontal scrolling."""

    BINDINGS = bindings("grid")

    cursor = reactive(0, repaint=False)

    class OnRow(Message):
        """What happens on a row of a grid."""

        def __init__(self, grid: Grid, row: Any) -> None:
            super().__init__()
            self.grid = grid
            self.row = row

        @property
        def control(self) -> Grid:
            """The grid, for `@on(Grid.Highlighted, "#id")`."""
            return self.grid

    class Highlighted(OnRow):
        """The cursor is on another row; `row` is None in an empty grid."""

    class Selected(OnRow):
        """Enter was pressed on a row, or it was clicked twice."""

    class HeadClicked(Message):
        """The heading of a column was clicked."""

        def __init__(self, grid: Grid, column: str) -> None:
            super().__init__()
            self.grid = grid
            self.column = column

        @property
        def control(self) -> Grid:
            """The grid, for `@on(Grid.HeadClicked, "#id")`."""
            return self.grid

    def __init__(
        self,
        columns: Sequence[Column] = (),
        rows: Sequence[Any] = (),
        *,
        empty: str = "Nothing here.",
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.columns = tuple(columns)
        self.rows = rows
        self.empty = empty
        self.sorted_by: tuple[str, bool] | None = None
        self._layout: list[tuple[Column, int]] = []

    # What is shown

    def show(self, rows: Sequence[Any], *, columns: Sequence[Column] | None = None, cursor: int = 0) -> None:
        """Show other rows (and columns), with the cursor on row number `cursor`."""
        if columns is not None:
            self.columns = tuple(columns)
        self.rows = rows
        self._measure()
        cursor = max(0, min(cursor, len(rows) - 1))
        if cursor == self.cursor:
            self._reveal()
            self.post_message(self.Highlighted(self, self.row))
        self.cursor = cursor
        self.refresh()

    @property
    def row(self) -> Any:
        """The row under the cursor, or None where there are no rows."""
        return self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None

    def go_to(self, wanted: Callable[[Any], bool]) -> bool:
        """Put the cursor on the first row that is wanted; says whether there is one."""
        for number, row in enumerate(self.rows):
            if wanted(row):
                self.cursor = number
                return True
        return False

    def redraw(self, row: int | None = None) -> None:
        """Draw one row again because its contents changed, or all of them."""
        if row is None:
            self.refresh()
        else:
            self.refresh_rows([row], below=1)

    def copy_text(self) -> str:
        """The row under the cursor as tab-separated text."""
        if self.row is None:
            return ""
        return "\t".join(_text(column.cell(self.row)) for column in self.columns if column.label.strip())

    # Layout

    def _measure(self) -> None:
        """Choose the columns that fit and their widths."""
        room = self.scrollable_content_region.width - GAP
        widths = {column.key: column.width or self._content_width(column) for column in self.columns}
        kept = list(self.columns)
        while sum(widths[column.key] + GAP for column in kept) > room:
            droppable = max(kept, key=lambda column: column.drop, default=None)
            if droppable is None or not droppable.drop:
                break
            kept.remove(droppable)
        spare = room - sum(widths[column.key] + GAP for column in kept)
        shares = sum(column.flex for column in kept)
        if spare > 0 and shares:
            for column in kept:
                extra = spare * column.flex // shares
                widths[column.key] += extra
                spare -= extra
                shares -= column.flex
                if not shares:
                    break
        self._layout = [(column, widths[column.key]) for column in kept]
        width = max(room, sum(width + GAP for _, width in self._layout))
        self.virtual_size = Size(GAP + width, len(self.rows) + 1)

    def _content_width(self, column: Column) -> int:
        from rich.cells import cell_len

        sample = (self.rows[i] for i in range(min(len(self.rows), SAMPLED)))
        widest = max((cell_len(one_line(_text(column.cell(row)))) for row in sample), default=0)
        return min(max(widest, cell_len(column.label) + 1), WIDEST)

    def on_resize(self) -> None:
        """Fit the columns to the new width."""
        self._measure()
        self._reveal()

    def notify_style_update(self) -> None:
        """Redraw in the new theme."""
        super().notify_style_update()
        self.refresh()

    # Drawing

    def render_line(self, y: int) -> Strip:
        """The heading, then the rows from the scroll position on."""
        if y == 0:
            head = self.get_component_rich_style("lines--head")
            return self.strip(self._head(), head, offset=self.scroll_offset.x)
        index = self.scroll_offset.y + y - 1
        if index >= len(self.rows):
            pieces = [(f" {self.empty}", "muted")] if not self.rows and y == 1 else []
            return self.strip(pieces, self.rich_style)
        return self.strip(self._pieces(self.rows[index]), self._base(index), offset=self.scroll_offset.x)

    def _base(self, index: int) -> Style:
        if index != self.cursor:
            return self.rich_style
        return self.get_component_rich_style("lines--cursor" if self.has_focus else "lines--cursor-blurred")

    def _head(self) -> list[Piece]:
        by, down = self.sorted_by or ("", False)
        pieces: list[Piece] = [(" " * GAP, "")]
        for column, width in self._layout:
            arrow = ("▾" if down else "▴") if column.key == by else ""
            label = column.label
            text = fit(arrow + label if column.right else label + arrow, width, right=column.right)
            pieces.append((text + " " * GAP, ""))
        return pieces

    def _pieces(self, row: Any) -> list[Piece]:
        pieces: list[Piece] = [(" " * GAP, "")]
        for column, width in self._layout:
            cell = column.cell(row)
            text, tone = (cell, "") if isinstance(cell, str) else cell
            pieces.append((fit(text, width, right=column.right) + " " * GAP, tone))
        return pieces

    # The cursor

    def watch_cursor(self, old: int, new: int) -> None:
        """Redraw the two rows, keep the new one in sight and tell who listens."""
        if not self.is_mounted:
            return
        self._reveal()
        self.refresh_rows([old, new], below=1)
        self.post_message(self.Highlighted(self, self.row))

    def watch_has_focus(self, _has_focus: bool) -> None:
        """The cursor looks different in the widget that has the keyboard."""
        super().watch_has_focus(_has_focus)
        self.refresh_rows([self.cursor], below=1)

    def _reveal(self) -> None:
        height = max(1, self.scrollable_content_region.height - 1)
        top = self.scroll_offset.y
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, force=True)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False, force=True)

    def move(self, steps: int) -> None:
        """Move the cursor by so many rows, stopping at the ends."""
        self.cursor = max(0, min(self.cursor + steps, len(self.rows) - 1))

    def action_up(self) -> None:
        """One row up."""
        self.move(-1)

    def action_down(self) -> None:
        """One row down."""
        self.move(1)

    def action_page_up(self) -> None:
        """One screenful up."""
        self.move(2 - self.size.height)

    def action_page_down(self) -> None:
        """One screenful down."""
        self.move(self.size.height - 2)

    def action_first(self) -> None:
        """To the first row."""
        self.move(-len(self.rows))

    def action_last(self) -> None:
        """To the last row."""
        self.move(len(self.rows))

    def action_left(self) -> None:
        """Scroll a wide grid to the left."""
        self.scroll_relative(x=-8, animate=False)

    def action_right(self) -> None:
        """Scroll a wide grid to the right."""
        self.scroll_relative(x=8, animate=False)

    def action_select(self) -> None:
        """Open the row under the cursor."""
        if self.row is not None:
            self.post_message(self.Selected(self, self.row))

    # The mouse

    def on_click(self, event: events.Click) -> None:
        """A click moves the cursor, a second one opens; on the heading it names a column."""
        at = event.get_content_offset(self)
        if at is None:
            return
        if at.y == 0:
            self._click_head(at.x + self.scroll_offset.x)
            return
        index = self.scroll_offset.y + at.y - 1
        if index >= len(self.rows):
            return
        self.cursor = index
        if event.chain == 2:
            self.action_select()

    def _click_head(self, x: int) -> None:
        x -= GAP
        for column, width in self._layout:
            if x < width + GAP:
                self.post_message(self.HeadClicked(self, column.key))
                return
            x -= width + GAP


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else cell[0]
