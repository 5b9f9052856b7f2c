"""`awm-studio export`."""

from __future__ import annotations

import rich_click as click

from studio.commands.options import json_option, open_workspace, print_json, print_table, workspace_option


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.argument("names", metavar="[ENV…]", nargs=-1)
@click.option("--format", "layout", type=click.Choice(["awm"]), default="awm", show_default=True, help="The layout.")
@json_option
@workspace_option
def export_command(folder: str, names: tuple[str, ...], layout: str, as_json: bool, workspace: str | None) -> None:
    """Write environments to a new folder: all of them, or those named.

    Upstream's own tools can read it, and importing it gives the same contents back. The folder appears whole or not
    at all; one that exists and is not empty is refused.

    Examples:

        awm-studio export ./release

        awm-studio export ./two gofundme etsy_digital_downloads --json
    """
    from dataclasses import asdict
    from pathlib import Path

    from curation.exporters import export_awm

    with open_workspace(workspace) as opened:
        files = export_awm(opened.catalog, Path(folder), names or None)
    if as_json:
        print_json({"files": {name: asdict(file) for name, file in files.items()}})
    else:
        print_table(["file", "rows", "sha256"], [(name, file.rows, file.sha256) for name, file in files.items()])
