"""`awm-studio snapshot`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import rich_click as click

from studio.commands.options import (
    json_option,
    now_option,
    open_workspace,
    print_json,
    say,
    visible,
    workspace_option,
)


@click.command("snapshot")
@click.argument("environment", metavar="ENV")
@click.argument("file", metavar="FILE.db", type=click.Path(path_type=Path))
@now_option
@workspace_option
@json_option
def snapshot_command(environment: str, file: Path, now: datetime | None, workspace: str | None, as_json: bool) -> None:
    """Write an environment's initial database as a SQLite file.

    It is what an instance starts with: the rows of the environment, and the tables its own code adds.

    Examples:

        awm-studio snapshot gofundme initial.db

        awm-studio snapshot gofundme initial.db --now 2026-03-01T09:00:00Z
    """
    from pipeline.runtime.host import Host
    from pipeline.sqlite_files import require_database_place, write_database

    require_database_place(file)
    with open_workspace(workspace) as opened:
        env = opened.catalog.environment(environment)
        with Host.from_settings(opened.settings) as host:
            snapshot, build = host.initial(env, now=now)
    write_database(file, snapshot)
    for statement in build.failed:
        say(visible(f"left out: {statement.sql.strip()[:200]} ({statement.error})"))
    if as_json:
        print_json({"environment": env.name, "file": str(file), "bytes": len(snapshot), "left_out": len(build.failed)})
    else:
        click.echo(f"{file}: {len(snapshot):,} bytes")
