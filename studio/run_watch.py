"""One run as the studio sees it: its board and its pace, kept true by the events that other processes write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pipeline.engine.board import Board
from studio.pace import Pace

if TYPE_CHECKING:
    from pipeline.catalog import Catalog
    from pipeline.records import Event, Run


class RunWatch:
    """Reads what has happened once (`catch_up`, in a thread), then is told what happens (`hear`)."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.board = Board()
        self.pace = Pace()
        self._early: list[Event] | None = []  # what is heard while the past is being read

    @property
    def attempts(self) -> int:
        """Attempts a step has in this run."""
        return self.run.config["attempts"]

    def catch_up(self, catalog: Catalog) -> bool:
        """Read the run from its beginning. Call `settle` afterwards, where `hear` is called."""
        board, pace = Board(), Pace()
        while events := catalog.events(board.last_event, run=self.run.id):
            for event in events:
                board.apply(event)
                pace.hear(event)
        self.board, self.pace = board, pace
        return True

    def settle(self) -> None:
        """Take in what was heard meanwhile."""
        early, self._early = self._early or [], None
        self.hear(early)

    def hear(self, events: Iterable[Event]) -> set[str | None]:
        """Take in new events (those of other runs are left). Returns the scenarios they are about, None for the run."""
        mine = [event for event in events if event.run == self.run.id]
        if self._early is not None:
            self._early += mine
            return set()
        new = [event for event in mine if event.id > self.board.last_event]
        for event in new:
            self.board.apply(event)
            self.pace.hear(event)
        return {event.scenario for event in new}
