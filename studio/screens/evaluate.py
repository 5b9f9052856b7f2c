"""Evaluate: start evaluations, watch them, read their results, compare two, and step through what failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import on, work
from textual.containers import Horizontal
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static, TabbedContent

from studio import launch
from studio.actions import bindings
from studio.bridge import News
from studio.evaluation_watch import EvaluationWatch
from studio.screens.choose import ChooseScreen
from studio.screens.frame import Framed
from studio.widgets.cells import one_line
from studio.widgets.evaluation.comparison import Comparison
from studio.widgets.evaluation.detail import EvaluationDetail
from studio.widgets.evaluation.heading import done_cell, head, result, score_cell
from studio.widgets.evaluation.live import read_live
from studio.widgets.evaluation.suites import Suites, summary_line
from studio.widgets.evaluation.tasks import EvaluatedTasks, TaskRow, task_rows
from studio.widgets.grid import Cell, Column, Grid
from studio.widgets.lines import as_content
from studio.widgets.source import Source
from studio.widgets.states import state
from train.evaluate import KIND
from train.evaluate_report import items_of

if TYPE_CHECKING:
    from pipeline.records import Run
    from pipeline.workspace import Workspace
    from train.harness.readiness import Readiness

LOOK_S = 1.0
"""How often the files of evaluations are looked at."""


class EvaluateScreen(Framed):
    """The evaluations on the left, the one under the cursor on the right (a key away in a narrow terminal)."""

    MODE = "evaluate"
    ABOUT = (
        "Evaluations: how good a model is on concepts that were held out and on public benchmarks, each a process of "
        "its own that goes on when the studio is closed. Every score has its 95 % interval and says on how many tasks "
        "it rests; what the environment or the model's server failed is left out and counted. Mark (x) one evaluation "
        "and go to another of the same suite to compare them: the marked one is before. Enter on a task steps through "
        "a rollout that failed. Suites says what can be run here and what is missing."
    )
    BINDINGS = bindings("evaluate")

    zoomed: reactive[bool] = reactive(False, toggle_class="-zoomed")

    def __init__(self) -> None:
        super().__init__()
        self._watches: dict[int, EvaluationWatch] = {}
        self.marked: int | None = None
        self.suites: list[Readiness] = []
        self._looking = False

    def columns(self) -> tuple[Column, ...]:
        """What is said of each evaluation."""
        return (
            Column("mark", "", self._mark_cell, width=1),
            Column("id", "run", lambda watch: str(watch.run.id), width=3, right=True),
            Column("state", "state", lambda watch: state(watch.state), width=13),
            Column("suite", "suite", lambda watch: (watch.suite, "name"), width=12),
            Column("score", "score", score_cell, width=5, right=True),
            Column("done", "judged", done_cell, width=9, right=True, drop=1),
            Column("model", "model", lambda watch: (watch.model, "muted"), width=14, flex=1, drop=2),
        )

    def body(self) -> Iterable[Widget]:
        """The suites, the current evaluation in a line, the list, its details."""
        yield Static("", id="suites-head", markup=False)
        yield Static("", id="evaluation-head", markup=False)
        yield Static("", id="evaluation-trouble", markup=False)
        with Horizontal():
            yield Grid(self.columns(), empty="Nothing has been evaluated here yet: n starts it.", id="evaluations")
            yield EvaluationDetail(id="evaluation")

    @property
    def grid(self) -> Grid:
        """The evaluations."""
        return self.query_one("#evaluations", Grid)

    @property
    def detail(self) -> EvaluationDetail:
        """The current evaluation."""
        return self.query_one(EvaluationDetail)

    @property
    def current(self) -> EvaluationWatch | None:
        """The evaluation under the cursor."""
        return self.grid.row

    def on_mount(self) -> None:
        """Follow the evaluations of the workspace."""
        super().on_mount()
        self.grid.focus()
        self.studio.opened.subscribe(self, self._workspace_opened)
        self.studio.news.subscribe(self, self._heard)
        self.set_interval(LOOK_S, self.look)
        self._list()
        self._look_at_suites()

    def _workspace_opened(self, _workspace: Workspace) -> None:
        self._watches, self.marked = {}, None
        self._list()
        self._look_at_suites()

    def _heard(self, _news: News) -> None:
        self._list()

    def _list(self) -> None:
        """The evaluations there are, newest first, with the cursor where it was."""
        workspace = self.studio.workspace
        if workspace is None:
            return
        runs = [run for run in self.studio.runs if run.kind == KIND]
        self._watches = {run.id: self._watch_of(workspace, run) for run in runs}
        self.marked = self.marked if self.marked in self._watches else None
        current = self.current.run.id if self.current else None
        rows = list(self._watches.values())
        self.grid.show(rows, cursor=next((n for n, watch in enumerate(rows) if watch.run.id == current), 0))
        self.look()

    def _watch_of(self, workspace: Workspace, run: Run) -> EvaluationWatch:
        watch = self._watches.get(run.id) or EvaluationWatch(run, workspace.runs / str(run.id))
        watch.run = run
        return watch

    # What is new

    def look(self) -> None:
        """Read what the evaluations have written, if this screen can be seen and nobody reads yet."""
        if self.is_current and not self._looking:
            self._looking = True
            self._read([*self._watches.values()])

    @work
    async def _read(self, watches: Sequence[EvaluationWatch]) -> None:
        try:
            changed = await self.studio.ask(_catch_up, watches)
        finally:
            self._looking = False
        if changed:
            self.grid.redraw()
        live = self.detail.active == "live" and self.current is not None and self.current.is_running
        if live or (changed and any(watch in changed for watch in (self.current, self._before()))):
            self._show()
        else:
            self._say_head()

    @work(exclusive=True, group="suites")
    async def _look_at_suites(self) -> None:
        from train.evaluate_suites import suites

        if self.studio.workspace is None:
            return
        self.suites = await self.studio.ask(suites, self.studio.workspace) or []
        self.query_one("#suites-head", Static).update(as_content(summary_line(self.suites)))
        self._show()

    @on(Grid.Highlighted, "#evaluations")
    def _highlighted(self) -> None:
        self._show()

    @on(TabbedContent.TabActivated)
    def _tab_turned(self) -> None:
        self._show()

    @work(exclusive=True, group="show")
    async def _show(self) -> None:
        """Keep the lines above and the tab that is looked at true."""
        self._say_head()
        watch = self.current
        match self.detail.active:
            case "result":
                self.query_one("#scores", Source).show_lines(result(watch))
            case "tasks":
                await self._show_tasks(watch)
            case "live":
                await self._show_live(watch)
            case "versus":
                await self._show_comparison(watch)
            case "suites":
                self.query_one(Suites).show_rows(self.suites, of="suites")

    async def _show_tasks(self, watch: EvaluationWatch | None) -> None:
        tasks = self.query_one(EvaluatedTasks)
        if watch is None or watch.report is None:
            tasks.show_rows([])
            return
        await self.studio.ask(watch.rollouts.catch_up)
        rows = task_rows(items_of(watch.report), watch.rollouts.of_step(None))
        tasks.show_rows(rows, of=str(watch.run.id))

    async def _show_live(self, watch: EvaluationWatch | None) -> None:
        """What goes on; the view stays at the end if it was there."""
        if watch is None:
            return
        lines = await self.studio.ask(read_live, watch.folder)
        source = self.query_one("#going-on", Source)
        at_end = source.is_vertical_scroll_end
        at = source.scroll_offset.y
        source.show_lines(lines or [])
        source.scroll_to(y=source.virtual_size.height if at_end else at, animate=False, force=True)

    async def _show_comparison(self, watch: EvaluationWatch | None) -> None:
        comparison, before = self.query_one(Comparison), self._before()
        if watch is None or before is None or before is watch:
            comparison.say("Mark an evaluation with x, then go to another one of the same suite.")
            return
        if watch.report is None or before.report is None:
            comparison.say("Only evaluations that have a report can be compared.")
            return
        found = await self.studio.ask(_compared, before.report, watch.report)
        if isinstance(found, str):
            comparison.say(found)
        elif found is not None:
            comparison.show(found)

    def _before(self) -> EvaluationWatch | None:
        return self._watches.get(self.marked) if self.marked is not None else None

    def _say_head(self) -> None:
        watch = self.current
        self.query_one("#evaluation-head", Static).update(as_content(head(watch) if watch is not None else []))
        trouble = self.query_one("#evaluation-trouble", Static)
        text = watch.trouble if watch is not None else ""
        trouble.update(f"✗ {one_line(text)}")
        trouble.display = bool(text)

    def _mark_cell(self, watch: EvaluationWatch) -> Cell:
        return ("x", "accent") if watch.run.id == self.marked else " "

    # Actions

    @on(Grid.Selected, "#evaluations")
    def _enter(self) -> None:
        if self.has_class("-narrow"):
            self.zoomed = True
        self.call_after_refresh(self.detail.enter)

    @on(Grid.Selected, "EvaluatedTasks Grid")
    async def _open_task(self, event: Grid.Selected) -> None:
        if self.current is not None:
            await self._open(self.current, event.row)

    @on(Grid.Selected, "#changed-tasks")
    async def _open_changed(self, event: Grid.Selected) -> None:
        """The rollout of the evaluation in which the task went worse."""
        watch = self._before() if event.row.gained else self.current
        if watch is None or watch.report is None:
            return
        await self.studio.ask(watch.rollouts.catch_up)
        rows = task_rows(items_of(watch.report), watch.rollouts.of_step(None))
        row = next((row for row in rows if row.item.id == event.row.id), None)
        if row is not None:
            await self._open(watch, row)

    async def _open(self, watch: EvaluationWatch, row: TaskRow) -> None:
        """Step through a rollout of a task, or read what its harness has kept."""
        from studio.screens.evaluate_record import TaskRecordScreen
        from studio.screens.evaluate_rollout import EvaluatedRolloutScreen
        from train.evaluate_records import harness_records

        if row.first is None:
            records = await self.studio.ask(harness_records, watch.folder, row.item.id)
            if records is not None:
                self.studio.push_screen(TaskRecordScreen(row.item, records))
            return
        trajectory = await self.studio.ask(watch.rollouts.read, row.first)
        if trajectory is not None:
            self.studio.push_screen(EvaluatedRolloutScreen(trajectory))

    def action_new(self) -> None:
        """Ask what is wanted, and start it."""
        self._ask_for_new("")

    def _ask_for_new(self, suite: str) -> None:
        from studio.screens.evaluate_new import NewEvaluationScreen

        self.studio.push_screen(NewEvaluationScreen(self.suites, suite), self._start)

    @on(Grid.Selected, "Suites Grid")
    @work
    async def _open_suite(self, event: Grid.Selected) -> None:
        """Start an evaluation of a suite, or install it first."""
        suite: Readiness = event.row
        if suite.state == "not installed":
            labels = {"leave": "Leave it", "install": "Install it"}
            question = ChooseScreen(f"{suite.title}: {suite.how}", labels, now="leave")
            if await self.studio.push_screen_wait(question) == "install":
                self.studio.start_run("eval", "harnesses", "--install", suite.name)
                self.notify(f"{suite.title} is being installed, in minutes; f5 looks again.")
        elif suite.state == "ready":
            self._ask_for_new(suite.name)
        else:
            self.notify(f"{suite.title} cannot be run: {'; '.join(suite.missing)}.", severity="warning", markup=False)

    def _start(self, arguments: tuple[str, ...] | None) -> None:
        if arguments is not None:
            self.studio.start_run(*arguments)
            self.notify("The evaluation is being started; it goes on when the studio is closed.")

    async def action_stop(self) -> None:
        """Ask the evaluation to stop; what was judged is kept."""
        watch = self.current
        if watch is not None and await self.studio.ask(launch.stop, watch.run) is not None:
            self.notify(f"Evaluation {watch.run.id} was asked to stop.")

    def action_resume(self) -> None:
        """Do what is missing."""
        watch = self.current
        if watch is None:
            return
        command = launch.going_on(watch.run)
        if command is None or watch.state in ("running", "done"):
            self.notify(f"Evaluation {watch.run.id} is {watch.state}: nothing is missing.", severity="warning")
        else:
            self.studio.start_run(*command)
            self.notify(f"Evaluation {watch.run.id} goes on.")

    def action_mark(self) -> None:
        """Compare with the evaluation, or no more."""
        if self.current is not None:
            number = self.current.run.id
            self.marked = None if self.marked == number else number
            self.grid.redraw()
            self._show()

    @work
    async def action_export(self) -> None:
        """Write the report as Markdown, CSV and HTML."""
        watch, workspace = self.current, self.studio.workspace
        if watch is None or workspace is None:
            return
        if watch.report is None:
            self.notify(f"Evaluation {watch.run.id} has no report yet.", severity="warning")
            return
        place = workspace.path / "reports" / f"evaluation-{watch.run.id}"
        if await self.studio.ask(_export, watch.report, place):
            self.notify(f"Saved {place}.md, .csv and .html", markup=False, timeout=8)

    def action_refresh(self) -> None:
        """Look again what can be run."""
        self._look_at_suites()

    def action_zoom(self) -> None:
        """The evaluation alone, or beside the list."""
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
        """From the details to the list, then unmark."""
        if self.zoomed or self.detail.has_focus_within:
            self.zoomed = False
            self.grid.focus()
        elif self.marked is not None:
            self.marked = None
            self.grid.redraw()
            self._show()


def _catch_up(watches: Sequence[EvaluationWatch]) -> list[EvaluationWatch]:
    """The evaluations that have something new."""
    return [watch for watch in watches if watch.catch_up()]


def _compared(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any] | str:
    """A comparison, or why there is none."""
    from pipeline.errors import UserError
    from train.evaluate_compare import compare

    try:
        return compare(before, after)
    except UserError as error:
        return str(error)


def _export(report: dict[str, Any], place: Path) -> bool:
    from pipeline.errors import UserError
    from train.evaluate_export import FORMATS, export

    try:
        place.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise UserError(f"{place.parent} cannot be made: {error.strerror}.") from error
    for suffix in FORMATS:
        export(report, place.with_suffix(suffix))
    return True
