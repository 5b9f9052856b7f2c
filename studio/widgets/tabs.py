"""Tabs that do not turn by themselves."""

from __future__ import annotations

from textual.widgets import TabbedContent, TabPane


class Tabs(TabbedContent):
    """Tabs that only turn when they are told to.

    Textual goes to the tab of whatever gets the keyboard, by a message that may come after another tab was opened, and
    then turns back to where a person has just left.
    """

    def _on_tab_pane_focused(self, event: TabPane.Focused) -> None:
        event.stop()
        event.prevent_default()
