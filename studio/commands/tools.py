"""`awm-studio tools`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import rich_click as click

from studio.commands.options import json_option, open_workspace, print_json, print_table, workspace_option


@click.command("tools")
@click.argument("environment", metavar="ENV")
@workspace_option
@json_option
def tools_command(environment: str, workspace: str | None, as_json: bool) -> None:
    """List an environment's tools as an agent sees them.

    Names, descriptions and input schemas are those of its MCP server (see `awm-studio serve`).

    Examples:

        awm-studio tools gofundme

        awm-studio tools gofundme --json | jq '.tools[] | select(.name == "create_campaign").input_schema'
    """
    from pipeline.runtime.host import Host

    with open_workspace(workspace) as opened:
        env = opened.catalog.environment(environment)
        with Host.from_settings(opened.settings) as host, host.program(env) as program:
            tools = program.tools
    if as_json:
        print_json(
            {
                "tools": [
                    {
                        "name": tool.name,
                        "description": tool.description,
                        "input_schema": tool.input_schema,
                        "method": tool.method,
                        "path": tool.path,
                        "tags": tool.tags,
                        "line": tool.line,
                    }
                    for tool in tools
                ]
            }
        )
    else:
        print_table(
            ["tool", "method", "path", "arguments", "what it does"],
            [
                (
                    tool.name,
                    tool.method,
                    tool.path,
                    ", ".join(_argument_names(tool.input_schema)),
                    tool.description.partition("\n")[0],
                )
                for tool in tools
            ],
        )


def _argument_names(schema: Mapping[str, Any]) -> list[str]:
    required = schema.get("required", ())
    return [name if name in required else f"[{name}]" for name in schema.get("properties", {})]
