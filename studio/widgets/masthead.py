"""The top line of every screen: where you are, where you can go, what is running."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.geometry import clamp
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from studio.screens import MODES
from studio.widgets.cells import cut, one_line


class Masthead(Widget):
    """Modes with their keys, the current one marked; on the right a note (workspace, what is running)."""

    COMPONENT_CLASSES = {"masthead--mode", "masthead--here", "masthead--note"}

    note = reactive("")

    class Chosen(Message):
        """A mode was clicked."""

        def __init__(self, mode: str) -> None:
            super().__init__()
            self.mode = mode

    def __init__(self, here: str) -> None:
        super().__init__()
        self.here = here

    def render_line(self, y: int) -> Strip:
        """The one line there is; the note gives way to the modes, the other modes' names to the current one's."""
        width = self.size.width
        labels = self._labels(width)
        segments = [
            Segment(text, self.get_component_rich_style("masthead--here" if name == self.here else "masthead--mode"))
            for name, text in labels
        ]
        used = sum(cell_len(text) for _, text in labels)
        note = cut(one_line(self.note), clamp(width - used - 1, 0, width))
        segments.append(Segment(" " * max(0, width - used - cell_len(note) - 1), self.rich_style))
        segments.append(Segment(note + " ", self.get_component_rich_style("masthead--note")))
        return Strip(segments).crop_extend(0, width, self.rich_style)

    def _labels(self, width: int) -> list[tuple[str, str]]:
        long = [(mode.name, f" {mode.key} {mode.title} ") for mode in MODES]
        if sum(len(text) for _, text in long) + 20 <= width:
            return long
        return [
            (mode.name, f" {mode.key} {mode.title} " if mode.name == self.here else f" {mode.key} ") for mode in MODES
        ]

    def on_click(self, event: events.Click) -> None:
        """A click on a mode goes there."""
        x = event.x
        for name, text in self._labels(self.size.width):
            if x < cell_len(text):
                self.post_message(self.Chosen(name))
                return
            x -= cell_len(text)
