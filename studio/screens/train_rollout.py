"""One rollout, step by step: what was said, what came back, and what each call changed in the database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual import on, work
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Static

from studio.actions import bindings
from studio.screens.frame import Framed
from studio.widgets.changes import Changes
from studio.widgets.grid import Cell, Column, Grid
from studio.widgets.lines import Piece, as_content
from studio.widgets.source import Source, plain

if TYPE_CHECKING:
    from pipeline.catalog import Catalog
    from studio.live import Live
    from train.replay import Replay
    from train.trajectory import Trajectory, Turn


class RolloutScreen(Framed):
    """The turns on the left; on the right the current one, and what it changed, found by doing the calls again."""

    MODE = "train"
    ABOUT = (
        "A rollout as it was recorded. The changes of each call are found by making all calls again in a fresh copy of "
        "the environment as it was then; where a result is not the same byte for byte, that is said."
    )
    BINDINGS = bindings("rollout")
    COLUMNS = (
        Column("number", "", lambda row: str(row[0]), width=2, right=True),
        Column("what", "turn", lambda row: _what(row[1]), width=20, flex=1),
        Column("came", "came", lambda row: _came(row[1]), width=14),
    )

    def __init__(self, trajectory: Trajectory) -> None:
        super().__init__()
        self.trajectory = trajectory
        self.again: Replay | None = None

    def body(self) -> Iterable[Widget]:
        """The task and how it ended; turns; the current one."""
        yield Static(as_content(_head(self.trajectory)), id="rollout-head")
        yield Static(self.trajectory.text, id="rollout-task", markup=False)
        with Horizontal(id="rollout"):
            yield Grid(self.COLUMNS, empty="It took no turn.", id="turns")
            with Vertical(id="turn"):
                yield Source(wrap=True, id="exchange")
                yield Static("", id="changed-by", markup=False)
                yield Changes(id="turn-changes")

    def on_mount(self) -> None:
        """Show the first turn, and do the calls again."""
        super().on_mount()
        turns = self.query_one("#turns", Grid)
        turns.show(list(enumerate(self.trajectory.turns)))
        turns.focus()
        self._do_again()

    @work
    async def _do_again(self) -> None:
        live, workspace = self.studio.live, self.studio.workspace
        told = self.query_one("#changed-by", Static)
        if live is None or workspace is None:
            return
        told.update("doing the calls again …")
        again = await self.studio.ask(_replayed, live, workspace.catalog, self.trajectory)
        if again is None or isinstance(again, str):
            told.update(f"The calls cannot be made again: {again}" if again else "The calls cannot be made again.")
            return
        self.again = again
        self._show_changes()

    @on(Grid.Highlighted, "#turns")
    def _highlighted(self, event: Grid.Highlighted) -> None:
        self.query_one("#exchange", Source).show_lines(_exchange(*event.row) if event.row else [])
        self._show_changes()

    def _show_changes(self) -> None:
        row = self.query_one("#turns", Grid).row
        if self.again is None or row is None:
            return
        number, turn = row
        step = self.again.steps[number]
        same = "" if step.same else "  ✗ done again, it came to something else"
        what = f"What turn {number} changed" if turn.move == "call" else f"Turn {number} calls no tool"
        self.query_one("#changed-by", Static).update(what + same)
        self.query_one(Changes).show_changes(step.diff)

    @on(Grid.Selected, "#turns")
    def _read_turn(self) -> None:
        self.query_one("#exchange", Source).focus()

    def action_back(self) -> None:
        """From the turn to the turns, then back to the training."""
        turns = self.query_one("#turns", Grid)
        if turns.has_focus:
            self.dismiss()
        else:
            turns.focus()


def _replayed(live: Live, catalog: Catalog, trajectory: Trajectory) -> Replay | str:
    """A rollout done again, or why it cannot be."""
    from pipeline.runtime.host import LoadFailed
    from train.replay import environment_of, replay

    try:
        return replay(trajectory, live.program(environment_of(catalog, trajectory)))
    except LoadFailed as failed:
        return str(failed)


def _head(trajectory: Trajectory) -> list[Piece]:
    reward = trajectory.reward
    pieces: list[Piece] = [(trajectory.key, "strong"), (f"  by {trajectory.policy}", "muted")]
    pieces += [(f"  step {trajectory.step}", "muted")] if trajectory.step is not None else []
    pieces += [(f"  {trajectory.end.replace('_', ' ')}", "")]
    if reward is not None:
        tone = "muted" if reward.excluded else "ok" if reward.outcome == "complete" else "fail"
        pieces += [(f"  {'left out' if reward.excluded else f'reward {reward.total:+.2f}'}", tone)]
        pieces += [(f"  {' '.join(reward.reasons)}", "muted")]
    return pieces


def _what(turn: Turn) -> Cell:
    return {"list": "list_tools", "answer": "answers", "call": turn.tool}.get(turn.move, turn.tool or turn.move)


def _came(turn: Turn) -> Cell:
    if turn.slip:
        return f"✗ {turn.slip.replace('_', ' ')}", "fail"
    if turn.fault:
        return f"✗ {turn.fault.replace('_', ' ')}", "fail"
    return ("✓", "ok") if turn.status is None or turn.status < 400 else (f"✗ {turn.status}", "warn")


def _exchange(number: int, turn: Turn) -> list[list[Piece]]:
    """What was said in a turn, and what came back."""
    tokens = f"{len(turn.completion_ids) or turn.tokens_out} tokens" if turn.completion_ids or turn.tokens_out else ""
    lines: list[list[Piece]] = [[(f"Turn {number}: said", "strong"), (f"  {tokens}", "muted")]]
    lines += plain(turn.thinking) if turn.thinking else []
    lines += plain(turn.content or "\n".join(f"{call.name}({call.arguments})" for call in turn.calls))
    lines += [[("cut off before its end", "fail")]] if turn.cut else []
    lines += [[(f"slip: {turn.slip}", "fail")]] if turn.slip else []
    lines += [[(f"not made, since one call a turn is: {', '.join(turn.dropped)}", "warn")]] if turn.dropped else []
    if turn.shown is not None:
        lines += [[], [("What came back", "strong")], *plain(turn.shown)]
    return lines
