"""The board: scenarios × stages, with a cursor on one cell. Only rows on screen that change are drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from textual import events
from textual.reactive import reactive

from pipeline.engine.board import ACTIVE, Cell, Row, State
from pipeline.model import STAGES
from studio.actions import bindings
from studio.widgets.cells import count, duration
from studio.widgets.grid import GAP, Column, Grid
from studio.widgets.lines import Piece
from studio.widgets.states import state

if TYPE_CHECKING:
    from studio.widgets.grid import Cell as Shown

SHORT = {"scenario": "scen", "tasks": "task", "database": "db", "interface": "iface", "verification": "verif"}
"""The stages as headings of narrow columns."""
WORDY = 118
"""Cells of width from which on a state is written as a word too."""


class Board(Grid):
    """A grid whose cursor also has a stage: left and right move it."""

    BINDINGS = bindings("board")

    stage = reactive("tasks", repaint=False)

    def __init__(self, id: str | None = None) -> None:
        super().__init__(_columns(self, wordy=False), empty="Reading the run …", id=id)

    @property
    def cell(self) -> Cell | None:
        """The stage under the cursor."""
        return self.row.cells[self.stage] if self.row is not None else None

    def show_rows(self, rows: Sequence[Row]) -> None:
        """Show these rows, the cursor on the same scenario where it is still there."""
        name = self.row.name if self.row is not None else ""
        cursor = next((number for number, row in enumerate(rows) if row.name == name), self.cursor)
        self.show(rows, cursor=cursor)

    def redraw_names(self, names: set[str | None]) -> None:
        """Draw the rows of these scenarios again, as far as they are on screen."""
        top = self.scroll_offset.y
        on_screen = range(top, min(len(self.rows), top + self.size.height))
        self.refresh_rows([number for number in on_screen if self.rows[number].name in names], below=1)

    def on_resize(self) -> None:
        """Write states as words where there is room."""
        self.columns = _columns(self, wordy=self.size.width >= WORDY)

    def watch_stage(self) -> None:
        """Redraw the cursor and tell who listens."""
        if self.is_mounted:
            self.refresh_rows([self.cursor], below=1)
            self.post_message(self.Highlighted(self, self.row))

    def action_left(self) -> None:
        """The stage before."""
        self._turn(-1)

    def action_right(self) -> None:
        """The next stage."""
        self._turn(1)

    def action_next_waiting(self) -> None:
        """To the next stage that waits for a person, from the top again after the last."""
        places = [
            (number, place)
            for number, row in enumerate(self.rows)
            for place, cell in enumerate(row.cells.values())
            if cell.state is State.waiting
        ]
        if not places:
            self.notify("Nothing waits for you.", timeout=2)
            return
        names = list(STAGES)
        here = self.cursor, names.index(self.stage)
        number, place = next((each for each in places if each > here), places[0])
        self.cursor, self.stage = number, names[place]

    def _turn(self, steps: int) -> None:
        names = list(STAGES)
        self.stage = names[max(0, min(names.index(self.stage) + steps, len(names) - 1))]

    def on_click(self, event: events.Click) -> None:
        """A click chooses the stage too."""
        at = event.get_content_offset(self)
        if at is None or at.y == 0:
            return
        x = at.x + self.scroll_offset.x - GAP
        for column, width in self._layout:
            if 0 <= x < width + GAP and column.key in STAGES:
                self.stage = column.key
            x -= width + GAP

    def shown_stage(self, stage: str, wordy: bool, row: Row) -> Piece:
        """A cell of the board: its sign, the attempt, the word if there is room; in brackets under the cursor."""
        word, (text, tone) = stage_word(row, stage), stage_state(row, stage)
        sign = text.partition(" ")[0]
        number = attempt(row.cells[stage])
        shown = f"{sign}{f'·{number}' if number > 1 else ''}{f' {word}' if wordy else ''}"
        here = stage == self.stage and row is self.row
        return (f"[{shown}]" if here else f" {shown}"), tone


def stage_word(row: Row, stage: str) -> str:
    """How a stage of a scenario stands; a paused scenario's present stage is paused."""
    cell = row.cells[stage]
    return "paused" if row.paused and stage == row.stage and cell.state in ACTIVE else cell.state.value


def stage_state(row: Row, stage: str) -> Piece:
    """The same as it is shown, with its sign."""
    return state(stage_word(row, stage))


def attempt(cell: Cell) -> int:
    """The number of the attempt that is being made, or of the last one that was."""
    if cell.state in (State.running, State.correcting):
        return cell.attempt
    return max((len(log.attempts) for log in cell.steps.values()), default=0)


def now() -> datetime:
    """The present moment; ages are counted to it."""
    return datetime.now(UTC)


def age(row: Row) -> str:
    """How long a scenario has been on its way, or took."""
    end = row.changed if row.state in (State.done, State.failed) else now()
    return duration(max(0.0, (end - row.began).total_seconds()))


def money(usd: float | None) -> str:
    """US dollars; what is not known is `·`."""
    return "·" if usd is None else f"{usd:.2f}"


def _columns(board: Board, *, wordy: bool) -> tuple[Column, ...]:
    return (
        Column("number", "id", lambda row: (f"{row.number:04}", "muted"), width=4),
        Column("title", "scenario", lambda row: row.title, width=15, flex=3),
        *(_stage_column(board, stage, wordy=wordy) for stage in STAGES),
        Column("tokens", "tok", lambda row: count(row.tokens), width=5, right=True),
        Column("usd", "$", lambda row: money(row.usd), width=5, right=True, drop=1),
        Column("age", "age", age, width=6, right=True, drop=2),
        Column("why", "why", _why, width=12, flex=4, drop=3),
    )


def _stage_column(board: Board, stage: str, *, wordy: bool) -> Column:
    cell = partial(board.shown_stage, stage, wordy)
    return Column(stage, f" {stage}" if wordy else SHORT[stage], cell, width=16 if wordy else 5)


def _why(row: Row) -> Shown:
    return row.cells[row.stage].why, "muted"
