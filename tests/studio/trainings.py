"""Trainings as their files tell them, written without the minutes that they take: done, stopped, failed, going on."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from curation.subset import TEST, TRAIN, Pick, Recipe, Subset, current_contents
from pipeline.snapshots import replace_file
from pipeline.workspace import Workspace
from tests.train.pantry import fill, pantry
from train import rollout_run
from train.config import load
from train.json_lines import json_line
from train.records import Records, read_records
from train.rollout import Plan
from train.run_log import METRICS, STATUS
from train.training_run import CONFIG, KIND

MOMENT = "2026-01-02T10:20:30+00:00"
BEGAN = 1767349230.0
"""The same moment in seconds since 1970."""


def fill_with_trainings(folder: Path) -> Path:
    """A workspace with a pantry, a subset of it, and four trainings; the newest one has rollouts of two steps."""
    fill(folder, pantry(), pantry("larder"))
    with Workspace.open(folder) as workspace:
        names = ("pantry", "larder")
        picks = [Pick("pantry", number, 0, TRAIN, "") for number in (0, 1)] + [Pick("larder", 0, 0, TEST, "")]
        contents = current_contents(workspace.catalog, names)
        workspace.catalog.set_subset("kitchen", Subset(Recipe("kitchen"), tuple(picks), contents, {}).to_json(), {})
        training(workspace, "done", steps=30, rate=0.5)
        training(workspace, "failed", "grpo.options.learning_rate=0.01", steps=7, rate=-0.2)
        training(workspace, "stopped", "grpo.options.learning_rate=0.0001", "rules.window=2", steps=12, rate=0.2)
        newest = training(workspace, "done", "grpo.options.beta=0.01", steps=30, rate=0.9)
        roll_out(workspace, newest)
    with sqlite3.connect(folder / "catalog.db") as connection:
        for table in ("versions", "events", "runs"):
            connection.execute(f"UPDATE {table} SET created_at = ?", (MOMENT,))
        connection.execute("UPDATE runs SET updated_at = ?", (MOMENT,))
        connection.execute("DELETE FROM runs WHERE kind != ?", (KIND,))
    connection.close()
    return folder


def training(workspace: Workspace, state: str, *overrides: str, steps: int, rate: float) -> Path:
    """One training's files: its rewards rise (or fall) at a rate."""
    config = load("cpu-tiny", overrides)
    about = {"preset": "cpu-tiny", "subset": "kitchen", "tasks": 2, "held_out": 1, "steps": 30, "model": "tiny"}
    number = workspace.catalog.add_run(KIND, about)
    folder = workspace.runs / str(number)
    folder.mkdir(parents=True)
    replace_file(folder / CONFIG, config.model_dump_json().encode())
    replace_file(folder / METRICS, b"".join(map(json_line, events(steps, rate, state))))
    detail = "The loss became nan in step 8: lower the learning rate, or go on from an earlier checkpoint."
    status = {"state": state, "phase": "training", "step": steps, "detail": detail if state == "failed" else ""}
    replace_file(folder / STATUS, json_line(status))
    workspace.catalog.update_run(number, state=state)
    return folder


def events(steps: int, rate: float, state: str) -> Iterator[dict[str, Any]]:
    """What a training of so many steps writes."""
    yield {"t": BEGAN, "kind": "begin", "phase": "warmup", "demonstrations": 2, "rows": 2}
    for number in range(1, 31):
        yield {"t": BEGAN + number, "kind": "warmup", "warmup_step": 10 * number, "loss": 3 / number}
    yield {"t": BEGAN + 31, "kind": "try", "step": 0, "tried": 96, "judged": 96, "complete": 31, "rate": 0.323}
    for step in range(1, steps + 1):
        learned = 1 - math.exp(-rate * step / 10)
        wave = 0.06 * math.sin(1.7 * step)
        complete, format_error = 0.3 + 0.55 * learned + wave, max(0.0, 0.4 - 0.4 * learned - wave)
        yield {
            "t": BEGAN + 40 + 5 * step, "kind": "step", "step": step, "loss": 0.01 * wave,
            "reward": complete - format_error, "reward_std": 0.6 - 0.3 * learned, "kl": 0.004 * step * abs(rate),
            "outcome/complete": complete, "outcome/partial": 0.1, "outcome/agent_error": max(0.0, 0.2 - 0.2 * learned),
            "end/format_error": format_error, "end/environment_error": 0.01 * (step % 5 == 0),
            "end/turn_limit": 0.03, "end/context_limit": 0.0, "end/time_limit": 0.0, "rollout/turns": 3.4 + 0.5 * learned,
            "rollout/response_tokens": 24 + 3 * learned, "rollout/context_tokens": 300 + 60 * learned,
            "clip_ratio/region_mean": 0.02 + 0.02 * abs(wave), "entropy": 0.4 - 0.25 * learned,
            "rollout/seconds": 3.1 + wave, "step_time": 5.2 + 2 * wave,
        }  # fmt: skip
        if step % 10 == 0:
            yield {"t": BEGAN + 41 + 5 * step, "kind": "checkpoint", "step": step, "of": "step"}
    if steps == 30:
        share = 0.32 + 0.5 * (1 - math.exp(-3 * rate))
        yield {"t": BEGAN + 200, "kind": "try", "step": 30, "tried": 96, "judged": 96, "rate": share,
               "complete": round(96 * share)}  # fmt: skip
    yield {"t": BEGAN + 201, "kind": "end", "state": state}


def roll_out(workspace: Workspace, folder: Path) -> None:
    """Real rollouts in a training's folder: right ones, idle ones and random ones, of two steps."""
    tasks = [("pantry", 0), ("pantry", 1)]
    with Records(folder) as records:
        for step, actors in ((29, ("noop", "random")), (30, ("reference", "noop", "random"))):
            for actor in actors:
                run = rollout_run.create(workspace, Plan(actor=actor, tasks=tasks, concurrency=1))
                rollout_run.work(workspace, run)
                for record in read_records(workspace.runs / str(run.id)):
                    records.add(replace(record, step=step, seconds=0.4, policy="tiny"))
