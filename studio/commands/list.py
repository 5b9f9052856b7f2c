"""`awm-studio list`."""

from __future__ import annotations

import rich_click as click

from studio.commands.options import json_option, open_workspace, print_json, print_table, workspace_option


@click.command()
@json_option
@workspace_option
def list_command(as_json: bool, workspace: str | None) -> None:
    """List the environments of the workspace.

    Counts of parts that an environment lacks, and verdicts nobody has made yet, are blank. Rows are counted as
    INSERT statements; verifiers as code mode + sql mode.

    Examples:

        awm-studio list

        awm-studio list --json | jq '.environments[] | select(.check == "fail") | .name'
    """
    from studio.commands.summary import environment_rows

    with open_workspace(workspace) as opened:
        summaries = opened.catalog.summaries()
    if as_json:
        print_json(
            {
                "environments": [
                    {
                        "name": item.name,
                        "title": item.title,
                        "origin": item.origin,
                        "domain": item.domain,
                        "tables": item.tables,
                        "rows": item.rows,
                        "tools": item.tools,
                        "tasks": item.tasks,
                        "verifiers": {"code": item.code_verifiers, "sql": item.sql_verifiers},
                        "missing": item.missing,
                        "check": item.check,
                        "audit": item.audit,
                        "concept": item.concept,
                        "aside": item.aside,
                        "review": item.review,
                    }
                    for item in summaries
                ]
            }
        )
    else:
        print_table(*environment_rows(summaries))
