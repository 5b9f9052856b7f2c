"""A threshold to drag, over the curve of what it decides."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

from textual import events
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from studio.widgets.lines import Lines

BARS = " ▁▂▃▄▅▆▇█"
LEAST, MOST = 0.05, 0.95
"""The thresholds at the two ends."""


class ThresholdSlider(Lines, can_focus=False):
    """One line: the threshold, how many concepts each one gives as a row of bars (by their logarithm), and this one."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"slider--here"}

    value: reactive[float] = reactive(0.5, repaint=False)

    class Changed(Message):
        """The threshold is another one."""

        def __init__(self, value: float) -> None:
            super().__init__()
            self.value = value

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._count: Callable[[float], int] | None = None
        self._usual = 0.5

    def show(self, count: Callable[[float], int], *, usual: float, value: float) -> None:
        """Show the curve of a count over thresholds, with the usual one marked."""
        self._count, self._usual = count, usual
        self.set_reactive(ThresholdSlider.value, value)
        self.refresh()

    def validate_value(self, value: float) -> float:
        """Hundredths, between the two ends."""
        return round(max(LEAST, min(value, MOST)), 2)

    def watch_value(self) -> None:
        """Redraw and tell who listens."""
        if self.is_mounted and self._count is not None:
            self.refresh()
            self.post_message(self.Changed(self.value))

    def render_line(self, y: int) -> Strip:
        """The one line there is."""
        if self._count is None:
            return self.strip([], self.rich_style)
        room = self._room
        most = max(1, self._count(MOST))
        here, usual = self._column(self.value), self._column(self._usual)
        pieces = [(self._label, "strong")]
        for column in range(room):
            share = math.log1p(self._count(self._threshold(column))) / math.log1p(most)
            bar = BARS[max(1, round(share * (len(BARS) - 1)))]
            pieces.append(("┃", "changed") if column == here else (bar, "accent" if column == usual else "muted"))
        count = self._count(self.value)
        pieces.append((f" {count:,} concept{'' if count == 1 else 's'}", "strong"))
        return self.strip(pieces, self.rich_style)

    @property
    def _label(self) -> str:
        return f" alike from {self.value:.2f} "

    @property
    def _room(self) -> int:
        """Cells of the curve."""
        return max(1, min(self.size.width - len(self._label) - 17, 90))

    def _threshold(self, column: int) -> float:
        return LEAST + (MOST - LEAST) * column / max(1, self._room - 1)

    def _column(self, threshold: float) -> int:
        return round((max(LEAST, min(threshold, MOST)) - LEAST) / (MOST - LEAST) * (self._room - 1))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Take hold of it."""
        self.capture_mouse()
        self._drag(event.x)

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Follow the mouse while it is held."""
        if self.app.mouse_captured is self:
            self._drag(event.x)

    def on_mouse_up(self) -> None:
        """Let go."""
        self.release_mouse()

    def _drag(self, x: int) -> None:
        self.value = self._threshold(max(0, min(x - len(self._label), self._room - 1)))
