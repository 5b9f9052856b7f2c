"""Evaluate: start evaluations, watch them, read their results, compare two, and step through what failed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import on, work
from textual.widget import Widget
from textual.widgets import Static

from studio import launch
from studio.actions import bindings
from studio.evaluation_watch import EvaluationWatch
from studio.screens.choose import ChooseScreen
from studio.screens.watched_runs import WatchedRuns
from studio.widgets.evaluation.comparison import Comparison
from studio.widgets.evaluation.detail import EvaluationDetail
from studio.widgets.evaluation.heading import done_cell, head, result, score_cell
from studio.widgets.evaluation.live import read_live
from studio.widgets.evaluation.suites import Suites, summary_line
from studio.widgets.evaluation.tasks import EvaluatedTasks, TaskRow, task_rows
from studio.widgets.grid import Column, Grid
from studio.widgets.lines import Piece, as_content
from studio.widgets.source import Source
from studio.widgets.states import state
from train.evaluate import KIND
from train.evaluate_report import items_of

if TYPE_CHECKING:
    from pipeline.records import Run
    from train.harness.readiness import Readiness


class EvaluateScreen(WatchedRuns[EvaluationWatch]):
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
    KIND = KIND
    EMPTY = "Nothing has been evaluated here yet: n starts it."

    def __init__(self) -> None:
        super().__init__()
        self.suites: list[Readiness] = []

    def columns(self) -> tuple[Column, ...]:
        """What is said of each evaluation."""
        return (
            Column("mark", "", self.mark_cell, width=1),
            Column("id", "run", lambda watch: str(watch.run.id), width=3, right=True),
            Column("state", "state", lambda watch: state(watch.state), width=13),
            Column("suite", "suite", lambda watch: (watch.suite, "name"), width=12),
            Column("score", "score", score_cell, width=5, right=True),
            Column("done", "judged", done_cell, width=9, right=True, drop=1),
            Column("model", "model", lambda watch: (watch.model, "muted"), width=14, flex=1, drop=2),
        )

    def body(self) -> Iterable[Widget]:
        """The suites in a line above the rest."""
        yield Static("", id="suites-head", markup=False)
        yield from super().body()

    def details(self) -> EvaluationDetail:
        """Result, tasks, what goes on, a comparison, the suites."""
        return EvaluationDetail(id="run")

    def watch_of(self, run: Run, folder: Path) -> EvaluationWatch:
        """An evaluation, to be watched."""
        return EvaluationWatch(run, folder)

    def head(self, watch: EvaluationWatch) -> list[Piece]:
        """State, how far, the pass rate, the pace, the time that is left."""
        return head(watch)

    def on_screen_resume(self) -> None:
        """See what can be run here, each time the screen is turned to: a subset may have been made meanwhile."""
        self._look_at_suites()

    def begin_anew(self) -> None:
        """Another workspace has other evaluations, and other subsets to try."""
        super().begin_anew()
        self._look_at_suites()

    @work(exclusive=True, group="suites")
    async def _look_at_suites(self) -> None:
        from train.evaluate_suites import suites

        if self.studio.workspace is None:
            return
        self.suites = await self.studio.ask(suites, self.studio.workspace) or []
        self.query_one("#suites-head", Static).update(as_content(summary_line(self.suites)))
        self.show()

    # What is new

    def look(self) -> None:
        """Read what is new; what goes on is looked at whether or not that said anything."""
        super().look()
        if self.is_current and self.detail.active == "live" and self.current is not None and self.current.is_running:
            self.show()

    def is_shown(self, watch: EvaluationWatch) -> bool:
        """The current one is, and the one it is compared with."""
        return watch in (self.current, self._before())

    async def show_tab(self, watch: EvaluationWatch | None) -> None:
        """Keep the tab that is looked at true."""
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
        """The marked evaluation, if there is one."""
        return next((self.watches[number] for number in self.marks), None)

    # Actions

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
        """Compare with the evaluation, or no more; there is one mark at a time."""
        if self.current is not None:
            self.marks &= {self.current.run.id}
        super().action_mark()

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
