"""`awm-studio synth`."""

from __future__ import annotations

import sys
from typing import Any

import rich_click as click

from pipeline.errors import UserError
from pipeline.words import number_of
from studio.commands.options import (
    Finite,
    json_option,
    open_workspace,
    print_json,
    print_table,
    say,
    workspace_option,
)


@click.command()
@click.option("--count", type=click.IntRange(1), metavar="N", help="How many environments are wanted.")
@click.option("--offline", is_flag=True, help="Make them by rules from the shipped domains: no model, no cost.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The same seed, the same result.")
@click.option(
    "--size",
    type=click.Choice(["small", "paper"]),
    default="small",
    show_default=True,
    help="Offline: 6-10 tables and 12-20 tools, or near AWM's means of 18 tables, 130 rows and 35 tools.",
)
@click.option("--domain", metavar="NAME", help="Offline: only this domain (awm-studio blueprint list shows them).")
@click.option(
    "--seeds", type=click.Path(dir_okay=False), help="JSONL with name, description and category to start from."
)
@click.option("--hint", default="", metavar="TEXT", help="What the model is told to make: a kind of service, a place.")
@click.option("--model", metavar="M", help="A model's name, or a profile's [default: the settings' profiles].")
@click.option("--base-url", metavar="U", help="The OpenAI-compatible server, for example http://localhost:8000/v1.")
@click.option(
    "--gate", "gates", multiple=True, metavar="STAGE[:warn]", help="Hold its results for approval. Repeatable."
)
@click.option("--budget", type=Finite(0), metavar="USD", help="Spend no more than this; then wait.")
@click.option("--yes", is_flag=True, help="Do not ask before money is spent.")
@click.option("--resume", is_flag=True, help="Go on with an unfinished run: the newest, or --run.")
@click.option("--run", "number", type=int, metavar="RUN", help="The run to go on with.")
@click.option("--detach", is_flag=True, help="Work in a process of its own, which outlives this terminal.")
@click.option("--replay", is_flag=True, help="Answer from the replies kept in this workspace; ask no server.")
@click.option(
    "--nearness",
    type=click.Choice(["auto", "model", "endpoint", "ngrams"]),
    default="auto",
    show_default=True,
    help="How near-duplicate scenarios are found: by embeddings here or at an endpoint, or by character n-grams.",
)
@json_option
@workspace_option
def synth_command(offline: bool, **options: Any) -> None:
    """Make environments: with a model through five checked stages, or by rules from a domain file.

    With a model, every scenario flows through the stages alone (scenario, tasks, database, interface, verification);
    what a model writes is executed, and what fails goes back to it. Everything is kept as it comes: interrupt it,
    even with kill -9, and --resume repeats at most the calls that were in flight. Watch and steer it with
    awm-studio run.

    Offline, the same count and seed again change nothing. Every environment says who made it.

    Examples:

        awm-studio synth --offline --count 24

        awm-studio synth --count 20 --model gpt-5-mini --budget 20

        awm-studio synth --count 5 --model qwen3 --base-url http://localhost:8000/v1 --gate database:warn

        awm-studio synth --resume --detach
    """
    if offline:
        by_rules(**options)
    else:
        sys.exit(with_model(**options))


def with_model(
    *,
    count: int | None,
    resume: bool,
    number: int | None,
    yes: bool,
    detach: bool,
    as_json: bool,
    workspace: str | None,
    **options: Any,
) -> int:
    """Start or go on with a synthesis by a model. Returns the exit code."""
    from pipeline.engine.start import detach as hand_over
    from pipeline.engine.start import unfinished
    from studio.synthesis import Wanted, confirm, set_up, work_in_foreground

    if resume is (count is not None):
        raise UserError("Say how many environments are wanted (--count N), or go on with a run (--resume).")
    with open_workspace(workspace, create=not resume) as opened:
        if resume:
            run = unfinished(opened, number)
        else:
            assert count is not None
            names = ("seed", "seeds", "model", "base_url", "gates", "budget", "nearness", "hint", "replay")
            run = set_up(opened, Wanted(count, **{name: options[name] for name in names}))
            if not yes and not options["replay"] and sys.stdin.isatty():
                confirm(run)
        if not detach:
            return work_in_foreground(opened, run, as_json=as_json)
        pid = hand_over(opened, run)
        if as_json:
            print_json({"run": run.id, "pid": pid})
        else:
            say(f"Run {run.id} goes on in process {pid}. Watch it: awm-studio run show {run.id}")
        return 0


def by_rules(
    *,
    count: int | None,
    seed: int,
    size: str,
    domain: str | None,
    hint: str,
    as_json: bool,
    workspace: str | None,
    **_: Any,
) -> None:
    """Make environments from domain files."""
    from typing import cast

    from pipeline.blueprints.synthesis import Request, planned, report, start, synthesise
    from pipeline.blueprints.variant import Size

    if count is None:
        raise UserError("Say how many environments are wanted: --count N.")
    if hint:
        raise UserError("Rules make what the domain files say: a hint needs a model, so leave --offline or --hint out.")
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
    say(
        f"{number_of(len(made), 'environment')}, made by rules from {len({m.domain for m in made})} domains, in {place}"
    )


SHOWN = 24
"""How many environments are printed; `--json` has all."""
