"""`awm-studio diff`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import rich_click as click

from studio.commands.options import json_option, print_json, say, workspace_option


@click.command("diff")
@click.argument("initial", metavar="INITIAL.db", type=click.Path(path_type=Path))
@click.argument("final", metavar="FINAL.db", type=click.Path(path_type=Path))
@workspace_option
@json_option
def diff_command(initial: Path, final: Path, workspace: str | None, as_json: bool) -> None:
    """Show what differs between two databases: rows added (+), removed (-) and changed (~), by table.

    Rows are matched by their primary key. Changes of the schema are listed under `sqlite_schema`.

    Examples:

        awm-studio diff before.db after.db

        awm-studio diff before.db after.db --json | jq .orders.changed
    """
    from pipeline.runtime.diff import diff
    from pipeline.sqlite_files import read_database

    changes = diff(read_database(initial), read_database(final))
    if as_json:
        print_json(changes)
    else:
        print_changes(changes)
        if not changes:
            say("The databases hold the same rows.")


def print_changes(changes: dict[str, Any]) -> None:
    """Print what `pipeline.runtime.diff.diff` found, for people."""
    for table, found in changes.items():
        click.echo(table)
        for row in found["added"]:
            click.echo(f"  + {_shown(row)}")
        for row in found["removed"]:
            click.echo(f"  - {_shown(row)}")
        for change in found["changed"]:
            columns = dict.fromkeys((*change["before"], *change["after"]))
            cells = (f"{name}: {_side(change['before'], name)} → {_side(change['after'], name)}" for name in columns)
            click.echo(f"  ~ {_shown(change['key'])}  {', '.join(cells)}")


def _shown(row: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in row.items())


def _side(row: dict[str, Any], name: str) -> str:
    return _value(row[name]) if name in row else "no column"


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
