"""`awm-studio config`."""

from __future__ import annotations

import rich_click as click

from studio.commands.options import json_option, print_json, print_table, workspace_option


@click.group("config")
def config_command() -> None:
    """Where settings, keys, workspace and logs are kept.

    Examples:

        awm-studio config locate
    """


@config_command.command()
@json_option
@workspace_option
@click.pass_context
def locate(context: click.Context, as_json: bool, workspace: str | None) -> None:
    """Print the places, whether or not there is anything there yet.

    Examples:

        awm-studio config locate --json
    """
    from pipeline.settings import settings_path
    from pipeline.workspace import locate as locate_workspace
    from studio.actions import keymap_path

    chosen = workspace or context.find_root().params.get("workspace")
    path = locate_workspace(chosen)
    places = {
        "settings": settings_path(),
        "keymap": keymap_path(),
        "workspace": path,
        "logs": path / "logs",
    }
    if as_json:
        print_json({name: str(place) for name, place in places.items()})
    else:
        print_table(["", ""], places.items())
