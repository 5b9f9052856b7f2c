"""Pipeline: a synthesis as a board, scenarios × stages, live; everything a person can do to it is one key away."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from textual import on, work
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.signal import Signal
from textual.widget import Widget
from textual.widgets import Static

from pipeline.engine.board import ACTIVE, Row, State
from pipeline.engine.config import KIND
from studio import stage_record
from studio.actions import bindings
from studio.bridge import News
from studio.run_watch import RunWatch
from studio.screens.choose import ChooseScreen
from studio.screens.new_run import NewRunScreen
from studio.screens.stage import StageScreen
from studio.screens.steered import Steered
from studio.widgets.attempts import brief
from studio.widgets.board import Board, money, now
from studio.widgets.cells import count, duration, one_line
from studio.widgets.grid import Grid
from studio.widgets.lines import Piece, as_content
from studio.widgets.source import Source
from studio.widgets.states import state
from studio.widgets.streaming import Streaming

if TYPE_CHECKING:
    from pipeline.records import Run
    from pipeline.workspace import Workspace

STREAM = 6_000
"""Bytes of a reply shown beside the board."""
FAILING = frozenset({State.failed, State.correcting})

VIEWS: dict[str, tuple[str, Callable[[Row], bool]]] = {
    "all": ("", lambda row: True),
    "waiting": ("waiting for you", lambda row: any(cell.state is State.waiting for cell in row.cells.values())),
    "failing": ("failed or being corrected", lambda row: row.state in FAILING),
    "done": ("done", lambda row: row.state is State.done),
}
"""What the board may be narrowed to: how it is said, and which rows that are not dropped it shows."""


class PipelineScreen(Steered):
    """The board on the left, the stage under the cursor on the right (a key away in a narrow terminal)."""

    MODE = "pipeline"
    ABOUT = (
        "A synthesis: each row is a scenario on its way through five stages. · queued, ▶ running, ↻ correcting, "
        "? waits for you, ‖ paused, ✓ done, ✗ failed, ~ stale; ·2 is the second attempt. Enter opens a stage: what is "
        "being written, the attempts and what their checks found, the prompt. Work goes on when the studio is closed."
    )
    BINDINGS = [*bindings("steer"), *bindings("pipeline")]

    zoomed: reactive[bool] = reactive(False, toggle_class="-zoomed")
    view: reactive[str] = reactive("all", init=False)
    words: reactive[str] = reactive("", init=False)

    def __init__(self) -> None:
        super().__init__()
        self.changed: Signal[set[str | None]] = Signal(self, "changed")
        self._watch: RunWatch | None = None
        self._chosen: int | None = None  # a run that a person chose; else the newest one is shown
        self._shown_head = ""

    @property
    def watch_of_run(self) -> RunWatch | None:
        """The run on the board."""
        return self._watch

    @property
    def target(self) -> tuple[Row, str] | None:
        """What is under the cursor."""
        return (self.board.row, self.board.stage) if self.board.row is not None else None

    @property
    def board(self) -> Board:
        """The board."""
        return self.query_one(Board)

    def body(self) -> Iterable[Widget]:
        """Totals, what is wrong, the board, the stage under the cursor."""
        yield Static("", id="totals", markup=False)
        yield Static("", id="trouble", markup=False)
        with Horizontal():
            yield Board(id="board")
            with Vertical(id="beside"):
                yield Source(wrap=True, id="brief")
                yield Streaming(empty="Nothing has been written yet.", size=STREAM, id="stream")

    def on_mount(self) -> None:
        """Follow the newest run."""
        super().on_mount()
        self.board.focus()
        self.studio.opened.subscribe(self, self._workspace_opened)
        self.studio.news.subscribe(self, self._heard)
        self.set_interval(1, self._tick)
        self._follow()

    # Which run

    def _workspace_opened(self, _workspace: Workspace) -> None:
        self._watch = None
        self._follow()

    @property
    def runs(self) -> list[Run]:
        """The syntheses of the workspace, newest first."""
        return [run for run in self.studio.runs if run.kind == KIND]

    def _follow(self) -> None:
        """Show the chosen run, or the newest, if that is another one than the one shown."""
        run = next((run for run in self.runs if self._chosen in (None, run.id)), None)
        if run is None and self.studio.workspace is not None:
            self.board.empty = "No synthesis has been started here yet: n starts one."
            self.board.refresh()
        elif run is not None and (self._watch is None or self._watch.run.id != run.id):
            self._watch = RunWatch(run)
            self._catch_up(self._watch)

    @work(exclusive=True, group="catch up")
    async def _catch_up(self, watch: RunWatch) -> None:
        workspace = self.studio.workspace
        if workspace is None or await self.studio.ask(watch.catch_up, workspace.catalog) is None:
            return
        watch.settle()
        self.board.empty = "Scenarios are being looked for …"
        self._list()

    def _heard(self, news: News) -> None:
        self._follow()
        if self._watch is None:
            return
        self._watch.run = next((run for run in news.runs if run.id == self._watch.run.id), self._watch.run)
        names = self._watch.hear(news.events)
        if not names:
            return
        if [row.name for row in self.board.rows] == [row.name for row in self._rows()]:
            self.board.redraw_names(names)
            self._say_totals()
            if self.target is not None and self.target[0].name in names:
                self._show_brief()
        else:
            self._list()
        self.changed.publish(names)

    # What is shown

    def _rows(self) -> list[Row]:
        if self._watch is None:
            return []
        meets, words = VIEWS[self.view][1], self.words.casefold().split()
        return [
            row
            for row in self._watch.board.wanted
            if meets(row) and all(word in f"{row.title} {row.name} {row.category}".casefold() for word in words)
        ]

    def _list(self) -> None:
        if self._watch is not None and self._watch.board.wanted:
            self.board.empty = "No scenario meets the filter: Escape shows all."
        self.board.show_rows(self._rows())
        self._say_totals()

    def watch_view(self) -> None:
        """Narrow the board, or show all of it."""
        self._list()

    def watch_words(self) -> None:
        """Narrow the board, or show all of it."""
        self._list()

    def _tick(self) -> None:
        """Time goes on, and a process may have ended without a word."""
        if self.is_current and self._watch is not None and self._watch.board.state == "running":
            self.board.redraw()
            self._say_totals()

    def _say_totals(self) -> None:
        if self._watch is None:
            return
        head = totals(
            self._watch, worked_on=self.is_worked_on(), narrowed=f"{self.words} {VIEWS[self.view][0]}".strip()
        )
        if head.plain != self._shown_head:
            self._shown_head = head.plain
            self.query_one("#totals", Static).update(head)
        wrong = trouble(self._watch)
        line = self.query_one("#trouble", Static)
        line.update(one_line(wrong))
        line.display = bool(wrong)

    @on(Grid.Highlighted, "#board")
    def _highlighted(self) -> None:
        self._show_brief()
        self._stream()

    def _show_brief(self) -> None:
        source = self.query_one("#brief", Source)
        if self.target is None or self._watch is None:
            source.show("")
        else:
            source.show_lines(brief(*self.target, allowed=self._watch.attempts))

    def _stream(self) -> None:
        workspace, watch, stream = self.studio.workspace, self._watch, self.query_one("#stream", Streaming)
        if self.target is None or workspace is None or watch is None:
            stream.follow(None)
        else:
            row, stage = self.target
            stream.follow(lambda: stage_record.live_file(workspace, watch.run.id, row, stage))

    # Actions

    @on(Grid.Selected, "#board")
    def _open(self) -> None:
        if self._watch is not None and self.target is not None:
            row, stage = self.target
            self.studio.push_screen(StageScreen(self._watch, row, stage, self.changed))

    def action_waiting(self) -> None:
        """Show what waits for a person, or everything."""
        self._turn("waiting")

    def action_failing(self) -> None:
        """Show what goes wrong, or everything."""
        self._turn("failing")

    def action_done(self) -> None:
        """Show what is done, or everything."""
        self._turn("done")

    def _turn(self, view: str) -> None:
        self.view = "all" if self.view == view else view

    @work
    async def action_filter(self) -> None:
        """Ask for words to narrow the board by."""
        words = await self.ask_line("Show scenarios with which words?", "Escape on the board shows all.")
        self.words = words if words is not None else self.words

    def action_zoom(self) -> None:
        """The stage under the cursor alone, or the board."""
        self.zoomed = not self.zoomed
        (self.query_one("#stream") if self.zoomed else self.board).focus()

    def action_back(self) -> None:
        """Back to the board; on the board, show everything."""
        if self.zoomed or not self.board.has_focus:
            self.zoomed = False
            self.board.focus()
        else:
            self.view, self.words = "all", ""

    @work
    async def action_choose_run(self) -> None:
        """Choose the run to show."""
        labels = {str(run.id): f"{run.id:>4}  {state(run.state)[0]}  {run.created_at.astimezone():%m-%d %H:%M}"
                  for run in self.runs}  # fmt: skip
        chosen = await self.studio.push_screen_wait(ChooseScreen("Which run?", labels))
        if chosen is not None:
            self._chosen = int(chosen)
            self._follow()

    @work
    async def action_new_run(self) -> None:
        """Ask what is wanted, and start it in a process of its own."""
        arguments = await self.studio.push_screen_wait(NewRunScreen())
        if arguments is not None:
            self._chosen = None  # the new one is the newest
            self.studio.start_run(*arguments)
            self.notify("The run is being started; it goes on when the studio is closed.")


def totals(watch: RunWatch, *, worked_on: bool, narrowed: str) -> Content:
    """The line above the board: states, tokens, money, pace."""
    board, moment = watch.board, now()
    counts = board.counts()
    paused = sum(row.paused and row.state in ACTIVE for row in board.wanted)
    word = "interrupted" if board.state in ("running", "paused") and not worked_on else board.state
    parts: list[Piece] = [(f"run {watch.run.id} ", "strong"), state(word), (" │ ", "muted")]
    signs = {State.running: "▶", State.correcting: "↻", State.waiting: "?", State.failed: "✗"}
    parts += [(f"{sign}{counts[which]} ", state(which.value)[1]) for which, sign in signs.items() if counts[which]]
    parts += [(f"‖{paused} ", "muted")] if paused else []
    parts += [(f"✓{counts[State.done]}/{board.count}", "ok"), (" │ ", "muted")]
    tokens = sum(row.tokens for row in board.wanted) + board.source.tokens
    priced = any(profile.get("prices") for profile in board.models.values())
    limit = f"/{board.budget:g}" if board.budget is not None else ""
    rate = watch.pace.tokens_a_second(moment) if word == "running" else 0.0
    parts += [(f"{count(tokens)} tok ", ""), (f"{rate:.0f}/s " if rate else "", "muted")]
    parts += [(f"${money(board.spent)}{limit}", "")] if priced or board.budget is not None else [("$·", "muted")]
    left = watch.pace.left_s(board.count - counts[State.done], moment) if word == "running" else None
    parts += [(" │ ", "muted"), (f"ETA {duration(left)}", "")] if left is not None else []
    gates = ", ".join(f"{stage}{':warn' if kind == 'warn' else ''}" for stage, kind in board.gates.items())
    parts += [(f" │ gate {gates}", "muted")] if gates else []
    parts += [(f" │ only {narrowed}", "accent")] if narrowed else []
    return as_content(parts)


def trouble(watch: RunWatch) -> str:
    """What keeps the run as a whole, with its sign; empty where nothing does."""
    source = watch.board.source
    if source.state in (State.waiting, State.failed):
        return f"{state(source.state.value)[0]}: scenarios: {source.why}"
    return "" if watch.board.state in ("running", "done") else watch.board.why
