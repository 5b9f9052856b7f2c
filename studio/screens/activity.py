"""Activity: every run of the workspace, how far it is, and what it says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from textual import on, work
from textual.widget import Widget

from studio import launch
from studio.actions import bindings
from studio.bridge import News
from studio.screens.frame import Framed
from studio.widgets.cells import duration
from studio.widgets.grid import Column, Grid
from studio.widgets.lines import Piece
from studio.widgets.source import Source
from studio.widgets.states import state

if TYPE_CHECKING:
    from pipeline.records import Event, Run
    from pipeline.workspace import Workspace

TAIL = 300
"""How many of a run's newest events are shown."""
CAUGHT_UP = 20
"""Of how many runs the progress is looked up when the screen is opened."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is, from its newest event that says so (`done` and `total` in its data)."""

    done: int
    total: int
    at: datetime

    def left_s(self, started: datetime) -> float | None:
        """Seconds the rest will take if it goes on as it went so far; None before anything is done."""
        if not self.done:
            return None
        return (self.at - started).total_seconds() / self.done * (self.total - self.done)


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run as it is listed. `orphaned` is a run that says it works and whose process is gone."""

    run: Run
    progress: Progress | None
    orphaned: bool

    @property
    def state(self) -> str:
        """The run's state, told apart from what its dead process last claimed."""
        return "interrupted" if self.orphaned else self.run.state


def _bar(progress: Progress | None) -> Piece:
    if progress is None or not progress.total:
        return "", ""
    filled = round(10 * min(1.0, progress.done / progress.total))
    return f"{'█' * filled}{'░' * (10 - filled)} {progress.done}/{progress.total}", "accent"


def _took(run: Run) -> float:
    end = datetime.now(UTC) if run.state == "running" else run.updated_at
    return max(0.0, (end - run.created_at).total_seconds())


def _left(row: RunRow) -> str:
    left = row.progress.left_s(row.run.created_at) if row.progress and row.state == "running" else None
    return "" if left is None else duration(left)


class ActivityScreen(Framed):
    """Runs above, newest first; below, what the current one was asked and what it has said."""

    MODE = "activity"
    ABOUT = (
        "Every run of this workspace: synthesis, checks, audits, training. Runs work in processes of their own and "
        "go on when the studio is closed; s asks one to stop, and what it has done is kept."
    )
    BINDINGS = bindings("activity")
    COLUMNS = (
        Column("id", "run", lambda row: str(row.run.id), width=4, right=True),
        Column("kind", "kind", lambda row: row.run.kind, width=12, flex=1),
        Column("state", "state", lambda row: state(row.state), width=15),
        Column("progress", "progress", lambda row: _bar(row.progress), width=20, flex=1),
        Column("took", "took", lambda row: duration(_took(row.run)), width=7, right=True),
        Column("left", "left", _left, width=7, right=True),
        Column("started", "started", lambda row: f"{row.run.created_at.astimezone():%m-%d %H:%M}", width=11, drop=1),
    )

    def __init__(self) -> None:
        super().__init__()
        self._progress: dict[int, Progress] = {}

    def body(self) -> Iterable[Widget]:
        """Runs, then the current one."""
        yield Grid(self.COLUMNS, empty="Nothing has run in this workspace yet.", id="runs")
        yield Source(wrap=True, id="run")

    @property
    def grid(self) -> Grid:
        """The runs."""
        return self.query_one("#runs", Grid)

    def on_mount(self) -> None:
        """Show the runs and follow them."""
        super().on_mount()
        self.grid.focus()
        self.studio.news.subscribe(self, self._heard)
        self.studio.opened.subscribe(self, self._workspace_opened)
        self._list()
        self._catch_up()
        self.set_interval(1, self._tick)

    def _tick(self) -> None:
        """Time goes on for runs that are worked on."""
        if any(row.state == "running" for row in self.grid.rows):
            self.grid.redraw()

    def _workspace_opened(self, _workspace: Workspace) -> None:
        self._catch_up()

    @work(exclusive=True, group="catch up")
    async def _catch_up(self) -> None:
        """Read how far the newest runs are; what comes later is in the news."""
        workspace = self.studio.workspace
        if workspace is None:
            return
        for run in self.studio.runs[:CAUGHT_UP]:
            self._note(await self.studio.ask(workspace.catalog.last_events, TAIL, run=run.id) or ())
        self._list()

    def _heard(self, news: News) -> None:
        self._note(news.events)
        self._list()
        row = self.grid.row
        if row is not None and any(event.run == row.run.id for event in news.events):
            self._tell(row)

    def _note(self, events: Sequence[Event]) -> None:
        for event in events:
            data = event.data
            if isinstance(data, dict) and isinstance(data.get("done"), int) and isinstance(data.get("total"), int):
                self._progress[event.run] = Progress(data["done"], data["total"], event.created_at)

    def _list(self) -> None:
        current = self.grid.row.run.id if self.grid.row else None
        rows = [RunRow(run, self._progress.get(run.id), launch.is_orphaned(run)) for run in self.studio.runs]
        cursor = next((number for number, row in enumerate(rows) if row.run.id == current), 0)
        self.grid.show(rows, cursor=cursor)

    @on(Grid.Highlighted, "#runs")
    def _highlighted(self, event: Grid.Highlighted) -> None:
        self._tell(event.row)

    @work(exclusive=True, group="tell")
    async def _tell(self, row: RunRow | None) -> None:
        source = self.query_one("#run", Source)
        if row is None or self.studio.workspace is None:
            source.show("")
            return
        events = await self.studio.ask(self.studio.workspace.catalog.last_events, TAIL, run=row.run.id)
        source.show_lines(_story(row, events or []))

    @on(Grid.Selected, "#runs")
    def _open(self) -> None:
        self.query_one("#run", Source).focus()

    def action_back(self) -> None:
        """From the story to the runs."""
        self.grid.focus()

    async def action_stop(self) -> None:
        """Ask the current run to stop."""
        row = self.grid.row
        if row is not None and await self.studio.ask(launch.stop, row.run) is not None:
            self.notify(f"Run {row.run.id} was asked to stop.")

    def action_resume(self) -> None:
        """Go on with an interrupted run."""
        row = self.grid.row
        if row is None:
            return
        command = launch.going_on(row.run)
        if command is None or row.state in ("running", "done"):
            self.notify(f"Run {row.run.id} ({row.run.kind}, {row.state}) cannot be resumed.", severity="warning")
        else:
            self.studio.start_run(*command)
            self.notify(f"Run {row.run.id} goes on.")

    def copy_text(self) -> str:
        """The story of the current run."""
        return self.query_one("#run", Source).text


def _story(row: RunRow, events: Sequence[Event]) -> list[list[Piece]]:
    """What was asked, what came of it, what was said, newest last."""
    lines: list[list[Piece]] = [[(f"Run {row.run.id} · {row.run.kind}  ", "strong"), state(row.state)]]
    lines.append([("asked   ", "muted"), (_json(row.run.config), "")])
    if row.run.result is not None:
        lines.append([("result  ", "muted"), (_json(row.run.result), "")])
    lines.append([])
    for event in events:
        lines.append(
            [
                (f"{event.created_at.astimezone():%H:%M:%S} ", "muted"),
                (f"{event.kind} ", "name"),
                (f"{event.scenario} " if event.scenario else "", "strong"),
                (_json(event.data), ""),
            ]
        )
    return lines


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
