"""`awm-studio eval report` and `eval compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from studio.commands.options import json_option, open_workspace, print_json, print_table, say, workspace_option

if TYPE_CHECKING:
    from pipeline.workspace import Workspace

RUN = click.argument("number", metavar="RUN", type=int)


@click.command("report")
@RUN
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="A file ending in .md, .csv or .html.")
@json_option
@workspace_option
def report_command(*, number: int, out: Path | None, as_json: bool, workspace: str | None) -> None:
    """What an evaluation found, on the terminal or as a file.

    Examples:

        awm-studio eval report 12

        awm-studio eval report 12 --out report.html
    """
    from train.evaluate_export import export

    with open_workspace(workspace) as opened:
        document = _report(opened, number)
    if out is not None:
        export(document, out)
        say(f"Written to {out}.")
        return
    if as_json:
        print_json(document)
        return
    print_report(document, by_task=True)


@click.command("compare")
@click.argument("before", type=int)
@click.argument("after", type=int)
@json_option
@workspace_option
def compare_command(*, before: int, after: int, as_json: bool, workspace: str | None) -> None:
    """Two evaluations of the same tasks: is the second better, worse, or is that not decided?

    BEFORE and AFTER are runs. Tasks that were judged in both are paired: McNemar's exact test with one try a task, a
    bootstrap over tasks with several. The tasks gained and lost are listed with the commands that show their rollouts.

    Examples:

        awm-studio eval compare 12 15
    """
    from train.evaluate_compare import compare
    from train.evaluate_export import comparison_tables

    with open_workspace(workspace) as opened:
        document = compare(_report(opened, before), _report(opened, after))
        for name in ("gained", "lost"):
            document[name] = [row | _looks(opened, row["id"], before, after) for row in document[name]]
    if as_json:
        print_json(document)
        return
    for heading, columns, rows in comparison_tables(document):
        print_table(columns, rows, title=heading)
        click.echo()
    for row in [*document["lost"], *document["gained"]]:
        for command in row["show"]:
            click.echo(f"{row['id']}: {command}")


def print_report(document: dict[str, Any], *, by_task: bool = False) -> None:
    """Print what an evaluation found; where nothing was judged, that alone."""
    from train.evaluate_export import headline, tables

    click.echo(headline(document))
    if not document["n"]:
        return
    for heading, columns, rows in tables(document):
        if by_task or heading != "Tasks":
            click.echo()
            print_table(columns, rows, title=heading)


def _report(opened: Workspace, number: int) -> dict[str, Any]:
    from train.evaluate import find
    from train.evaluate_report import read_report

    return read_report(opened.runs / str(find(opened, number).id))


def _looks(opened: Workspace, item: str, *numbers: int) -> dict[str, list[str]]:
    """The commands that show a task's rollouts in each run, where they were kept."""
    from train.evaluate_heldout import places

    commands = [
        f"awm-studio trajectory show {number} --number {place}"
        for number in numbers
        for place in places(opened.runs / str(number)).get(item, ())
    ]
    return {"show": commands}
