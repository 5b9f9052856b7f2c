"""What TRL's trainers tell the run's log, and when they are told to stop."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from train.run_log import RunLog


class Watch(TrainerCallback):
    """Writes every logged step as an event of a kind, under `key`, and stops at the end of a generation when asked.

    `updates` is how many updates a generation has: rollouts that were made are all trained on, or none.
    """

    def __init__(self, log: RunLog, kind: str, key: str, *, updates: int = 1) -> None:
        self._log = log
        self._kind = kind
        self._key = key
        self._updates = updates
        self.stopped = False

    def on_log(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: Any = None, **_: Any
    ) -> None:
        """A step's figures."""
        if logs and "train_runtime" not in logs:
            figures = {name: _number(value) for name, value in logs.items()}
            self._log.event(self._kind, **{self._key: state.global_step}, **figures)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Say how far it is, and stop and save where that was asked for."""
        self._log.status(**{self._key: state.global_step})
        if state.global_step % self._updates:
            control.should_save = False
        elif self._log.stop_asked():
            self.stopped = state.global_step < state.max_steps
            control.should_training_stop = control.should_save = True

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """A checkpoint that can be gone on from."""
        self._log.event("checkpoint", **{self._key: state.global_step}, of=self._kind)


class Between(TrainerCallback):
    """Does something after every so many updates, but not after the last one."""

    def __init__(self, every: int, do: Callable[[int], None]) -> None:
        self._every = every
        self._do = do

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """The step is done."""
        if state.global_step % self._every == 0 and state.global_step < state.max_steps:
            self._do(state.global_step)


def _number(value: Any) -> Any:
    """A figure as JSON has it: what is no number is none."""
    if isinstance(value, int | float):
        return value if math.isfinite(value) else None
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)
