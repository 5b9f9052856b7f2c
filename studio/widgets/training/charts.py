"""All curves of a training, and of those it is compared with, as a field of small charts; one can have all the room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from textual import events
from textual.geometry import Size
from textual.reactive import reactive
from textual.strip import Strip

from studio.actions import bindings
from studio.widgets.braille import Axes, Line, draw, legend
from studio.widgets.cells import fit
from studio.widgets.lines import Lines, Piece
from train.curves import CHARTS, Chart, Curves, bounds

NARROWEST, TALLEST, SHORTEST = 36, 10, 7
"""Cells a chart is wide at least, and rows it is high at most and at least."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The curves of one run, under the name they have where several runs are shown."""

    name: str
    curves: Curves


class Charts(Lines):
    """Small charts side by side. The cursor is on one of them; `alone` is that one with all the room."""

    BINDINGS = bindings("charts")

    cursor: reactive[int] = reactive(0, init=False)
    alone: reactive[bool] = reactive(False, init=False)

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.empty = "No training has been started here yet."
        self._runs: Sequence[Shown] = ()
        self.charts: list[Chart] = []
        self._rows: list[list[Piece]] = []
        self._across = 1
        self._height = SHORTEST

    def show(self, runs: Sequence[Shown]) -> None:
        """Show the curves of these runs, the first one's charts first."""
        self._runs = runs
        keys = {chart.key for run in runs for chart in run.curves.charts}
        at = self.chart.key if self.chart else ""
        self.charts = [chart for chart in CHARTS if chart.key in keys]
        self.cursor = next((n for n, chart in enumerate(self.charts) if chart.key == at), 0)
        self._arrange()

    @property
    def chart(self) -> Chart | None:
        """The chart under the cursor."""
        return self.charts[self.cursor] if 0 <= self.cursor < len(self.charts) else None

    def copy_text(self) -> str:
        """The points of the chart under the cursor: run, curve, step, value."""
        if self.chart is None:
            return ""
        rows = (
            f"{run.name}\t{name}\t{step:g}\t{value:g}"
            for run in self._runs
            for name, points in run.curves.of(self.chart).items()
            for step, value in points
        )
        return "\n".join(rows)

    # Arranging

    def _arrange(self) -> None:
        """Draw everything anew for this width and height."""
        size = self.scrollable_content_region.size
        if size.width < AXES_ROOM or not size.height:
            return
        shown = self.charts if not self.alone else [self.chart] if self.chart else []
        self._across = 1 if self.alone else max(1, min(len(shown), (size.width - 1) // NARROWEST))
        lines = -(-len(shown) // self._across) if shown else 1
        self._height = size.height if self.alone else max(SHORTEST, min(TALLEST, size.height // lines))
        width = (size.width - 1) // self._across
        self._rows = []
        for begin in range(0, len(shown), self._across):
            beside = [self._drawn(chart, width - 1, self._height - 1) for chart in shown[begin : begin + self._across]]
            self._rows += [[piece for part in row for piece in (*part, (" ", ""))] for row in zip(*beside, strict=True)]
            self._rows.append([])
        self.virtual_size = Size(size.width, len(self._rows))
        self.refresh()

    def _drawn(self, chart: Chart, width: int, height: int) -> list[list[Piece]]:
        """A chart as rows of exactly so many cells: title, legend, dots, steps."""
        lines = self._lines(chart)
        axes = Axes(*bounds([line.points for line in lines], is_share=chart.is_share))
        here = chart is self.chart
        mark = "▸ " if here else "  "
        rows: list[list[Piece]] = [[(fit(mark + chart.title, width), "strong" if here else "")]]
        if self.alone:
            rows += [[(f"  {line}", "muted")] for line in wrap(chart.about, width - 2)]
        rows += [[("  ", ""), *legend(lines, width - 2)]]
        rows += draw(lines, axes, width, height - len(rows))
        return [_filled(row, width) for row in rows]

    def _lines(self, chart: Chart) -> list[Line]:
        """The lines of all runs: a curve has a look of its own, or, where runs are compared, a run has."""
        several = len(self._runs) > 1
        found = []
        for number, run in enumerate(self._runs):
            curves = run.curves.of(chart)
            if several:  # of several runs only the chart's first curve, or nothing could be told apart
                curves = dict(list(curves.items())[:1])
            for place, (name, points) in enumerate(curves.items()):
                title = f"{run.name}" if several else name
                found.append(Line(title, points, number if several else place))
        return found

    def on_resize(self) -> None:
        """Another size has room for others."""
        self._arrange()

    def notify_style_update(self) -> None:
        """Redraw in the new theme."""
        super().notify_style_update()
        self.refresh()

    def watch_cursor(self) -> None:
        """Mark the chart, and keep it in sight."""
        self._arrange()
        if not self.alone:
            top = self.cursor // self._across * self._height
            if top < self.scroll_offset.y or top + self._height > self.scroll_offset.y + self.size.height:
                self.scroll_to(y=top, animate=False, force=True)

    def watch_alone(self) -> None:
        """One chart or all of them."""
        self._arrange()
        if self.alone:
            self.scroll_to(y=0, animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        """A row of whatever charts are there."""
        index = self.scroll_offset.y + y
        if not self.charts:
            return self.strip([(f" {self.empty}", "muted")] if y == 0 else [], self.rich_style)
        pieces = self._rows[index] if index < len(self._rows) else []
        return self.strip([(" ", ""), *pieces], self.rich_style)

    # Moving

    def _move(self, by: int) -> None:
        if 0 <= self.cursor + by < len(self.charts):
            self.cursor += by

    def action_left(self) -> None:
        """To the chart before."""
        self._move(-1)

    def action_right(self) -> None:
        """To the next chart."""
        self._move(1)

    def action_up(self) -> None:
        """To the chart above."""
        self._move(-1 if self.alone else -self._across)

    def action_down(self) -> None:
        """To the chart below."""
        self._move(1 if self.alone else self._across)

    def action_alone(self) -> None:
        """The chart under the cursor with all the room, or all of them."""
        self.alone = not self.alone

    def on_click(self, event: events.Click) -> None:
        """A click chooses a chart, a second one gives it the room."""
        at = event.get_content_offset(self)
        if at is None or self.alone:
            return
        width = max(1, (self.scrollable_content_region.width - 1) // self._across)
        row = (at.y + self.scroll_offset.y) // self._height
        chosen = row * self._across + min(self._across - 1, at.x // width)
        if chosen < len(self.charts):
            self.cursor = chosen
            if event.chain == 2:
                self.action_alone()


AXES_ROOM = 12
"""Cells without which there is nothing to draw in."""


def _filled(row: list[Piece], width: int) -> list[Piece]:
    """A row with spaces up to a width."""
    used = sum(len(text) for text, _ in row)
    return [*row, (" " * max(0, width - used), "")]
