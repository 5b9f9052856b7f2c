"""A set as points on a plane, drawn in cells: move from point to point, zoom in, follow one concept.

Every point has a cell of its own where there is room: points that would share one stand beside each other, so that a
dense group looks as large as it is. Which is why a place on the map says who is near whom, and not how far.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from studio.actions import bindings
from studio.widgets.grid import Grid
from studio.widgets.lines import Lines, Piece

GLYPHS = "●■▲◆▼○□△◇▽ABCDEFGHIJKLMNOPQRSTUVWXYZ"
COLOURS = 8
"""A concept's glyph and colour come round at different times: 36 glyphs, and 72 looks, before one is used again."""
ASIDE = "×"
"""The glyph of an environment that was dropped or merged."""
STEP, CLOSEST = 1.5, 60.0
"""How much one zoom enlarges, and the most that all of them do."""
REACH = 4
"""How many cells, at most, a point stands from its place when that is taken."""

Point = tuple[float, float]


def look(concept: int) -> tuple[str, str]:
    """A concept's glyph, and the name of its colour among the component classes."""
    return GLYPHS[concept % len(GLYPHS)], f"concept--{concept % COLOURS}"


class ConceptMap(Lines):
    """Points between −1 and 1, each in the look of its concept, with a cursor on one of them."""

    BINDINGS = bindings("map")
    COMPONENT_CLASSES: ClassVar[set[str]] = {*(f"concept--{number}" for number in range(COLOURS))}

    cursor: reactive[int] = reactive(0, repaint=False)
    zoom: reactive[float] = reactive(1.0, init=False)
    spotlight: reactive[int | None] = reactive(None, init=False)
    """The concept whose points stand out; None: that of the point under the cursor, among all in their colours."""

    class Moved(Message):
        """The cursor is on another point."""

        def __init__(self, point: int) -> None:
            super().__init__()
            self.point = point

    class Chosen(Message):
        """Enter was pressed on a point, or it was clicked twice."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.empty: Sequence[Sequence[Piece]] = ()
        self._points: Sequence[Point] = ()
        self._labels: Sequence[int] = ()
        self._aside: Collection[int] = ()
        self._centre: Point = (0.0, 0.0)
        self._cells: dict[tuple[int, int], int] = {}
        self._places: dict[int, tuple[int, int]] = {}
        self._hidden = 0
        self._styles: dict[str, Style] = {}

    # What is shown

    def show(self, points: Sequence[Point], *, cursor: int = 0) -> None:
        """Show other points, all of them, with the cursor on one."""
        self._points, self._labels, self._aside = points, (0,) * len(points), ()
        self._centre = (0.0, 0.0)
        self.zoom = 1.0
        self.spotlight = None
        self._place()
        self.cursor = cursor
        self.refresh()

    def colour(self, labels: Sequence[int], aside: Collection[int] = ()) -> None:
        """Say which concept each point is of, and which points are those of environments set aside."""
        self._labels, self._aside = labels, aside
        self.refresh()

    @property
    def concept(self) -> int | None:
        """The concept of the point under the cursor."""
        return self._labels[self.cursor] if self.cursor < len(self._labels) else None

    # Layout

    def _place(self) -> None:
        """Give each point that is in sight a cell, in the order of the points."""
        self._cells, self._places, self._hidden = {}, {}, 0
        width, height = self.size
        for number in range(len(self._points)):
            x, y = self._cell(number)
            if not (0 <= x < width and 0 <= y < height):
                continue
            for dx, dy in OFFSETS:
                cell = (x + dx, y + dy)
                if cell not in self._cells and 0 <= cell[0] < width and 0 <= cell[1] < height:
                    self._cells[cell] = number
                    self._places[number] = cell
                    break
            else:
                self._hidden += 1

    def _cell(self, number: int) -> tuple[int, int]:
        """Where a point belongs, in cells; also outside the widget."""
        x, y = self._points[number]
        width, height = self.size
        return (
            round((width - 1) / 2 * (1 + (x - self._centre[0]) * self.zoom * MARGIN)),
            round((height - 1) / 2 * (1 - (y - self._centre[1]) * self.zoom * MARGIN)),
        )

    def on_resize(self) -> None:
        """Lay out again for the new size."""
        self._place()
        self.refresh()

    def notify_style_update(self) -> None:
        """Redraw in the new theme."""
        super().notify_style_update()
        self._styles.clear()
        self.refresh()

    # Drawing

    def render_line(self, y: int) -> Strip:
        """One row of cells."""
        if not self._points:
            return self.strip([(" ", ""), *(self.empty[y] if y < len(self.empty) else ())], self.rich_style)
        if self._hidden and y == self.size.height - 1:
            return self.strip([(f" {self._hidden:,} more are under these: + zooms in", "warn")], self.rich_style)
        segments = list(self._segments(y))
        return Strip(segments).crop_extend(0, self.size.width, self.rich_style)

    def _segments(self, y: int) -> Iterator[Segment]:
        at = 0
        for x in range(self.size.width):
            number = self._cells.get((x, y))
            if number is not None:
                yield Segment(" " * (x - at), self._ink(""))
                yield Segment(self._glyph(number), self._style(number))
                at = x + 1

    def _glyph(self, number: int) -> str:
        return ASIDE if number in self._aside else look(self._labels[number])[0]

    def _style(self, number: int) -> Style:
        label = self._labels[number]
        lit = label == (self.concept if self.spotlight is None else self.spotlight)
        dim = number in self._aside or (self.spotlight is not None and not lit)
        style = self._ink("tone--muted" if dim else look(label)[1])
        if number == self.cursor:
            return style + Style(reverse=True, bold=True)
        return style + Style(bold=True) if lit else style

    def _ink(self, name: str) -> Style:
        """The style of a component class on this widget's background, worked out once a theme."""
        if name not in self._styles:
            own = self.get_component_rich_style(name, partial=True) if name else Style.null()
            self._styles[name] = self.rich_style + own
        return self._styles[name]

    # The cursor

    def validate_cursor(self, cursor: int) -> int:
        """Stay among the points."""
        return max(0, min(cursor, len(self._points) - 1))

    def watch_cursor(self) -> None:
        """Keep the point in sight and tell who listens."""
        if not self.is_mounted or not self._points:
            return
        if self.cursor not in self._places:
            self._centre = self._points[self.cursor]
            self._place()
        self.refresh()
        self.post_message(self.Moved(self.cursor))

    def watch_zoom(self) -> None:
        """Zoom about the cursor; as far out as it goes, everything is in sight."""
        self._centre = (0.0, 0.0) if self.zoom == 1 or not self._points else self._points[self.cursor]
        self._place()
        self.refresh()

    def watch_spotlight(self) -> None:
        """Redraw in other colours."""
        self.refresh()

    def _move(self, dx: int, dy: int) -> None:
        """To the nearest point in a direction; a cell is about twice as high as wide."""
        here = self._places.get(self.cursor)
        if here is None:
            return
        best: tuple[float, int] | None = None
        for number, (x, y) in self._places.items():
            right, down = x - here[0], 2 * (y - here[1])
            ahead, beside = (right * dx, abs(down)) if dx else (down * dy, abs(right))
            if ahead > 0 and beside <= 2 * ahead:
                found = ahead + 2 * beside, number
                best = found if best is None else min(best, found)
        if best is not None:
            self.cursor = best[1]

    def action_left(self) -> None:
        """To the next point on the left."""
        self._move(-1, 0)

    def action_right(self) -> None:
        """To the next point on the right."""
        self._move(1, 0)

    def action_up(self) -> None:
        """To the next point above."""
        self._move(0, -1)

    def action_down(self) -> None:
        """To the next point below."""
        self._move(0, 1)

    def action_zoom_in(self) -> None:
        """Nearer to the cursor."""
        self.zoom = min(self.zoom * STEP, CLOSEST)

    def action_zoom_out(self) -> None:
        """Further away."""
        self.zoom = max(self.zoom / STEP, 1.0)

    def action_whole(self) -> None:
        """Everything in sight again, in its colours."""
        self.zoom = 1.0
        self.spotlight = None

    def action_choose(self) -> None:
        """What is under the cursor is wanted."""
        if self._points:
            self.post_message(self.Chosen())

    def on_click(self, event: events.Click) -> None:
        """A click goes to the nearest point, a second one chooses it."""
        at = event.get_content_offset(self)
        if at is None or not self._places:
            return
        self.cursor = min(
            self._places, key=lambda n: abs(self._places[n][0] - at.x) + 2 * abs(self._places[n][1] - at.y)
        )
        if event.chain == 2:
            self.action_choose()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel zooms."""
        event.stop()
        event.prevent_default()
        self.action_zoom_in()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel zooms."""
        event.stop()
        event.prevent_default()
        self.action_zoom_out()


class ConceptList(Grid):
    """Concepts, each with its glyph in its colour: a cell's tone may be a colour that `look` gives."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {*(f"concept--{number}" for number in range(COLOURS))}

    def tone(self, name: str) -> Style:
        """The style of a tone or of a concept's colour."""
        if name.startswith("concept--"):
            return self.get_component_rich_style(name, partial=True)
        return super().tone(name)


MARGIN = 0.96
"""The share of the width and height that the points take when all are in sight."""
OFFSETS = sorted(
    ((dx, dy) for dx in range(-2 * REACH, 2 * REACH + 1) for dy in range(-REACH, REACH + 1)),
    key=lambda step: (step[0] ** 2 + (2 * step[1]) ** 2, step),
)
"""Where a point may stand instead of its own cell, nearest first."""
