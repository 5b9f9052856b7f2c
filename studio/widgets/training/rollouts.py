"""The rollouts of one step of a training, the worst first or as they were made."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Static

from studio.actions import bindings
from studio.widgets.cells import count, duration
from studio.widgets.grid import Cell, Column
from studio.widgets.lines import Piece
from studio.widgets.listing import Listing, Text
from train.record_index import Listed, RecordIndex

OUTCOMES: dict[str | None, Piece] = {
    "complete": ("✓ complete", "ok"),
    "partial": ("◐ partial", "warn"),
    "agent_error": ("✗ agent error", "fail"),
    "environment_error": ("! environment", "warn"),
}
"""Outcomes with their signs."""

ENDS = {
    "format_error": ("✗ format error", "fail"),
    "environment_error": ("! environment", "warn"),
    "model_error": ("! model", "warn"),
    "turn_limit": ("✗ turn limit", "fail"),
    "context_limit": ("✗ context limit", "fail"),
    "time_limit": ("✗ time limit", "fail"),
}
"""Ends that no outcome was judged for, likewise."""


def outcome(row: Listed) -> Piece:
    """What came of a rollout."""
    return OUTCOMES.get(row.outcome) or ENDS.get(row.end, (row.end, "muted"))


def _reward(row: Listed) -> Cell:
    if row.reward is None or row.excluded:
        return "left out" if row.excluded else "·", "muted"
    return f"{row.reward:+.2f}"


class Rollouts(Listing):
    """A step's rollouts, with the task of the current one below. `go` turns to another step."""

    BINDINGS = bindings("rollouts")
    COLUMNS = (
        Column("outcome", "outcome", outcome, width=15),
        Column("reward", "reward", _reward, width=8, right=True),
        Column("turns", "turns", lambda row: str(row.turns), width=5, right=True),
        Column("tokens", "tokens", lambda row: count(row.tokens), width=6, right=True, drop=2),
        Column("seconds", "took", lambda row: duration(row.seconds), width=7, right=True, drop=3),
        Column("key", "environment/task/try", lambda row: (row.key, "muted"), width=20, flex=1, drop=1),
    )
    EMPTY = "No rollouts have been written down yet."

    index: RecordIndex | None = None
    step: int | None = None

    def compose(self) -> ComposeResult:
        """Which step, its rollouts, the current one's task."""
        yield Static("", id="step", markup=False)
        yield from super().compose()

    def show_index(self, index: RecordIndex, *, newest: bool) -> None:
        """Show the rollouts of the step that was shown, or of the newest one."""
        if index is not self.index or newest or self.step not in index.steps:
            self.step = index.steps[-1] if index.steps else None
        self.index = index
        self._list()

    def explain(self, row: Listed) -> Text:
        """The task, and why it ended."""
        lines: list[list[Piece]] = [[(row.text, "")]]
        ended = f"{row.end.replace('_', ' ')}: {row.detail}" if row.detail else row.end.replace("_", " ")
        lines += [[("ended  ", "muted"), (ended, "")], [("Enter steps through it.", "muted")]]
        return lines

    @property
    def is_newest(self) -> bool:
        """Whether the newest step is shown, so that it is to be followed."""
        return self.index is None or not self.index.steps or self.step == self.index.steps[-1]

    @property
    def title(self) -> str:
        """Which step is shown."""
        if self.index is None or self.step is None:
            return ""
        steps = self.index.steps
        return f"Step {self.step}, {steps.index(self.step) + 1} of {len(steps)} written down"

    def go(self, by: int) -> None:
        """Turn to the step so many before or after."""
        if self.index is None or self.step is None:
            return
        steps = self.index.steps
        self.step = steps[max(0, min(len(steps) - 1, steps.index(self.step) + by))]
        self._list()

    def action_step_before(self) -> None:
        """The rollouts of the step before."""
        self.go(-1)

    def action_next_step(self) -> None:
        """The rollouts of the next step."""
        self.go(1)

    def _list(self) -> None:
        rows = self.index.of_step(self.step) if self.index is not None else []
        self.show_rows(rows, of=f"{id(self.index)}/{self.step}")
        self.query_one("#step", Static).update(f"{self.title}  ‹ › other steps" if self.title else "")
