"""`awm-studio import`."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import rich_click as click

from studio.commands.options import (
    Moment,
    json_option,
    open_workspace,
    print_json,
    print_table,
    say,
    workspace_option,
)

if TYPE_CHECKING:
    from curation.importers import ImportReport, Progress

SHOWN = 20
"""How many malformed lines, duplicates and incomplete environments are printed; `--json` has all."""


@click.command()
@click.argument("source", metavar="PATH")
@click.option("--format", "layout", type=click.Choice(["awm"]), default="awm", show_default=True, help="The layout.")
@click.option(
    "--now",
    type=Moment(),
    help="The pinned time of the environments, which the layout does not know [default: 2026-01-01T12:00:00Z].",
)
@json_option
@workspace_option
def import_command(source: str, layout: str, now: datetime | None, as_json: bool, workspace: str | None) -> None:
    """Bring in a folder of environments in the AWM release layout.

    Rows are joined by normalised scenario name, and the first of duplicates counts. What is malformed is reported
    with file and line, and the rest is kept. Importing a folder again changes nothing; an interrupted import goes
    on when repeated. PATH may be a dataset of the Hugging Face hub, as hf:OWNER/NAME.

    Examples:

        awm-studio import ./outputs

        awm-studio import ./outputs --now 2026-03-01T09:00:00 --json

        awm-studio import hf:Snowflake/AgentWorldModel-1K
    """
    from pathlib import Path

    from curation.importers import download, import_awm, layout_files

    if source.startswith("hf:"):
        folder, label = download(source.removeprefix("hf:")), source
    else:
        folder, label = Path(source), None
    layout_files(folder)  # before a workspace is made for it
    with open_workspace(workspace, create=True) as opened, _progress() as progress:
        report = import_awm(opened.catalog, folder, source=label, now=now, progress=progress)
        place = opened.path
    if as_json:
        print_json(report.to_json())
    else:
        _print_report(report)
        say(f"Workspace: {place}")


@contextmanager
def _progress() -> Generator[Progress | None]:
    """A progress bar on stderr, where that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("import", total=None)
        yield lambda file, done, total: bar.update(task, description=file, completed=done, total=total)


def _print_report(report: ImportReport) -> None:
    verifiers = report.verifiers
    print_table(["file", "rows"], [*report.files.items(), *((name, "missing") for name in report.missing_files)])
    print_table(
        ["joined", ""],
        [
            ("environments", report.environments),
            ("tasks", report.tasks),
            ("verifiers", f"{verifiers['code']} code, {verifiers['sql']} sql"),
            ("new versions", report.changed),
            ("duplicates", len(report.duplicates)),
            ("malformed lines", len(report.malformed)),
            ("incomplete", len(report.missing)),
        ],
    )
    _print_some(["environment", "missing parts"], [(name, ", ".join(parts)) for name, parts in report.missing])
    _print_some(
        ["duplicate", "scenario", "part", "names"],
        [
            (
                f"{row.file}:{row.line}",
                row.scenario,
                row.part if row.task is None else f"{row.part} {row.task}",
                " / ".join(map(repr, row.titles)),
            )
            for row in report.duplicates
        ],
    )
    _print_some(["malformed", "what"], [(f"{row.file}:{row.line}", row.error) for row in report.malformed])


def _print_some(columns: list[str], rows: list[tuple[str, ...]]) -> None:
    if not rows:
        return
    print_table(columns, rows[:SHOWN])
    if len(rows) > SHOWN:
        say(f"… and {len(rows) - SHOWN:,} more; --json has all.")
