"""`awm-studio synth`."""

from __future__ import annotations

import rich_click as click

from pipeline.errors import UserError
from studio.commands.options import json_option, open_workspace, print_json, print_table, say, workspace_option


@click.command()
@click.option("--count", type=click.IntRange(1), required=True, metavar="N", help="How many environments are wanted.")
@click.option("--offline", is_flag=True, help="Make them by rules from the shipped domains: no model, no cost.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same environments.")
@click.option(
    "--size",
    type=click.Choice(["small", "paper"]),
    default="small",
    show_default=True,
    help="Offline: 6-10 tables and 12-20 tools, or near AWM's means of 18 tables, 130 rows and 35 tools.",
)
@click.option("--domain", metavar="NAME", help="Offline: only this domain (awm-studio blueprint list shows them).")
@json_option
@workspace_option
def synth_command(
    count: int, offline: bool, seed: int, size: str, domain: str | None, as_json: bool, workspace: str | None
) -> None:
    """Make environments: by rules from a domain file, through the same files and checks as a model's.

    The same count and seed again change nothing, and an interrupted run goes on. Every environment made by rules
    says so, and from which domain, in the catalog and at the head of its code.

    Examples:

        awm-studio synth --offline --count 24

        awm-studio synth --offline --count 48 --seed 7 --size paper

        awm-studio synth --offline --count 10 --domain ledger --json
    """
    from typing import cast

    from pipeline.blueprints.synthesis import Request, planned, report, start, synthesise
    from pipeline.blueprints.variant import Size

    if not offline:
        raise UserError("A synthesis with a model is not part of this version: add --offline to make them by rules.")
    request = Request(count, seed, cast(Size, size), domain)
    next(planned(request))  # an unknown domain is said before a workspace is made for it
    with open_workspace(workspace, create=True) as opened:
        run = start(opened.catalog, request)
        made = []
        for each in synthesise(opened.catalog, request, run):
            made.append(each)
            if not as_json and len(made) % 100 == 0:
                say(f"{len(made)} of {count} made")
        document = report(run, made)
        place = opened.path
    if as_json:
        print_json(document)
        return
    print_table(
        ["environment", "domain", "tables", "rows", "tools", "tasks", "lines"],
        [(m.name, m.domain, m.tables, m.rows, m.tools, m.tasks, m.lines) for m in made[:SHOWN]],
    )
    if len(made) > SHOWN:
        say(f"… and {len(made) - SHOWN:,} more; awm-studio list shows all.")
    print_table(["on average", ""], document["means"].items())
    say(f"{len(made)} environments, made by rules from {len({m.domain for m in made})} domains, in {place}")


SHOWN = 24
"""How many environments are printed; `--json` has all."""
