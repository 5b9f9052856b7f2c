"""`awm-studio export`."""

from __future__ import annotations

import rich_click as click

from studio.commands.options import json_option, open_workspace, print_json, print_table, watched, workspace_option


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False))
@click.argument("names", metavar="[ENV…]", nargs=-1)
@click.option(
    "--format",
    "layout",
    type=click.Choice(["awm", "hf", "verl", "trl", "mcp"]),
    default="awm",
    show_default=True,
    help="awm: upstream's JSON lines; hf: parquet with a dataset card; verl: parquet for its agent loop; trl: prompts "
    "with environment references; mcp: a client configuration.",
)
@click.option("--subset", metavar="NAME", help="Only what a subset picked, with its splits, recipe and card.")
@json_option
@workspace_option
def export_command(
    *, folder: str, names: tuple[str, ...], layout: str, subset: str | None, as_json: bool, workspace: str | None
) -> None:
    """Write environments to a new folder: all of them, those named, or those of a subset.

    The folder appears whole or not at all; one that exists and is not empty is refused, and so is anything that
    holds this machine's paths or a secret. Upstream's own tools can read the awm layout, and importing it gives the
    same contents back.

    Examples:

        awm-studio export ./release

        awm-studio export ./two gofundme etsy_digital_downloads --json

        awm-studio export ./mix-v1 --format hf --subset mix-v1
    """
    from dataclasses import asdict
    from pathlib import Path

    from curation.exporters import export_awm
    from curation.exports.formats import Format, export

    if subset and names:
        raise click.UsageError("Name environments or a subset, not both.")
    asked = {"format": layout, "subset": subset or "", "environments": names, "folder": Path(folder).absolute().name}
    with open_workspace(workspace) as opened, watched(opened, "export", asked, "written") as (record, progress):
        if subset is None and layout == Format.awm:
            files = export_awm(opened.catalog, Path(folder), names or None)
        else:
            from curation.subset import Subset
            from curation.whole import everything

            catalog = opened.catalog
            chosen = Subset.from_json(catalog.subset(subset)) if subset else everything(catalog, names or None)
            files = export(opened, Path(folder), Format(layout), chosen, progress=progress)
        record.result = {name: file.rows for name, file in files.items()}
    if as_json:
        print_json({"files": {name: asdict(file) for name, file in files.items()}})
    else:
        print_table(["file", "rows", "sha256"], [(name, file.rows, file.sha256) for name, file in files.items()])
