"""`awm-studio rollout`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from pipeline.errors import UserError
from pipeline.words import whole_number
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
    from pipeline.workspace import Workspace
    from train.reward import Rewards
    from train.rollout import Plan, Progress
    from train.rules import Rules
    from train.trajectory import Trajectory

SCRIPTED_AT_ONCE = 16
"""Scripted rollouts at once: enough to keep every processor's workers busy."""


@click.command()
@click.argument("environments", metavar="[ENV]...", nargs=-1)
@click.option("--task", default="all", show_default=True, metavar="N|all", help="The task (numbered from 0), or all.")
@click.option("--subset", metavar="NAME", help="The environments and tasks of a subset, as they were picked.")
@click.option("--split", type=click.Choice(["train", "test"]), default="test", help="Of the subset.", show_default=True)
@click.option("--policy", type=click.Choice(["reference", "noop", "random"]), help="A script instead of a model.")
@click.option("--model", metavar="M", help="A model's name, or a profile's [default: the settings' profiles].")
@click.option("--base-url", metavar="U", help="The OpenAI-compatible server, for example http://localhost:8000/v1.")
@click.option("--tries", type=click.IntRange(1), default=1, show_default=True, metavar="K", help="Rollouts a task.")
@click.option("--concurrency", type=click.IntRange(1, 4096), metavar="C", help="Rollouts at once.")
@click.option(
    "--form",
    type=click.Choice(["text", "native"]),
    default="text",
    show_default=True,
    help="AWM's text protocol, or the server's own tool calling.",
)
@click.option("--window", default="3", show_default=True, metavar="W|all", help="Exchanges the agent sees.")
@click.option("--turns", type=click.IntRange(1), default=20, show_default=True, help="Turns an agent has.")
@click.option("--most-tokens", type=click.IntRange(1), default=2048, show_default=True, help="Tokens of a turn.")
@click.option("--max-context", type=click.IntRange(1), metavar="N", help="Tokens of a turn with what it is shown.")
@click.option("--time-limit", type=Finite(0, min_open=True), default=600, show_default=True, metavar="S")
@click.option("--temperature", type=Finite(0), help="Of the model [default: its server's].")
@click.option("--top-p", type=Finite(0, 1), help="Of the model.")
@click.option("--top-k", type=int, help="Of the model, for servers that know it.")
@click.option("--require-thinking", is_flag=True, help="A turn that does not think first is a slip.")
@click.option("--lenient", is_flag=True, help="Slips and environment errors are told to the agent, and it goes on.")
@click.option(
    "--reward",
    type=click.Choice(["code", "judge", "llm"]),
    default="code",
    show_default=True,
    help="Who judges: code, a model with the verifier's evidence, or a model alone.",
)
@click.option("--judge-model", metavar="M", help="The model that judges, or a profile's name.")
@click.option("--judge-base-url", metavar="U", help="Its server.")
@click.option("--no-op-pays", is_flag=True, help="An untouched database may count as done in part.")
@click.option("--audit", type=click.Path(dir_okay=False, path_type=Path), help="What awm-studio audit --json printed.")
@click.option("--seed", type=int, default=0, show_default=True, help="Chooses what random agents do.")
@click.option("--resume", is_flag=True, help="Go on with unfinished rollouts: the newest run's, or --run's.")
@click.option("--run", "number", type=int, metavar="RUN", help="The run to go on with.")
@json_option
@workspace_option
def rollout_command(*, resume: bool, number: int | None, as_json: bool, workspace: str | None, **options: Any) -> None:
    """Let agents work on tasks, many at once, and keep everything that happened.

    The agent is a model behind an OpenAI-compatible server, or a script whose result is known: the reference solution
    completes every task, doing nothing completes none. Every rollout is written down as it ends, with its reward and
    the reasons for it; interrupt it, even with kill -9, and --resume does only what is missing. Look at them with
    awm-studio trajectory.

    Exits with 1 where nothing could be judged, or a reference solution did not complete its task.

    Examples:

        awm-studio rollout --policy reference

        awm-studio rollout gofundme --task 3 --model Snowflake/Arctic-AWM-4B --base-url http://localhost:8000/v1

        awm-studio rollout --subset mix-v1 --model gpt-5-mini --form native --tries 4 --concurrency 64

        awm-studio rollout --resume
    """
    from train import rollout_run

    with open_workspace(workspace) as opened:
        run = rollout_run.find(opened, number) if resume else rollout_run.create(opened, _plan(opened, options))
        say(f"Run {run.id}: records go to {opened.runs / str(run.id)}")
        figures = rollout_run.work(opened, run, tell=_tell)
        actor = rollout_run.plan_of(opened, run).actor
    if as_json:
        print_json(figures)
    else:
        _print(figures)
    if figures["rate"] is None or (actor == "reference" and figures["complete"] < figures["rollouts"]):
        sys.exit(1)


