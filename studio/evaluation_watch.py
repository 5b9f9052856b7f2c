"""One evaluation as the studio sees it: read from the files that its process writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.estimates import Interval, rate
from pipeline.errors import UserError
from studio import launch
from train.evaluate import PROGRESS, read_progress
from train.evaluate_report import FILE, read_report
from train.record_index import RecordIndex

if TYPE_CHECKING:
    from pipeline.records import Run


class EvaluationWatch:
    """Reads what is new (`catch_up`, in a thread); everything else only looks at what was read."""

    def __init__(self, run: Run, folder: Path) -> None:
        self.run = run
        self.folder = folder
        self.progress: dict[str, Any] | None = None
        self.report: dict[str, Any] | None = None
        self.rollouts = RecordIndex(folder)
        self._problem = ""
        self._first: tuple[float, int] | None = None  # when it was first looked at, and what was done then
        self._stamps: dict[str, int] = {}

    def catch_up(self) -> bool:
        """Read what was written since the last time; whether anything was."""
        changed = False
        if self._is_new(PROGRESS):
            self.progress = read_progress(self.folder)
            if self.progress is not None and self._first is None:
                self._first = self.progress["t"], self.progress["done"]
            changed = True
        if self._is_new(FILE):
            try:
                self.report, self._problem = read_report(self.folder), ""
            except UserError as error:
                self.report, self._problem = None, str(error)
            changed = True
        return changed

    @property
    def state(self) -> str:
        """The run's state; "not run" where nothing was judged, "interrupted" where its process died."""
        if launch.is_orphaned(self.run):
            return "interrupted"
        if self.run.state != "running" and self.report is not None and self.report["state"] == "not run":
            return "not run"
        return self.run.state

    @property
    def is_running(self) -> bool:
        """Whether something new is to be expected."""
        return self.state == "running"

    @property
    def suite(self) -> str:
        """What is tried."""
        return str(self.run.config.get("suite", ""))

    @property
    def model(self) -> str:
        """What is tried out: a model's name, a training's number, or the end of a checkpoint's path."""
        checkpoint = self.run.config.get("checkpoint")
        if not checkpoint:
            return str(self.run.config.get("model", ""))
        *_, folder, name = ("", *Path(checkpoint).parts)
        return f"training {folder}" if name == "model" and folder.isdigit() else f"{folder}/{name}".lstrip("/")

    @property
    def score(self) -> Interval | None:
        """The score with its interval, of what was judged so far where it still runs; None for nothing."""
        if self.is_running or self.report is None:
            return rate(self.progress["passed"], self.progress["judged"]) if self.progress else None
        if self.report["score"] is None:
            return None
        low, high = self.report["interval"]
        return Interval(self.report["score"], low, high)

    @property
    def done(self) -> tuple[int, int] | None:
        """Tries that were judged, and all that there are to be; None where nobody has said so."""
        if self.report is not None and not self.is_running:
            return self.report["n"], self.report["total"]
        return (self.progress["done"], self.progress["total"]) if self.progress else None

    @property
    def excluded(self) -> int:
        """Tries that say nothing about the agent."""
        told = self.progress if self.is_running or self.report is None else self.report
        return told["excluded"] if told else 0

    @property
    def trouble(self) -> str:
        """What goes wrong, or why it ended before its end."""
        if self._problem:
            return self._problem
        if self.is_running:
            return self.progress["why"] if self.progress else ""
        return self.report["why"] if self.report is not None else ""

    @property
    def a_minute(self) -> float | None:
        """Tries a minute; None before that can be told. Of one that was gone on with, since the studio looked at it."""
        if not self.is_running or self.progress is None or self._first is None:
            return None
        since, before = (self._first) if self.run.result else (self.run.updated_at.timestamp(), 0)
        seconds, done = self.progress["t"] - since, self.progress["done"] - before
        return 60 * done / seconds if done > 0 and seconds > 0 else None

    @property
    def left_s(self) -> float | None:
        """Seconds that the rest takes at that pace."""
        pace = self.a_minute
        if pace is None or self.progress is None:
            return None
        return 60 * (self.progress["total"] - self.progress["done"]) / pace

    def _is_new(self, name: str) -> bool:
        try:
            stamp = (self.folder / name).stat().st_mtime_ns
        except OSError:
            return False
        if self._stamps.get(name) == stamp:
            return False
        self._stamps[name] = stamp
        return True
