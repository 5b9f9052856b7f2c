"""Runs that write files as they go, each a process of its own: listed, read again and again, looked into."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

from textual import on, work
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Static, TabbedContent

from studio.bridge import News
from studio.screens.split import Split
from studio.widgets.cells import one_line
from studio.widgets.grid import Cell, Column, Grid
from studio.widgets.lines import Piece, as_content
from studio.widgets.tabs import Tabbed

if TYPE_CHECKING:
    from pipeline.records import Run
    from pipeline.workspace import Workspace

LOOK_S = 1.0
"""How often the files of the runs are looked at."""

DELETED = "deleted"


class Watch(Protocol):
    """One run as its files tell it."""

    run: Run
    folder: Path

    @property
    def state(self) -> str:
        """The run's state, told apart from what a process that died last claimed."""
        ...

    @property
    def is_running(self) -> bool:
        """Whether something new is to be expected."""
        ...

    @property
    def trouble(self) -> str:
        """What went wrong with it; empty for nothing."""
        ...

    def catch_up(self) -> bool:
        """Read what is new, in a thread; whether anything was."""
        ...


W = TypeVar("W", bound=Watch)


class WatchedRuns(Split, Generic[W]):
    """The runs of one kind on the left, the one under the cursor on the right.

    `KIND` is their kind in the catalog, `EMPTY` what the list says where there is none.
    """

    KIND: ClassVar[str]
    EMPTY: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.watches: dict[int, W] = {}
        self.marks: set[int] = set()
        self.wanted: int | None = None  # a run that was just started, to go to once it is there
        self._looking = False

    # What a screen says of its runs

    def columns(self) -> tuple[Column, ...]:
        """What the list says of each."""
        raise NotImplementedError

    def details(self) -> Tabbed:
        """The widget for one of them."""
        raise NotImplementedError

    def watch_of(self, run: Run, folder: Path) -> W:
        """A run, to be watched."""
        raise NotImplementedError

    def head(self, watch: W) -> list[Piece]:
        """The line above."""
        raise NotImplementedError

    def is_shown(self, watch: W) -> bool:
        """Whether news of this run change what the details show."""
        raise NotImplementedError

    async def show_tab(self, watch: W | None) -> None:
        """Keep the tab that is looked at true."""
        raise NotImplementedError

    # The list

    def body(self) -> Iterable[Widget]:
        """The current run in a line, the list, its details."""
        yield Static("", id="run-head", markup=False)
        yield Static("", id="run-trouble", markup=False)
        with Horizontal():
            yield Grid(self.columns(), empty=self.EMPTY, id="runs")
            yield self.details()

    @property
    def grid(self) -> Grid:
        """The runs."""
        return self.query_one("#runs", Grid)

    @property
    def detail(self) -> Tabbed:
        """The current run."""
        return self.query_one(Tabbed)

    @property
    def current(self) -> W | None:
        """The run under the cursor."""
        return self.grid.row

    def on_mount(self) -> None:
        """Follow the runs of the workspace."""
        super().on_mount()
        self.grid.focus()
        self.studio.opened.subscribe(self, self._workspace_opened)
        self.studio.news.subscribe(self, self._heard)
        self.set_interval(LOOK_S, self.look)
        self._list()

    def _workspace_opened(self, _workspace: Workspace) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Another workspace has other runs."""
        self.watches, self.marks = {}, set()
        self._list()

    def _heard(self, _news: News) -> None:
        self._list()

    def _list(self) -> None:
        """The runs there are, newest first, with the cursor where it was."""
        workspace = self.studio.workspace
        if workspace is None:
            return
        runs = [run for run in self.studio.runs if run.kind == self.KIND and run.state != DELETED]
        self.watches = {run.id: self._watched(workspace, run) for run in runs}
        self.marks &= self.watches.keys()
        current = self.wanted if self.wanted in self.watches else self.current.run.id if self.current else None
        self.wanted = None if self.wanted in self.watches else self.wanted
        rows = list(self.watches.values())
        self.grid.show(rows, cursor=next((n for n, watch in enumerate(rows) if watch.run.id == current), 0))
        self.look()

    def _watched(self, workspace: Workspace, run: Run) -> W:
        watch = self.watches.get(run.id) or self.watch_of(run, workspace.runs / str(run.id))
        watch.run = run
        return watch

    def mark_cell(self, watch: W) -> Cell:
        """The list's first column."""
        return ("x", "accent") if watch.run.id in self.marks else " "

    # What is new

    def look(self) -> None:
        """Read what the runs have written, if this screen can be seen and nobody reads yet."""
        if self.is_current and not self._looking:
            self._looking = True
            self._read([*self.watches.values()])

    @work
    async def _read(self, watches: Sequence[W]) -> None:
        try:
            changed = await self.studio.ask(self._caught_up, watches)
        finally:
            self._looking = False
        if changed:
            self.grid.redraw()
        if changed and any(self.is_shown(watch) for watch in changed):
            self.show()
        else:
            self._say_head()

    def _caught_up(self, watches: Sequence[W]) -> list[W]:
        """Those that have something new."""
        return [watch for watch in watches if watch.catch_up()]

    @on(Grid.Highlighted, "#runs")
    def _highlighted(self) -> None:
        self.show()

    @on(TabbedContent.TabActivated)
    def _tab_turned(self) -> None:
        self.show()

    @on(Grid.Selected, "#runs")
    def _entered(self) -> None:
        self.enter_detail()

    @work(exclusive=True, group="show")
    async def show(self) -> None:
        """Keep the lines above and the tab that is looked at true."""
        self._say_head()
        if self.studio.workspace is not None:
            await self.show_tab(self.current)

    def _say_head(self) -> None:
        watch = self.current
        self.query_one("#run-head", Static).update(as_content(self.head(watch) if watch is not None else []))
        trouble = self.query_one("#run-trouble", Static)
        text = watch.trouble if watch is not None else ""
        trouble.update(f"✗ {one_line(text)}")
        trouble.display = bool(text)

    def action_mark(self) -> None:
        """Compare the run with others, or no more."""
        if self.current is not None:
            self.marks ^= {self.current.run.id}
            self.grid.redraw()
            self.show()

    def action_back(self) -> None:
        """From the details to the list, then unmark."""
        if not self.leave_detail() and self.marks:
            self.marks.clear()
            self.grid.redraw()
            self.show()
