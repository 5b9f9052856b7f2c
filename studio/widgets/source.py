"""Read-only text: code, SQL, JSON, diffs and documents, highlighted where that helps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from rich.cells import cell_len, chop_cells
from textual import work
from textual.geometry import Size
from textual.strip import Strip

from studio.widgets.cells import one_line
from studio.widgets.lines import Lines, Piece

INLINE = 6_000
"""Texts up to this many characters are highlighted at once (a few ms); longer ones in a thread, shown plain first."""
LONGEST = 400_000
"""Longer texts stay plain: highlighting them would take seconds and nobody reads them by colour."""


def highlight(text: str, language: str) -> list[list[Piece]]:
    """The lines of a text as pieces with tones. `language` is a Pygments lexer name; "" and unknown ones are plain."""
    if not language or len(text) > LONGEST:
        return plain(text)
    from pygments.lexers import get_lexer_by_name
    from pygments.token import Token
    from pygments.util import ClassNotFound

    tones = {
        Token.Comment: "comment",
        Token.Keyword: "keyword",
        Token.Operator.Word: "keyword",
        Token.Name.Function: "name",
        Token.Name.Class: "name",
        Token.Name.Tag: "name",
        Token.Name.Decorator: "accent",
        Token.Name.Builtin: "accent",
        Token.String: "string",
        Token.Number: "number",
        Token.Generic.Inserted: "added",
        Token.Generic.Deleted: "removed",
        Token.Generic.Heading: "strong",
        Token.Generic.Subheading: "accent",
    }
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return plain(text)
    lines: list[list[Piece]] = [[]]
    for kind, value in lexer.get_tokens("".join(f"{line}\n" for line in _clean(text))):
        tone, token = "", kind
        while token is not None and not tone:
            tone, token = tones.get(token, ""), token.parent
        first, *others = value.split("\n")
        lines[-1].append((first, tone))
        lines.extend([(other, tone)] for other in others)
    return lines[:-1]  # after the last line end


def plain(text: str) -> list[list[Piece]]:
    """The lines of a text without tones."""
    return [[(line, "")] for line in _clean(text)]


def _clean(text: str) -> list[str]:
    return [one_line(line.expandtabs(4)) for line in text.splitlines()]


class Source(Lines):
    """Text to read, with line numbers if asked for. `wrap` folds long lines instead of scrolling sideways."""

    def __init__(self, *, numbered: bool = False, wrap: bool = False, id: str | None = None, classes: str = "") -> None:
        super().__init__(id=id, classes=f"{classes} -wrap" if wrap else classes)
        self.numbered = numbered
        self.wrap = wrap
        self.text = ""
        self.marked: int | None = None
        self._lines: list[list[Piece]] = []
        self._rows: list[tuple[int | None, list[Piece]]] = []

    def show(self, text: str, language: str = "", *, line: int | None = None) -> None:
        """Show a text, scrolled to line number `line` (from 1), which is then marked."""
        if text != self.text or not self._lines:
            self.text = text
            long = len(text) > INLINE and bool(language)
            self._set_lines(plain(text) if long else highlight(text, language))
            if long:
                self._highlight_later(text, language)
        self.marked = line
        self.scroll_to(x=0, y=max(0, (line or 1) - 3), animate=False, force=True)
        self.refresh()

    def show_lines(self, lines: list[list[Piece]]) -> None:
        """Show lines whose tones are already known."""
        self.text = "\n".join("".join(text for text, _ in line) for line in lines)
        self.marked = None
        self._set_lines(lines)
        self.scroll_to(x=0, y=0, animate=False, force=True)

    def copy_text(self) -> str:
        """All of it, as it was given."""
        return self.text

    @work(exclusive=True, group="highlight")
    async def _highlight_later(self, text: str, language: str) -> None:
        lines = await asyncio.to_thread(highlight, text, language)
        if text == self.text:
            self._set_lines(lines)

    def _set_lines(self, lines: list[list[Piece]]) -> None:
        self._lines = lines
        self._fold()

    def _fold(self) -> None:
        """Work out the rows of the screen from the lines of the text."""
        gutter = len(str(len(self._lines))) + 2 if self.numbered else 1
        room = self.scrollable_content_region.width - gutter
        if self.wrap and room > 0:
            self._rows = [row for number, line in enumerate(self._lines, 1) for row in _folded(number, line, room)]
            width = room + gutter
        else:
            self._rows = list(enumerate(self._lines, 1))
            width = gutter + max((sum(cell_len(text) for text, _ in line) for line in self._lines), default=0)
        self.virtual_size = Size(width, len(self._rows))
        self.refresh()

    def on_resize(self) -> None:
        """Fold again for the new width."""
        self._fold()

    def notify_style_update(self) -> None:
        """Redraw in the new theme."""
        super().notify_style_update()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One row: its number, then its pieces."""
        index = self.scroll_offset.y + y
        if index >= len(self._rows):
            return self.strip([], self.rich_style)
        number, pieces = self._rows[index]
        if self.numbered:
            width = len(str(len(self._lines)))
            pieces = [(f"{'' if number is None else number:>{width}}  ", "muted"), *pieces]
        else:
            pieces = [(" ", ""), *pieces]
        base = self.rich_style
        if number is not None and number == self.marked:
            base = self.get_component_rich_style("lines--cursor-blurred")
        return self.strip(pieces, base, offset=self.scroll_offset.x)


def _folded(number: int, line: list[Piece], room: int) -> Iterator[tuple[int | None, list[Piece]]]:
    """A line in rows of at most `room` cells, broken at spaces where there are any; only the first has the number."""
    row: list[Piece] = []
    used = 0
    first = True
    for text, tone in line:
        part = ""
        for word in _words(text, room):
            if used and used + cell_len(word) > room:
                yield (number if first else None), [*row, (part, tone)]
                row, part, used, first = [], "", 0, False
            kept = word if used or first else word.lstrip(" ")
            part += kept
            used += cell_len(kept)
        row.append((part, tone))
    yield (number if first else None), row


def _words(text: str, room: int) -> Iterator[str]:
    """The text in words, each with the space before it; words longer than `room` cells in pieces."""
    start = 0
    while start < len(text):
        end = text.find(" ", start + 1)
        word = text[start : end if end > 0 else len(text)]
        start += len(word)
        yield from chop_cells(word, room) if cell_len(word) > room else (word,)