def _plan(opened: Workspace, options: dict[str, Any]) -> Plan:
    from pipeline.llm.profiles import choose, from_environment
    from train.rollout import Plan
    from train.worlds import subset_named, tasks_of, tasks_of_subset

    settings, catalog = opened.settings, opened.catalog
    if options["subset"] and options["environments"]:
        raise click.UsageError("Name environments or a subset, not both.")
    if options["policy"] and (options["model"] or options["base_url"]):
        raise click.UsageError("Give a policy or a model, not both.")
    if options["subset"]:
        tasks = tasks_of_subset(subset_named(catalog, options["subset"]), options["split"])
        if not tasks:
            raise UserError(
                f"The subset {options['subset']!r} has no {options['split']} split: choose another --split."
            )
    else:
        tasks = tasks_of(catalog, options["environments"], _numbers(options["task"]))
    model = None
    if options["policy"] is None:
        usual = choose(settings.profiles, None, model=options["model"], base_url=options["base_url"])
        model = _sampled(usual, options)
    judge = None
    if options["reward"] != "code":
        if options["judge_model"] is None and not settings.profiles and from_environment() is None:
            raise UserError(f"--reward {options['reward']} asks a model: give --judge-model and --judge-base-url.")
        judge = choose(settings.profiles, None, model=options["judge_model"], base_url=options["judge_base_url"])
    at_once = options["concurrency"] or (model.concurrency if model else SCRIPTED_AT_ONCE)
    return Plan(
        actor=options["policy"] or "model",
        model=model and model.model_copy(update={"concurrency": min(1024, at_once)}),
        tasks=[(task.environment, task.number) for task in tasks],
        subset=options["subset"],
        tries=options["tries"],
        rules=_rules(options, model),
        rewards=_rewards(options),
        judge=judge,
        audit=_audit(options["audit"]),
        concurrency=at_once,
        most_tokens=options["most_tokens"],
        seed=options["seed"],
    )


def _numbers(task: str) -> list[int] | None:
    if task == "all":
        return None
    number = whole_number(task)
    if number is None:
        raise click.BadParameter(f"{task!r} is neither a task's number nor all.", param_hint="--task")
    return [number]


def _sampled(profile: Profile, options: dict[str, Any]) -> Profile:
    """The profile with the sampling that was asked for."""
    asked = {name: options[name] for name in ("temperature", "top_p", "top_k") if options[name] is not None}
    return profile.model_copy(update={"params": profile.params | asked})


def _rules(options: dict[str, Any], model: Profile | None) -> Rules:
    from urllib.parse import urlsplit

    from train.rules import Rules

    # OpenAI's own API takes results only for calls that were made its way.
    host = urlsplit(model.base_url).hostname or "" if model else ""
    insists = host.endswith("openai.com") or (model is not None and model.api == "azure")
    return Rules(
        form=options["form"],
        window=window_of(options["window"]),
        max_turns=options["turns"],
        max_context=options["max_context"],
        time_limit_s=options["time_limit"],
        require_thinking=options["require_thinking"],
        stop_on_slip=not options["lenient"],
        stop_on_fault=not options["lenient"],
        results_as="user" if insists else "tool",
    )


def _rewards(options: dict[str, Any]) -> Rewards:
    from train.reward import Rewards

    return Rewards(by=options["reward"], no_op_pays=options["no_op_pays"])


def _audit(path: Path | None) -> dict[str, str]:
    """What an audit's report calls verifiers."""
    if path is None:
        return {}
    import json

    try:
        rows = json.loads(path.read_text("utf-8"))["verifiers"]
        return {f"{row['name']}/{row['task']}/{row['mode']}": str(row["verdict"]) for row in rows}
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path} is not what awm-studio audit --json prints ({type(error).__name__}: {error})."
        ) from error


def _tell(trajectory: Trajectory, progress: Progress) -> None:
    if progress.done % max(1, progress.total // 20) == 0 or progress.done == progress.total:
        say(f"{progress.done} of {progress.total} rollouts; last: {trajectory.key} {trajectory.end}")


def _print(figures: dict[str, Any]) -> None:
    rate, interval = figures["rate"], figures["interval"]
    of = figures["rollouts"] - figures["excluded"]
    shown = "none" if rate is None else f"{rate:.3f} ({interval[0]:.3f} to {interval[1]:.3f})"
    print_table(
        ["", ""],
        [
            ("rollouts", figures["rollouts"]),
            ("complete", f"{figures['complete']} of {of}"),
            ("rate, 95 % interval", shown),
            ("mean reward", figures["mean_reward"]),
            *((f"ended: {end}", count) for end, count in figures["outcomes"].items()),
            *((f"slip: {slip}", count) for slip, count in figures["slips"].items()),
            *((f"left out: {why}", count) for why, count in figures["excluded_why"].items()),
            ("calls", figures["calls"]),
            ("seconds", figures["seconds"]),
        ],
    )
