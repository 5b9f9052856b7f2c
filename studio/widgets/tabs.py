"""Tabs that do not turn by themselves, and details that are shown in them."""

from __future__ import annotations

from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import TabbedContent, TabPane

from studio.widgets.grid import Grid
from studio.widgets.source import Source


class Tabs(TabbedContent):
    """Tabs that only turn when they are told to.

    Textual goes to the tab of whatever gets the keyboard, by a message that may come after another tab was opened, and
    then turns back to where a person has just left.
    """

    def _on_tab_pane_focused(self, event: TabPane.Focused) -> None:
        event.stop()
        event.prevent_default()


class Tabbed(Vertical):
    """Details of one thing in `Tabs`, each tab with one widget in it."""

    @property
    def active(self) -> str:
        """The tab that is looked at."""
        return self.query_one(Tabs).active

    @property
    def pane(self) -> Widget:
        """The widget of the active tab."""
        return self.query_one(f"#{self.active}", TabPane).children[0]

    def open(self, tab: str) -> Widget:
        """Go to a tab and return its widget; the keyboard goes along if it was in the details."""
        inside = self.has_focus_within
        self.query_one(Tabs).active = tab
        if inside:
            self.enter()
        return self.pane

    def turn(self, steps: int) -> None:
        """Go so many tabs on."""
        names = [str(pane.id) for pane in self.query(TabPane)]
        self.open(names[(names.index(self.active) + steps) % len(names)])

    def enter(self) -> None:
        """Give the active tab the keyboard."""
        pane = self.pane
        target = pane if pane.can_focus else next(iter(pane.query(Grid)), None) or pane.query_one(Source)
        target.focus()
