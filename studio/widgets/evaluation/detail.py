"""One evaluation in tabs: its result, its tasks, what goes on, a comparison, the suites that can be run."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import TabPane

from studio.widgets.environment.detail import Tabs
from studio.widgets.evaluation.comparison import Comparison
from studio.widgets.evaluation.suites import Suites
from studio.widgets.evaluation.tasks import EvaluatedTasks
from studio.widgets.grid import Grid
from studio.widgets.source import Source

TABS = ("result", "tasks", "live", "versus", "suites")


class EvaluationDetail(Vertical):
    """Shows one evaluation; only the tab that is looked at is kept true."""

    def compose(self) -> ComposeResult:
        """The tabs."""
        with Tabs():
            with TabPane("Result", id="result"):
                yield Source(wrap=True, id="scores")
            with TabPane("Tasks", id="tasks"):
                yield EvaluatedTasks(id="evaluated")
            with TabPane("Live", id="live"):
                yield Source(wrap=True, id="going-on")
            with TabPane("Compare", id="versus"):
                yield Comparison(id="comparison")
            with TabPane("Suites", id="suites"):
                yield Suites(id="suite-list")

    @property
    def active(self) -> str:
        """The tab that is looked at."""
        return self.query_one(Tabs).active

    def open(self, tab: str) -> None:
        """Go to a tab."""
        inside = self.has_focus_within
        self.query_one(Tabs).active = tab
        if inside:
            self.enter()

    def turn(self, steps: int) -> None:
        """Go so many tabs on."""
        self.open(TABS[(TABS.index(self.active) + steps) % len(TABS)])

    def enter(self) -> None:
        """Give the active tab the keyboard."""
        pane: Widget = self.query_one(f"#{self.active}", TabPane).children[0]
        (pane if pane.can_focus else pane.query_one(Grid)).focus()
