"""`awm-studio fix`."""

from __future__ import annotations

from typing import Any

import rich_click as click

from pipeline.words import number_of
from studio.commands.options import (
    json_option,
    open_workspace,
    print_json,
    say,
    visible,
    workspace_option,
)


@click.command("fix")
@click.argument("environment", metavar="ENV")
@click.option("--finding", metavar="CODE", help="Only fixes for findings of this code, such as insert_failed.")
@click.option("--apply", "apply_them", is_flag=True, help="Make the edits, as your versions, and check again.")
@workspace_option
@json_option
def fix_command(
    *, environment: str, finding: str | None, apply_them: bool, workspace: str | None, as_json: bool
) -> None:
    """Show how findings can be put right where the remedy is mechanical, or do it.

    Prints, for what the last check and the last audit of an environment found, the edits as diffs: an apostrophe
    written twice, a row left out, moments compared by what they mean, an operation given a path of its own, a guard.
    With --apply each becomes a new version by you, and the environment is checked again; the version before stays.

    Examples:

        awm-studio fix gofundme

        awm-studio fix gofundme --finding route_twice --apply
    """
    from curation.checks.workspace import check_workspace
    from curation.fixes.proposals import apply_all, fixes_of
    from pipeline.runtime.host import Host
    from studio.person import person
    from studio.spelling import difference

    opened = open_workspace(workspace)
    catalog = opened.catalog
    name = catalog.resolve(environment)
    fixes = [fix for fix in fixes_of(catalog, name) if finding in (None, fix.code)]
    shown: list[dict[str, Any]] = [
        {
            "code": fix.code,
            "where": fix.where,
            "says": fix.says,
            "edits": [
                {"part": edit.part, "slot": edit.slot, "diff": difference(edit.part, edit.before, edit.after)}
                for edit in fix.edits
            ],
        }
        for fix in fixes
    ]
    if not as_json:
        for fix in shown:
            click.secho(visible(f"{fix['code']}  {fix['where']}: {fix['says']}"), bold=True)
            for edit in fix["edits"]:
                click.echo(visible("\n".join(edit["diff"])))
        if not shown and finding is not None:
            say(f"Nothing that was found in {name} is called {finding} and has a mechanical remedy.")
        elif not shown:
            say(f"There is no mechanical remedy for what was found in {name} (awm-studio check and audit find it).")
    versions, check = [], None
    if apply_them and fixes:
        versions = apply_all(catalog, name, person(), code=finding)
        with Host.from_settings(opened.settings) as host:
            (check,) = check_workspace(catalog, [name], host, workers=1)
        say(f"Made {number_of(len(versions), 'version')} of parts; checked again: {check.status}.")
    if as_json:
        made = [{"part": one.part, "slot": one.slot, "number": one.number} for one in versions]
        print_json({"environment": name, "fixes": shown, "versions": made, "check": check and check.document()})
