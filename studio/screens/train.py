"""Train: start trainings, watch their curves and rollouts, compare them, stop them, go on with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on, work

from studio.actions import bindings
from studio.screens.choose import ChooseScreen
from studio.screens.watched_runs import WatchedRuns
from studio.training_watch import TrainingWatch
from studio.widgets.cells import duration
from studio.widgets.grid import Cell, Column, Grid
from studio.widgets.lines import Piece
from studio.widgets.states import state
from studio.widgets.training.detail import TrainingDetail
from studio.widgets.training.log import last_words
from train.training_run import KIND

if TYPE_CHECKING:
    from pipeline.records import Run
    from pipeline.workspace import Workspace


def _share(value: float | None) -> str:
    return "·" if value is None else f"{value:.2f}"


class TrainScreen(WatchedRuns[TrainingWatch]):
    """The trainings on the left, the one under the cursor on the right (a key away in a narrow terminal)."""

    MODE = "train"
    ABOUT = (
        "Trainings: each learns on a subset's tasks, first from what is right, then from its own rollouts. Each is a "
        "process of its own that goes on when the studio is closed. Marks (x) lay the curves and settings of several "
        "trainings beside each other. In the curves, arrows choose a chart and Enter gives it all the room; in the "
        "rollouts, < and > turn to other steps and Enter steps through one."
    )
    BINDINGS = bindings("train")
    KIND = KIND
    EMPTY = "No training has been started here yet: n starts one."

    def columns(self) -> tuple[Column, ...]:
        """What is said of each training."""
        return (
            Column("mark", "", self.mark_cell, width=1),
            Column("id", "run", lambda watch: str(watch.run.id), width=3, right=True),
            Column("state", "state", lambda watch: state(watch.state), width=13),
            Column("step", "step", lambda watch: watch.progress, width=8, right=True),
            Column("reward", "reward", _reward, width=6, right=True),
            Column("held", "held-out", _held_out, width=12, drop=1),
            Column("subset", "subset", lambda watch: (str(watch.run.config.get("subset", "")), "muted"), width=10,
                   flex=1, drop=2),
            Column("preset", "preset", lambda watch: (str(watch.run.config.get("preset", "")), "muted"), width=12,
                   flex=1, drop=3),
        )  # fmt: skip

    def details(self) -> TrainingDetail:
        """Curves, rollouts, settings, log."""
        return TrainingDetail(id="run")

    @property
    def detail(self) -> TrainingDetail:
        """The current training."""
        return self.query_one(TrainingDetail)

    def watch_of(self, run: Run, folder: Path) -> TrainingWatch:
        """A training, to be watched."""
        return TrainingWatch(run, folder)

    def head(self, watch: TrainingWatch) -> list[Piece]:
        """State, step, what it does, how it stands, the time that is left."""
        return head(watch)

    @property
    def compared(self) -> list[TrainingWatch]:
        """The current training and the marked ones."""
        first = [self.current] if self.current is not None else []
        others = [watch for number, watch in self.watches.items() if number in self.marks and watch not in first]
        return [*first, *others]

    def is_shown(self, watch: TrainingWatch) -> bool:
        """Every training that is compared is."""
        return watch in self.compared

    async def show_tab(self, watch: TrainingWatch | None) -> None:
        """Keep the tab that is looked at true."""
        detail, workspace = self.detail, self.studio.workspace
        match detail.active:
            case "curves":
                detail.show_curves(self.compared)
            case "rollouts" if watch is not None:
                newest = detail.rollouts.index is not watch.rollouts or detail.rollouts.is_newest
                if await self.studio.ask(watch.rollouts.catch_up) is not None:
                    detail.rollouts.show_index(watch.rollouts, newest=newest)
            case "settings":
                read = await self.studio.ask(_fields, [(f"run {w.run.id}", w.folder) for w in self.compared])
                detail.show_fields(read or ())
            case "log" if watch is not None and workspace is not None:
                words = await self.studio.ask(last_words, workspace.logs / f"run-{watch.run.id}.log")
                detail.show_story(watch, words or "")

    # Actions

    @on(Grid.Selected, "Rollouts Grid")
    async def _open_rollout(self, event: Grid.Selected) -> None:
        from studio.screens.train_rollout import RolloutScreen

        watch = self.current
        if watch is not None:
            trajectory = await self.studio.ask(watch.rollouts.read, event.row)
            if trajectory is not None:
                self.studio.push_screen(RolloutScreen(trajectory))

    def action_new(self) -> None:
        """Ask what is wanted, and start it."""
        from studio.screens.train_new import NewTrainingScreen

        self.studio.push_screen(NewTrainingScreen(), self._started)

    def _started(self, number: int | None) -> None:
        if number is not None:
            self.wanted = number
            self.notify(f"Training {number} is being started; it goes on when the studio is closed.")

    @work
    async def action_stop(self) -> None:
        """Ask the training to stop after its step."""
        from train import training_run

        watch, workspace = self.current, self.studio.workspace
        if watch is None or workspace is None:
            return
        if await self.studio.ask(_done, training_run.ask_to_stop, workspace, watch.run):
            self.notify(f"Training {watch.run.id} will stop after its step, with a checkpoint.")

    @work
    async def action_resume(self) -> None:
        """Go on from the last checkpoint."""
        from train import training_run

        watch, workspace = self.current, self.studio.workspace
        if watch is None or workspace is None:
            return
        if watch.state in ("running", "done"):
            text = f"Training {watch.run.id} is {watch.state}: there is nothing to go on with."
            self.notify(text, severity="warning")
            return
        if await self.studio.ask(training_run.start, workspace, watch.run, detached=True):
            self.notify(f"Training {watch.run.id} goes on from its last checkpoint.")

    @work
    async def action_delete(self) -> None:
        """Delete the training's folder, once it is said again."""
        from train import training_run

        watch, workspace = self.current, self.studio.workspace
        if watch is None or workspace is None:
            return
        labels = {"keep": "Keep it", "delete": "Delete checkpoints, model, rollouts, curves"}
        question = f"Delete training {watch.run.id}?"
        if await self.studio.push_screen_wait(ChooseScreen(question, labels)) != "delete":
            return
        if await self.studio.ask(_done, training_run.delete, workspace, watch.run):
            self.notify(f"Training {watch.run.id} is deleted.")

    @work
    async def action_save(self) -> None:
        """Save the curves as a picture."""
        from train.figure import save_figure

        workspace = self.studio.workspace
        watches = self.compared
        if workspace is None or not watches:
            return
        names = "-".join(str(watch.run.id) for watch in watches)
        place = workspace.path / "figures" / f"training-{names}.svg"
        runs = [(f"run {watch.run.id}", watch.curves) for watch in watches]
        written = await self.studio.ask(save_figure, place, runs)
        if written is not None:
            self.notify(f"Saved {', '.join(map(str, written))}", markup=False, timeout=8)

    def action_back(self) -> None:
        """From one chart to all, from the details to the list, then unmark."""
        if self.detail.charts.alone:
            self.detail.charts.alone = False
        else:
            super().action_back()


