"""The base of widgets that draw their own lines, and the tones those lines are drawn in.

A *tone* is the meaning of a piece of text (`ok`, `fail`, `muted`, `keyword` …); themes give it a colour. State is
always also a glyph or a word, so that nothing is said by colour alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.geometry import Region
from textual.scroll_view import ScrollView
from textual.strip import Strip

from studio.widgets.cells import one_line

TONES = (
    "muted",
    "strong",
    "accent",
    "ok",
    "warn",
    "fail",
    "added",
    "removed",
    "changed",
    "keyword",
    "name",
    "string",
    "number",
    "comment",
)
"""Every tone; its colour is the rule `.tone--NAME` in styles.tcss."""

Piece = tuple[str, str]
"""Text and its tone ("" is the plain text colour)."""


STYLES = {
    "strong": "bold",
    "muted": "$quiet",
    "accent": "$text-accent",
    "ok": "$text-success",
    "warn": "$text-warning",
    "fail": "bold $text-error",
}
"""Tones as styles of a line of content."""


def as_content(pieces: Iterable[Piece]) -> Content:
    """Pieces as one line for a widget that takes content, such as `Static`."""
    return Content.assemble(*((one_line(text), STYLES.get(tone, "")) for text, tone in pieces))


class Lines(ScrollView, can_focus=True):
    """A scrolling widget whose visible lines are drawn on demand, however many there are."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"tone--{tone}" for tone in TONES),
        "lines--cursor",
        "lines--cursor-blurred",
        "lines--head",
    }

    def tone(self, name: str) -> Style:
        """The style of a tone, without a background."""
        return self.get_component_rich_style(f"tone--{name}", partial=True) if name else Style.null()

    def strip(self, pieces: Iterable[Piece], base: Style, *, offset: int = 0) -> Strip:
        """Pieces as one line of this widget's width, `offset` cells scrolled to the left."""
        segments = [Segment(text, base + self.tone(tone)) for text, tone in pieces]
        width = self.scrollable_content_region.width
        return Strip(segments).crop_extend(offset, offset + width, base)

    def refresh_rows(self, rows: Iterable[int], *, below: int = 0) -> None:
        """Redraw some lines only (`below` is how many fixed lines are above line 0)."""
        height, width = self.size.height, self.size.width
        top = self.scroll_offset.y
        regions = [Region(0, row - top + below, width, 1) for row in rows if 0 <= row - top + below < height]
        if regions:
            self.refresh(*regions)
