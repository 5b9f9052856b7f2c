"""How fast a run is going, from its events."""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.records import Event

WINDOW = timedelta(seconds=60)
"""The rate of tokens is the mean over this time: long enough for replies that take half a minute."""


class Pace:
    """Feed it a run's events in order. Rates count from when an engine last began to work on the run."""

    def __init__(self) -> None:
        self._began: datetime | None = None
        self._done: set[str] = set()
        self._replies: deque[tuple[datetime, int]] = deque()

    def hear(self, event: Event) -> None:
        """Take in one event."""
        if event.kind == "run":
            self._began = event.created_at if event.data["state"] == "running" else None
            self._done.clear()
        elif event.kind == "stage" and event.data["stage"] == "verification" and event.scenario:
            (self._done.add if event.data["state"] == "done" else self._done.discard)(event.scenario)
        elif event.kind == "replied" and not event.data["replayed"]:
            self._replies.append((event.created_at, event.data["tokens_in"] + event.data["tokens_out"]))
            self._forget(event.created_at)

    def tokens_a_second(self, now: datetime) -> float:
        """Tokens sent and received a second over the last minute."""
        self._forget(now)
        return sum(tokens for _, tokens in self._replies) / WINDOW.total_seconds()

    def left_s(self, left: int, now: datetime) -> float | None:
        """Seconds until `left` more scenarios are done at the pace so far; None where none tells the pace."""
        if self._began is None or not self._done or not left:
            return None
        return (now - self._began).total_seconds() / len(self._done) * left

    def _forget(self, now: datetime) -> None:
        while self._replies and now - self._replies[0][0] > WINDOW:
            self._replies.popleft()
