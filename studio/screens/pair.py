"""What the screens about two environments share: their texts side by side, or one above the other in little room."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual.containers import Horizontal
from textual.widget import Widget

from studio.screens.frame import Framed
from studio.widgets.lines import Piece
from studio.widgets.source import Source

if TYPE_CHECKING:
    from curation.landscape import Landscape


class PairScreen(Framed):
    """Two environments of a landscape, as they are compared: the own name of each is masked in its text."""

    MODE = "concepts"

    def __init__(self, landscape: Landscape) -> None:
        super().__init__()
        self._texts = {item.name: item.text for item in landscape.survey.items}

    def sides(self) -> Iterable[Widget]:
        """Where the two are shown."""
        with Horizontal(id="pair"):
            yield Source(wrap=True, id="left")
            yield Source(wrap=True, id="right")

    def show_pair(self, left: str, right: str) -> None:
        """Show two environments, each with what only it says marked."""
        for side, name, other in (("left", left, right), ("right", right, left)):
            self.query_one(f"#{side}", Source).show_lines(self._lines(name, other))

    def _lines(self, name: str, other: str) -> list[list[Piece]]:
        theirs = {word.strip(PUNCTUATION).lower() for word in self._texts.get(other, "").split()}
        lines: list[list[Piece]] = [[(name, "strong")], []]
        for line in self._texts[name].lstrip(f"{PUNCTUATION} ").splitlines():  # what masking a name leaves behind
            pieces: list[Piece] = []
            for word in line.split():
                plain = word.strip(PUNCTUATION).lower()
                pieces.append((f"{word} ", "" if plain in theirs or not plain else "accent"))
            lines.append(pieces)
        return lines


PUNCTUATION = ".,;:!?()[]'\"“”’"
