"""Trainings and evaluations as parts of an ablation, each done once: going on does only what is missing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.snapshots import replace_file
from train import evaluate, evaluate_heldout, training_run
from train.checkpoints import find_checkpoint
from train.evaluate_report import read_report

if TYPE_CHECKING:
    from pipeline.records import Run
    from pipeline.workspace import Workspace
    from train.config import TrainConfig

PARTS = "parts.json"
"""The file in an ablation's folder that names the runs it is made of."""

Work = Callable[["Workspace", "Run"], None]
"""Works on a training until it is done. Raises UserError where it failed, KeyboardInterrupt where it was stopped."""


def in_a_process(workspace: Workspace, run: Run) -> None:
    """Work on a training in a process of its own, and wait for it."""
    figures = training_run.wait(workspace, run, training_run.start(workspace, run, detached=False))
    if figures["state"] == "stopped":
        raise KeyboardInterrupt


@dataclass(frozen=True)
class Parts:
    """The trainings and evaluations of one ablation, by name. `tell` is told what begins."""

    workspace: Workspace
    folder: Path
    work: Work = in_a_process
    tell: Callable[[str], None] = lambda _: None

    def trained(self, name: str, config: TrainConfig, subset: str, *, preset: str) -> int:
        """The number of the training of that name, done. Raises UserError where it cannot be made or failed."""
        number = self._known().get(name)
        if number is None:
            number = training_run.create(self.workspace, config, subset, preset=preset).id
            self._keep(name, number)
        run = training_run.find(self.workspace, number)
        if run.state != "done":
            self.tell(f"training {number}: {name}")
            self.work(self.workspace, run)
        return number

    def evaluated(
        self, name: str, training: int, subset: str, *, tries: int, rules: Mapping[str, Any] = {}
    ) -> dict[str, Any]:
        """The report of the held-out evaluation of a training's model; `rules` change those it was trained by."""
        number = self._known().get(name)
        if number is None:
            checkpoint = find_checkpoint(self.workspace.runs, str(training))
            plan = evaluate_heldout.plan_for(
                evaluate_heldout.held_out_tasks(self.workspace, subset),
                subset=subset,
                model=checkpoint.profile,
                tries=tries,
                most_tokens=checkpoint.most_tokens,
                rules={**checkpoint.rules, "stop_on_slip": False, **rules},
            )
            number = evaluate_heldout.create(self.workspace, plan, checkpoint=str(checkpoint.folder)).id
            self._keep(name, number)
        run = evaluate.find(self.workspace, number)
        if run.state == "done":
            return read_report(self.workspace.runs / str(number))
        self.tell(f"evaluation {number}: {name}")
        return evaluate_heldout.work(self.workspace, run)

    def _known(self) -> dict[str, int]:
        try:
            return json.loads((self.folder / PARTS).read_bytes())
        except FileNotFoundError:
            return {}

    def _keep(self, name: str, number: int) -> None:
        replace_file(self.folder / PARTS, json.dumps(self._known() | {name: number}).encode())
