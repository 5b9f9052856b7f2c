"""What is shown while the workspace cannot be used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual.containers import VerticalScroll
from textual.widget import Widget
from textual.widgets import Static

from studio.screens.frame import Framed

if TYPE_CHECKING:
    from pipeline.workspace import Workspace


class ProblemScreen(Framed):
    """Says what is wrong with the workspace and what to do; goes away by itself once it can be opened."""

    ABOUT = "The workspace could not be opened. The studio tries again every second and goes on by itself."

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def body(self) -> Iterable[Widget]:
        """The problem, in words."""
        with VerticalScroll(id="problem"):
            yield Static("✗ The workspace cannot be opened", classes="title")
            yield Static(self._text, id="problem-text", markup=False)
            yield Static("Trying again every second. ^q leaves.", classes="hint")

    def on_mount(self) -> None:
        """Leave as soon as the workspace is open."""
        super().on_mount()
        self.studio.opened.subscribe(self, self._gone)

    def say(self, text: str) -> None:
        """Show another problem."""
        self.query_one("#problem-text", Static).update(text)

    def _gone(self, _workspace: Workspace) -> None:
        self.dismiss()
