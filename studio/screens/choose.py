"""Choose one thing from a short list."""

from __future__ import annotations

from collections.abc import Mapping

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from studio.actions import bindings


class ChooseScreen(ModalScreen[str | None]):
    """Shows labels, answers with the key of the chosen one, or None."""

    BINDINGS = bindings("dialog")

    def __init__(self, title: str, labels: Mapping[str, str], *, now: str = "", wide: bool = False) -> None:
        super().__init__()
        self._question = title
        self._labels = labels
        self._now = now
        self._wide = wide

    def compose(self) -> ComposeResult:
        """A title and the choices."""
        with Vertical(classes="dialog" if self._wide else "dialog -small"):
            yield Static(self._question, classes="title", markup=False)
            yield OptionList(
                *(Option(label, id=key) for key, label in self._labels.items()), markup=False, compact=True
            )

    def on_mount(self) -> None:
        """Start at what holds now."""
        if self._now in self._labels:
            self.query_one(OptionList).highlighted = list(self._labels).index(self._now)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)

    def action_close(self) -> None:
        """Choose nothing."""
        self.dismiss(None)
