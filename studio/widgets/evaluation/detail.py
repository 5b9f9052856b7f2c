"""One evaluation in tabs: its result, its tasks, what goes on, a comparison, the suites that can be run."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import TabPane

from studio.widgets.evaluation.comparison import Comparison
from studio.widgets.evaluation.suites import Suites
from studio.widgets.evaluation.tasks import EvaluatedTasks
from studio.widgets.source import Source
from studio.widgets.tabs import Tabbed, Tabs


class EvaluationDetail(Tabbed):
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
