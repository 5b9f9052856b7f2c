"""One training as the studio sees it: read from the files that its process writes, a little at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from pipeline.words import number_of
from studio import launch
from train.curves import Curves
from train.record_index import RecordIndex
from train.run_log import Follower, read_status

if TYPE_CHECKING:
    from pipeline.records import Run

PACE = 10
"""Steps by which the time that is left is judged."""

LATEST = 500
"""Events that the log shows."""

PHASES: Mapping[str, str] = {
    "starting": "starting",
    "warmup": "warm start",
    "loading": "loading the model",
    "training": "training",
    "trying": "trying held-out tasks",
}
"""What a training does, as it is said."""


class TrainingWatch:
    """Reads what is new (`catch_up`, in a thread); everything else only looks at what was read."""

    def __init__(self, run: Run, folder: Path) -> None:
        self.run = run
        self.folder = folder
        self.curves = Curves()
        self.events: deque[Mapping[str, Any]] = deque(maxlen=LATEST)
        self.status: Mapping[str, Any] = {}
        self.rollouts = RecordIndex(folder)
        self._follower = Follower(folder)
        self._steps: deque[tuple[int, float]] = deque(maxlen=PACE + 1)
        self._tries: list[Mapping[str, Any]] = []
        self._warmed: deque[tuple[int, float]] = deque(maxlen=PACE + 1)

    def catch_up(self) -> bool:
        """Read what was written since the last time; whether anything was. Raises OSError where it cannot be read."""
        events, anew = self._follower.news()
        status = read_status(self.folder)
        changed = bool(events) or anew or status != self.status
        self.status = status
        if anew:
            self.curves, self._tries = Curves(), []
            self.events.clear()
            self._steps.clear()
            self._warmed.clear()
        self.curves.add(events)
        self.events.extend(events)
        for event in events:
            if event["kind"] == "step":
                self._steps.append((event["step"], event["t"]))
            elif event["kind"] == "try":
                self._tries.append(event)
            elif event["kind"] == "warmup":
                self._warmed.append((event["warmup_step"], event["t"]))
        return changed

    @property
    def state(self) -> str:
        """The run's state, told apart from what a process that died last claimed."""
        return "interrupted" if launch.is_orphaned(self.run) else self.run.state

    @property
    def is_running(self) -> bool:
        """Whether something new is to be expected."""
        return self.state == "running"

    @property
    def step(self) -> int:
        """The last step of reinforcement learning that is done."""
        return self._steps[-1][0] if self._steps else 0

    @property
    def steps(self) -> int:
        """How many steps it is to have."""
        return self.run.config.get("steps", 0)

    @property
    def progress(self) -> str:
        """How far it is, in a few cells."""
        if not self._steps and self._warmed:
            return f"warm {self._warmed[-1][0]}"
        return f"{self.step}/{self.steps}"

    @property
    def doing(self) -> str:
        """What it does now, with how many steps its warm start has, or how many rollouts go on."""
        phase = PHASES.get(self.status.get("phase", ""), "")
        if self.is_warming:
            return f"{phase} of {self.status.get('warmup_steps', 0):,} steps"
        live = self.status.get("live")
        return f"{phase}, {number_of(live, 'rollout')} at once" if live and phase == PHASES["training"] else phase

    @property
    def trouble(self) -> str:
        """Why it failed, if it did."""
        return str(self.status.get("detail", "")) if self.state == "failed" else ""

    def last(self, chart: str, curve: str) -> float | None:
        """The newest value of a curve."""
        points = self.curves.points.get((chart, curve))
        return points[-1][1] if points else None

    @property
    def before(self) -> float | None:
        """The share of held-out tries that was complete before the first step."""
        return next((event.get("rate") for event in self._tries if event["step"] == 0), None)

    @property
    def after(self) -> float | None:
        """The same at the last time that held-out tasks were tried after a step."""
        return next((event.get("rate") for event in reversed(self._tries) if event["step"] > 0), None)

    @property
    def is_warming(self) -> bool:
        """Whether it is in its warm start."""
        return self.is_running and not self._steps and self.status.get("phase") == "warmup"

    @property
    def left_s(self) -> float | None:
        """Seconds that the remaining steps will take at the pace of the last ones; in the warm start, those of that."""
        done, steps = (
            (self._warmed, self.status.get("warmup_steps", 0)) if self.is_warming else (self._steps, self.steps)
        )
        if not self.is_running or len(done) < 2:
            return None
        each = median((at - before) / (step - last) for (last, before), (step, at) in pairwise(done))
        return each * (steps - done[-1][0])