def head(watch: TrainingWatch) -> list[Piece]:
    """The line above: state, step, what it does, how it stands, the time that is left."""
    sign, tone = state(watch.state)
    pieces: list[Piece] = [(f"run {watch.run.id} ", "strong"), (sign, tone), (" │ ", "muted")]
    pieces += [(f"step {watch.progress}", "")]
    if watch.is_running and watch.doing:
        pieces += [(f" · {watch.doing}", "accent")]
    reward = watch.last("reward", "mean")
    pieces += [(" │ ", "muted"), (f"reward {reward:.2f}", "")] if reward is not None else []
    for name, curve in (("format err", "format"), ("env err", "environment")):
        value = watch.last("errors", curve)
        pieces += [(f"  {name} {value:.1%}", "muted")] if value is not None else []
    if watch.before is not None:
        pieces += [(" │ ", "muted"), (f"held-out {_share(watch.before)} → {_share(watch.after)}", "ok")]
    left = watch.left_s
    what = "warm start ends in" if watch.is_warming else "ETA"
    pieces += [(" │ ", "muted"), (f"{what} {duration(left)}", "")] if left is not None else []
    return pieces


def _reward(watch: TrainingWatch) -> str:
    value = watch.last("reward", "mean")
    return "·" if value is None else f"{value:.2f}"


def _held_out(watch: TrainingWatch) -> Cell:
    return "·" if watch.before is None else f"{_share(watch.before)} → {_share(watch.after)}"


def _fields(trainings: Sequence[tuple[str, Path]]) -> list[tuple[str, dict[str, str]]]:
    from train.config import fields_of
    from train.training_run import config_of

    return [(name, fields_of(config_of(folder))) for name, folder in trainings]


def _done(function: Callable[[Workspace, Run], None], workspace: Workspace, run: Run) -> bool:
    """Do something that answers nothing; True, as against the None of `Studio.ask` where it could not be done."""
    function(workspace, run)
    return True
