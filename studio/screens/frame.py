"""What every screen has: the top line, a footer of keys, and help for itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.screen import Screen
from textual.widget import Widget

from studio.widgets.keys import Keys
from studio.widgets.masthead import Masthead

if TYPE_CHECKING:
    from studio.app import Studio


class Framed(Screen[None]):
    """A screen of the studio. `MODE` is the mode it belongs to, `ABOUT` what `?` says about it.

    `TYPED_IN` screens are there to be typed into: the digits that choose a mode elsewhere do nothing on them.
    """

    MODE: ClassVar[str] = ""
    ABOUT: ClassVar[str] = ""
    TYPED_IN: ClassVar[bool] = False

    @property
    def studio(self) -> Studio:
        """The app."""
        return cast("Studio", self.app)

    def body(self) -> Iterable[Widget]:
        """The widgets between the top line and the footer."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        """Top line, body, footer."""
        yield Masthead(self.MODE)
        yield from self.body()
        yield Keys()

    def on_mount(self) -> None:
        """Keep the top line's note true."""
        self.watch(self.studio, "note", self._show_note)

    def _show_note(self, note: str) -> None:
        self.query_one(Masthead).note = note
