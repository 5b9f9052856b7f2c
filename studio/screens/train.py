"""Train: start trainings, watch their curves and rollouts, compare them, stop them, go on with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on, work
from textual.containers import Horizontal
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static, TabbedContent

from studio.actions import bindings
from studio.bridge import News
from studio.screens.choose import ChooseScreen
from studio.screens.frame import Framed
from studio.training_watch import TrainingWatch
from studio.widgets.cells import duration, one_line
from studio.widgets.grid import Cell, Column, Grid
from studio.widgets.lines import Piece, as_content
from studio.widgets.states import state
from studio.widgets.training.detail import TrainingDetail
from studio.widgets.training.log import last_words
from train.training_run import KIND

if TYPE_CHECKING:
    from pipeline.records import Run
    from pipeline.workspace import Workspace

LOOK_S = 1.0
"""How often the files of trainings are looked at; a step takes seconds."""

DELETED = "deleted"


def _share(value: float | None) -> str:
    return "·" if value is None else f"{value:.2f}"


class TrainScreen(Framed):
    """The trainings on the left, the one under the cursor on the right (a key away in a narrow terminal)."""

    MODE = "train"
    ABOUT = (
        "Trainings: each learns on a subset's tasks, first from what is right, then from its own rollouts. Each is a "
        "process of its own that goes on when the studio is closed. Marks (x) lay the curves and settings of several "
        "trainings beside each other. In the curves, arrows choose a chart and Enter gives it all the room; in the "
        "rollouts, < and > turn to other steps and Enter steps through one."
    )
    BINDINGS = bindings("train")

    zoomed: reactive[bool] = reactive(False, toggle_class="-zoomed")

    def __init__(self) -> None:
        super().__init__()
        self._watches: dict[int, TrainingWatch] = {}
        self.marks: set[int] = set()
        self._wanted: int | None = None  # a training that was just started, to go to once it is there
        self._looking = False

    def columns(self) -> tuple[Column, ...]:
        """What is said of each training."""
        return (
            Column("mark", "", self._mark_cell, width=1),
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

    def body(self) -> Iterable[Widget]:
        """What the current training does, the list, its details."""
        yield Static("", id="training-head", markup=False)
        yield Static("", id="training-trouble", markup=False)
        with Horizontal():
            yield Grid(self.columns(), empty="No training has been started here yet: n starts one.", id="trainings")
            yield TrainingDetail(id="training")

    @property
    def grid(self) -> Grid:
        """The trainings."""
        return self.query_one("#trainings", Grid)

    @property
    def detail(self) -> TrainingDetail:
        """The current training."""
        return self.query_one(TrainingDetail)

    @property
    def current(self) -> TrainingWatch | None:
        """The training under the cursor."""
        return self.grid.row

    @property
    def compared(self) -> list[TrainingWatch]:
        """The current training and the marked ones."""
        first = [self.current] if self.current is not None else []
        others = [watch for number, watch in self._watches.items() if number in self.marks and watch not in first]
        return [*first, *others]

    def on_mount(self) -> None:
        """Follow the trainings of the workspace."""
        super().on_mount()
        self.grid.focus()
        self.studio.opened.subscribe(self, self._workspace_opened)
        self.studio.news.subscribe(self, self._heard)
        self.set_interval(LOOK_S, self.look)
        self._list()

    def _workspace_opened(self, _workspace: Workspace) -> None:
        self._watches, self.marks = {}, set()
        self._list()

    def _heard(self, _news: News) -> None:
        self._list()

    def _list(self) -> None:
        """The trainings there are, newest first, with the cursor where it was."""
        workspace = self.studio.workspace
        if workspace is None:
            return
        runs = [run for run in self.studio.runs if run.kind == KIND and run.state != DELETED]
        self._watches = {run.id: self._watch_of(workspace, run) for run in runs}
        self.marks &= self._watches.keys()
        current = self._wanted if self._wanted in self._watches else self.current.run.id if self.current else None
        self._wanted = None if self._wanted in self._watches else self._wanted
        rows = list(self._watches.values())
        self.grid.show(rows, cursor=next((n for n, watch in enumerate(rows) if watch.run.id == current), 0))
        self.look()

    def _watch_of(self, workspace: Workspace, run: Run) -> TrainingWatch:
        watch = self._watches.get(run.id) or TrainingWatch(run, workspace.runs / str(run.id))
        watch.run = run
        return watch

    # What is new

    def look(self) -> None:
        """Read what the trainings have written, if this screen can be seen and nobody reads yet."""
        if self.is_current and not self._looking:
            self._looking = True
            self._read([*self._watches.values()])

    @work
    async def _read(self, watches: Sequence[TrainingWatch]) -> None:
        try:
            changed = await self.studio.ask(_catch_up, watches)
        finally:
            self._looking = False
        if changed:
            self.grid.redraw()
        if changed and any(watch in changed for watch in self.compared):
            self._show()
        else:
            self._say_head()

    @on(Grid.Highlighted, "#trainings")
    def _highlighted(self) -> None:
        self._show()

    @on(TabbedContent.TabActivated)
    def _tab_turned(self) -> None:
        self._show()

    @work(exclusive=True, group="show")
    async def _show(self) -> None:
        """Keep the line above and the tab that is looked at true."""
        self._say_head()
        watch, workspace = self.current, self.studio.workspace
        if workspace is None:
            return
        detail = self.detail
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
            case "log" if watch is not None:
                words = await self.studio.ask(last_words, workspace.logs / f"run-{watch.run.id}.log")
                detail.show_story(watch, words or "")

    def _say_head(self) -> None:
        watch = self.current
        self.query_one("#training-head", Static).update(as_content(head(watch) if watch is not None else []))
        trouble = self.query_one("#training-trouble", Static)
        text = watch.trouble if watch is not None else ""
        trouble.update(f"✗ {one_line(text)}")
        trouble.display = bool(text)

    def _mark_cell(self, watch: TrainingWatch) -> Cell:
        return ("x", "accent") if watch.run.id in self.marks else " "

    # Actions

    @on(Grid.Selected, "#trainings")
    def _enter(self) -> None:
        if self.has_class("-narrow"):
            self.zoomed = True
        self.call_after_refresh(self.detail.enter)

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
            self._wanted = number
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

    def action_mark(self) -> None:
        """Compare the training with others, or no more."""
        if self.current is not None:
            self.marks ^= {self.current.run.id}
            self.grid.redraw()
            self._show()

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

    def action_zoom(self) -> None:
        """The training alone, or beside the list."""
        self.zoomed = not self.zoomed
        self.call_after_refresh(self.detail.enter if self.zoomed else self.grid.focus)

    def action_next_tab(self) -> None:
        """The next tab."""
        self._turn(1)

    def action_previous_tab(self) -> None:
        """The tab before."""
        self._turn(-1)

    def _turn(self, steps: int) -> None:
        self.detail.turn(steps)
        if self.has_class("-narrow") and not self.zoomed:
            self._enter()

    def action_back(self) -> None:
        """From one chart to all, from the details to the list."""
        if self.detail.charts.alone:
            self.detail.charts.alone = False
        elif self.zoomed or self.detail.has_focus_within:
            self.zoomed = False
            self.grid.focus()
        elif self.marks:
            self.marks.clear()
            self.grid.redraw()
            self._show()


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
    pieces += [(" │ ", "muted"), (f"ETA {duration(left)}", "")] if left is not None else []
    return pieces


def _reward(watch: TrainingWatch) -> str:
    value = watch.last("reward", "mean")
    return "·" if value is None else f"{value:.2f}"


def _held_out(watch: TrainingWatch) -> Cell:
    return "·" if watch.before is None else f"{_share(watch.before)} → {_share(watch.after)}"


def _catch_up(watches: Sequence[TrainingWatch]) -> list[TrainingWatch]:
    return [watch for watch in watches if watch.catch_up()]


def _fields(trainings: Sequence[tuple[str, Path]]) -> list[tuple[str, dict[str, str]]]:
    from train.config import fields_of
    from train.training_run import config_of

    return [(name, fields_of(config_of(folder))) for name, folder in trainings]


def _done(function: Callable[[Workspace, Run], None], workspace: Workspace, run: Run) -> bool:
    """Do something that answers nothing; True, as against the None of `Studio.ask` where it could not be done."""
    function(workspace, run)
    return True
