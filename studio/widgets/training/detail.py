"""One training in tabs: its curves, the rollouts of its steps, what it was asked to do, what it has said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.app import ComposeResult
from textual.widgets import TabPane

from studio.training_watch import TrainingWatch
from studio.widgets.source import Source
from studio.widgets.tabs import Tabbed, Tabs
from studio.widgets.training.charts import Charts, Shown
from studio.widgets.training.fields import Fields
from studio.widgets.training.log import story
from studio.widgets.training.rollouts import Rollouts


class TrainingDetail(Tabbed):
    """Shows one training, and beside it those it is compared with; only the tab that is looked at is kept true."""

    def compose(self) -> ComposeResult:
        """The tabs."""
        with Tabs():
            with TabPane("Curves", id="curves"):
                yield Charts(id="charts")
            with TabPane("Rollouts", id="rollouts"):
                yield Rollouts()
            with TabPane("Settings", id="settings"):
                yield Fields(id="fields")
            with TabPane("Log", id="log"):
                yield Source(wrap=True, id="story")

    @property
    def charts(self) -> Charts:
        """The curves."""
        return self.query_one(Charts)

    @property
    def rollouts(self) -> Rollouts:
        """The rollouts of a step."""
        return self.query_one(Rollouts)

    def show_curves(self, watches: Sequence[TrainingWatch]) -> None:
        """The curves of these trainings, the first one's alone or beside the others'."""
        self.charts.empty = "No step has been done yet." if watches else "No training has been started here yet."
        self.charts.show([Shown(f"run {watch.run.id}", watch.curves) for watch in watches])

    def show_fields(self, trainings: Sequence[tuple[str, Mapping[str, str]]]) -> None:
        """What these trainings were asked to do."""
        self.query_one(Fields).show_fields(trainings)

    def show_story(self, watch: TrainingWatch | None, words: str) -> None:
        """What a training has said; the view stays where it is, or at the end if it was there."""
        source = self.query_one("#story", Source)
        at, at_end = source.scroll_offset.y, source.is_vertical_scroll_end
        source.show_lines(story(watch.events, words) if watch is not None else [])
        source.scroll_to(y=source.virtual_size.height if at_end else at, animate=False, force=True)
