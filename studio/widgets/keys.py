"""The bottom line of every screen: the keys that work now, as many as fit."""

from __future__ import annotations

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.widgets import Footer
from textual.widgets._footer import FooterKey

ALWAYS = ("help", "command_palette")
"""Actions whose keys are always shown, last: they lead to all the others."""


class Keys(Footer):
    """A footer that leaves out whole keys where the line is short, the last ones first, but never those of ALWAYS."""

    def __init__(self) -> None:
        super().__init__(compact=True, show_command_palette=False)

    def compose(self) -> ComposeResult:
        """The keys that fit, then those that are always there."""
        keys = [key for key in super().compose() if isinstance(key, FooterKey)]
        always = [key for key in keys if key.action in ALWAYS]
        room = self.app.size.width - sum(map(_width, always))
        for key in keys:
            if key.action not in ALWAYS:
                room -= _width(key)
                if room < 0:
                    break
                yield key
        yield from always

    def on_resize(self) -> None:
        """Another width has room for others."""
        self.call_after_refresh(self.recompose)


def _width(key: FooterKey) -> int:
    """Cells of a compact key: key, space, label, and the space after it."""
    return cell_len(key.key_display) + 1 + cell_len(key.description) + 1
