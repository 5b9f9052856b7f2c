"""A reply while it is being written, followed only as long as somebody can see it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from textual import work

from studio.stage_record import live_tail
from studio.widgets.source import Source, plain

LOOK_S = 0.25
"""How often the file is looked at; the engine writes it five times a second at most."""

Find = Callable[[], Path | None]


class Streaming(Source):
    """Shows the end of the file that `follow` finds, and stays at its end unless scrolled away from it."""

    def __init__(self, *, empty: str, size: int, id: str | None = None) -> None:
        super().__init__(wrap=True, id=id)
        self._empty = empty
        self._longest = size
        self._find: Find | None = None
        self._seen: tuple[Path, int, int] | None = None
        self._looking = False

    def on_mount(self) -> None:
        """Look for news of the file."""
        self.set_interval(LOOK_S, self.look)

    def follow(self, find: Find | None) -> None:
        """Show what this finds from now on; it is called in a thread. None shows nothing."""
        self._find, self._seen = find, None
        self.show(self._empty if find else "")
        self.look()

    def look(self) -> None:
        """Read the file if it has changed and this widget can be seen."""
        seen = self.screen.is_current and all(node.display for node in self.ancestors_with_self)
        if self._find is not None and seen and not self._looking:
            self._looking = True
            self._read(self._find)

    @work
    async def _read(self, find: Find) -> None:
        try:
            news = await asyncio.to_thread(_news, find, self._seen, self._longest)
        finally:
            self._looking = False
        if news is not None and find is self._find:
            self._seen, text = news
            at_end = self.is_vertical_scroll_end
            self.text = text
            self._set_lines(plain(text))
            if at_end:
                self.scroll_to(y=self.virtual_size.height, animate=False, force=True)


def _news(find: Find, seen: tuple[Path, int, int] | None, size: int) -> tuple[tuple[Path, int, int], str] | None:
    try:
        file = find()
        if file is None:
            return None
        facts = file.stat()
        now = file, facts.st_mtime_ns, facts.st_size
        return None if now == seen else (now, live_tail(file, size))
    except OSError:  # the run's folder is being made, or was taken away
        return None
