"""Ask for one line of text."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from studio.actions import bindings


class AskScreen(ModalScreen[str | None]):
    """Answers with what was typed, or None; where an answer is not required, nothing typed is one too."""

    BINDINGS = bindings("prompt")

    def __init__(self, title: str, hint: str = "", *, value: str = "", required: bool = True) -> None:
        super().__init__()
        self._question = title
        self._hint = hint
        self._value = value
        self._required = required

    def compose(self) -> ComposeResult:
        """A question, a line to type in, a hint."""
        with Vertical(classes="dialog"):
            yield Static(self._question, classes="title", markup=False)
            yield Input(self._value)
            yield Static(f"{self._hint}  Enter goes on, Escape leaves.".strip(), classes="hint", markup=False)

    @on(Input.Submitted)
    def _answered(self, event: Input.Submitted) -> None:
        answer = event.value.strip()
        self.dismiss(answer if answer or not self._required else None)

    def action_cancel(self) -> None:
        """No answer."""
        self.dismiss(None)
