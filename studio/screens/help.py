"""Help for the screen one was on: what it is for, and every key that works there."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import Footer, Static

from studio.actions import SCOPES, Action, available, bindings

COMMON = {"grid": 1, "app": 2}
"""Scopes that other screens have too come after the screen's own."""


class HelpScreen(ModalScreen[None]):
    """Opened with `?` over any screen."""

    BINDINGS = bindings("dialog")

    def __init__(self, about: Screen[Any]) -> None:
        super().__init__()
        self._about = getattr(about, "ABOUT", "")
        self._actions = available(about)

    def compose(self) -> ComposeResult:
        """The purpose, then the keys: the screen's own first, those that work everywhere last."""
        with VerticalScroll(id="help", classes="dialog"):
            yield Static("Help", classes="title")
            if self._about:
                yield Static(self._about, markup=False)
            groups = [(scope, list(entries)) for scope, entries in groupby(self._actions, key=_scope)]
            for scope, entries in sorted(groups, key=lambda group: COMMON.get(group[0], 0)):
                yield Static(SCOPES[scope], classes="heading")
                yield Static(_table(entries))
            yield Static(
                "^p has every action by name. Keys can be changed in the keymap file: see Settings.", classes="hint"
            )
        yield Footer(compact=True, show_command_palette=False)

    def action_close(self) -> None:
        """Back to the screen."""
        self.dismiss()


def _scope(entry: tuple[Action, str, bool]) -> str:
    return entry[0].scope


def _table(entries: list[tuple[Action, str, bool]]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=6, justify="right")
    table.add_column(width=13)
    table.add_column()
    for action, key, possible in entries:
        text = action.help if possible else f"{action.help} (not now)"
        table.add_row(Text(key, style="bold"), Text(action.label), Text(text))
    return table
