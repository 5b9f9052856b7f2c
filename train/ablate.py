"""Ablations as runs of the workspace: one question each, and a report as JSON and as Markdown."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.estimates import Interval
from pipeline.engine.lock import work_on
from pipeline.errors import UserError
from pipeline.snapshots import replace_file
from train.evaluate_export import markdown_table
from train.json_lines import json_line

if TYPE_CHECKING:
    from pipeline.records import Run
    from pipeline.workspace import Workspace

KIND = "ablation"
JSON, MARKDOWN = "report.json", "report.md"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a report; cells that nothing was measured for are None."""

    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What an ablation found. `n` says how many of what it rests on; `notes` how it was measured.

    `state` is "done", or "stopped" where a server failed in between, for the reason `why`; doing it again goes on,
    since replies of models, trainings and evaluations are kept. `data` is what the tables were made from.
    """

    question: str
    n: Mapping[str, int]
    tables: Sequence[Table]
    notes: Sequence[str] = ()
    state: str = "done"
    why: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """The answer as one JSON object."""
        return asdict(self)

    def markdown(self, name: str) -> str:
        """The answer as Markdown."""
        state = "" if self.state == "done" else f"\n\n**{self.state.capitalize()}**: {self.why}"
        counted = ", ".join(f"{count:,} {what}" for what, count in self.n.items())
        parts = [f"# {name}\n\n{self.question}{state}\n\nn: {counted}"]
        parts += [f"## {table.heading}\n\n{markdown_table(table.columns, shown(table))}" for table in self.tables]
        if self.notes:
            parts.append("\n".join(f"- {note}" for note in self.notes))
        return "\n\n".join(parts) + "\n"


def shown(table: Table) -> list[list[str]]:
    """A table's rows as text: blank for what was not measured."""
    return [["" if cell is None else f"{cell:g}" if isinstance(cell, float) else str(cell) for cell in row]
            for row in table.rows]  # fmt: skip


def with_interval(interval: Interval | None) -> str | None:
    """An estimate with its 95 % interval as text; None for none."""
    return None if interval is None else f"{interval.estimate:.3f} ({interval.low:.3f} to {interval.high:.3f})"


def create(workspace: Workspace, name: str, config: Mapping[str, Any]) -> Run:
    """Record an ablation and make its folder. `config` is what it needs to go on; never a key."""
    number = workspace.catalog.add_run(KIND, {"ablation": name, **config})
    (workspace.runs / str(number)).mkdir(parents=True, exist_ok=True)
    return find(workspace, name, number)


def find(workspace: Workspace, name: str, number: int) -> Run:
    """The ablation of a name with a number. Raises UserError where there is none."""
    for run in workspace.catalog.runs():
        if run.kind == KIND and run.id == number and run.config["ablation"] == name:
            return run
    raise UserError(f"There is no ablation {name} with the number {number}; awm-studio run list shows the runs.")


@contextmanager
def working_on(workspace: Workspace, run: Run) -> Generator[Path]:
    """Hold an ablation while it is worked on; yields its folder. It is written down how that ended.

    Raises UserError where another process works on it.
    """
    folder = workspace.runs / str(run.id)
    with work_on(folder, run.id):
        workspace.catalog.update_run(run.id, state="running", pid=os.getpid())
        try:
            yield folder
        except BaseException as error:
            why = str(error) or "It was interrupted."
            workspace.catalog.update_run(run.id, state="stopped", pid=None, result={"state": "stopped", "why": why})
            raise


def keep(workspace: Workspace, run: Run, answer: Answer) -> Path:
    """Write the report into the run's folder; returns the folder. Raises UserError where the disk is full."""
    folder = workspace.runs / str(run.id)
    try:
        replace_file(folder / JSON, json_line(answer.document()))
        replace_file(folder / MARKDOWN, answer.markdown(run.config["ablation"]).encode())
    except OSError as error:
        raise UserError(f"{folder} cannot be written ({error.strerror}): free some space, then go on.") from error
    result = {"n": answer.n, "state": answer.state, "why": answer.why}
    workspace.catalog.update_run(run.id, state=answer.state, pid=None, result=result)
    return folder
