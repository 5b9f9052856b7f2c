"""Evaluations as runs of the workspace, whatever suite they are of: recorded, found, and their reports kept."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import UserError
from pipeline.snapshots import replace_file
from train.evaluate_report import keep_report
from train.json_lines import json_line, read_json_line
from train.run_log import is_number

if TYPE_CHECKING:
    from pipeline.records import Run
    from pipeline.workspace import Workspace

KIND = "evaluation"
PROGRESS = "progress.json"
"""The file in a run's folder that says how a running evaluation stands."""


def create(workspace: Workspace, suite: str, config: Mapping[str, Any]) -> tuple[Run, Path]:
    """Record an evaluation and make its folder; returns both. It is not started by this.

    `config` is what a list of runs shows: the model, the preset, the settings; never a key.
    """
    number = workspace.catalog.add_run(KIND, {"suite": suite, **config})
    folder = workspace.runs / str(number)
    folder.mkdir(parents=True, exist_ok=True)
    return find(workspace, number), folder


def find(workspace: Workspace, number: int | None, *, suite: str | None = None) -> Run:
    """The evaluation with a number, or the newest that is not done, of one suite or any.

    Raises UserError for none.
    """
    for run in evaluations(workspace):
        if suite in (None, run.config.get("suite")) and (run.id == number or (number is None and run.state != "done")):
            return run
    what = f"evaluation of {suite}" if suite else "evaluation"
    if number is None:
        raise UserError(f"There is no unfinished {what} to go on with.")
    raise UserError(f"There is no {what} with the number {number}; awm-studio run list shows the runs.")


def evaluations(workspace: Workspace) -> list[Run]:
    """All evaluations, newest first."""
    return [run for run in workspace.catalog.runs() if run.kind == KIND]


def keep(workspace: Workspace, run: Run, document: Mapping[str, Any]) -> None:
    """Keep an evaluation's report in its folder, and its figures with the run.

    A run whose report says "not run" counts as stopped: it can be gone on with. Raises UserError where the disk is
    full.
    """
    keep_report(workspace.runs / str(run.id), document)
    figures = {name: value for name, value in document.items() if name != "items"}
    state = "done" if document["state"] == "done" else "stopped"
    workspace.catalog.update_run(run.id, state=state, pid=None, result=figures)


def keep_progress(
    folder: Path, *, done: int, total: int, judged: int, passed: int, excluded: int, why: str = ""
) -> None:
    """Say how a running evaluation stands, for whoever watches: tries that ended, were judged, passed, were left out.

    `why` is the last thing that went wrong. Raises UserError where the disk is full.
    """
    document = {
        "done": done,
        "total": total,
        "judged": judged,
        "passed": passed,
        "excluded": excluded,
        "why": why,
        "t": round(time.time(), 3),
    }
    try:
        replace_file(folder / PROGRESS, json_line(document))
    except OSError as error:
        raise UserError(f"{folder} cannot be written ({error.strerror}): free some space, then resume.") from error


def read_progress(folder: Path) -> dict[str, Any] | None:
    """How an evaluation stands, as `keep_progress` said last; None where it has said nothing, or that is damaged."""
    try:
        told = read_json_line((folder / PROGRESS).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    counts = ("done", "total", "judged", "passed", "excluded", "t")
    is_whole = isinstance(told, dict) and isinstance(told.get("why"), str)
    return told if is_whole and all(is_number(told.get(name)) for name in counts) else None
