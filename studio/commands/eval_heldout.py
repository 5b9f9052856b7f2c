"""`awm-studio eval heldout`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import rich_click as click

from pipeline.errors import UserError
from studio.commands.eval_report import print_report
from studio.commands.options import Finite, json_option, open_workspace, print_json, say, window_of, workspace_option

if TYPE_CHECKING:
    from pipeline.llm.profiles import Profile
    from pipeline.records import Run
    from pipeline.workspace import Workspace
    from train.rollout import Plan, Progress
    from train.trajectory import Trajectory


@click.command("heldout")
@click.option("--subset", metavar="NAME", help="Whose test split is tried: the concepts that it holds out.")
@click.option("--model", metavar="M", help="A model's name, or a profile's [default: the settings' profiles].")
@click.option("--base-url", metavar="U", help="The OpenAI-compatible server, for example http://localhost:8000/v1.")
@click.option("--checkpoint", metavar="DIR|RUN", help="A model's folder or a training's number, run on this machine.")
@click.option("--policy", type=click.Choice(["reference", "noop", "random"]), help="A script instead of a model.")
@click.option("--tries", type=click.IntRange(1), default=1, show_default=True, metavar="K", help="Rollouts a task.")
@click.option("--tasks", type=click.IntRange(1), metavar="N", help="Only the first N tasks.")
@click.option("--concurrency", type=click.IntRange(1, 4096), metavar="C", help="Rollouts at once.")
@click.option("--form", type=click.Choice(["text", "native"]), default="text", show_default=True)
@click.option("--window", metavar="W|all", help="Exchanges the agent sees [default: 10, or as it was trained].")
@click.option("--turns", type=click.IntRange(1), help="Turns an agent has [default: 20, or as it was trained].")
@click.option("--most-tokens", type=click.IntRange(1), help="Tokens of a turn [default: 2048, or as it was trained].")
@click.option("--temperature", type=Finite(0), help="Of the model [default: 0.6].")
@click.option("--top-p", type=Finite(0, 1), help="Of the model [default: 0.95].")
@click.option("--top-k", type=click.IntRange(0), help="Of the model; 0: not sent [default: 20].")
@click.option("--retries", type=click.IntRange(0, 50), help="Further tries of a request [default: the profile's].")
@click.option("--resume", is_flag=True, help="Go on with an unfinished evaluation: the newest, or --run's.")
@click.option("--run", "number", type=int, metavar="RUN", help="The evaluation to go on with.")
@json_option
@workspace_option
def heldout_command(*, resume: bool, number: int | None, as_json: bool, workspace: str | None, **options: Any) -> None:
    """Try the concepts that a subset holds out.

    Success, pass@k and pass^k come with 95 % intervals, by concept, domain, difficulty and kind of task. Rollouts that
    the environment or the model's server failed are left out and counted. Where the server fails for good the
    evaluation stops with what it has, and --resume does what is missing; where nothing was judged there is no score.

    Exits with 2 where it could not be done to its end.

    Examples:

        awm-studio eval heldout --subset mix-v1 --model Qwen/Qwen3-4B --base-url http://localhost:8000/v1 --tries 4

        awm-studio eval heldout --subset mix-v1 --checkpoint 12 --tries 4

        awm-studio eval heldout --resume
    """
    from train import evaluate, evaluate_heldout

    with open_workspace(workspace) as opened:
        run = evaluate.find(opened, number, suite=evaluate_heldout.SUITE) if resume or number else _new(opened, options)
        say(f"Evaluation {run.id}: its folder is {opened.runs / str(run.id)}")
        document = evaluate_heldout.work(opened, run, tell=_tell)
    if as_json:
        print_json({name: value for name, value in document.items() if name != "items"})
    else:
        print_report(document)
    if document["state"] != "done":
        say(f"awm-studio: {document['why']}\nawm-studio eval heldout --resume --run {run.id} goes on.")
        sys.exit(2)


def _new(opened: Workspace, options: dict[str, Any]) -> Run:
    from train import evaluate_heldout

    if options["subset"] is None:
        raise UserError("Say what to try: --subset NAME (or --resume).")
    if (
        sum(bool(options[name]) for name in ("checkpoint", "policy")) + bool(options["model"] or options["base_url"])
        > 1
    ):
        raise click.UsageError("Give a model, a checkpoint or a policy, one of them.")
    tasks = evaluate_heldout.held_out_tasks(opened, options["subset"])[: options["tasks"]]
    if options["checkpoint"]:
        from train.checkpoints import find_checkpoint

        found = find_checkpoint(opened.runs, options["checkpoint"])
        plan = _plan(tasks, found.profile, options, {**found.rules, "stop_on_slip": False}, found.most_tokens)
        return evaluate_heldout.create(opened, plan, checkpoint=str(found.folder))
    return evaluate_heldout.create(opened, _plan(tasks, _model(opened, options), options, {}, None))


def _model(opened: Workspace, options: dict[str, Any]) -> Profile | None:
    from pipeline.llm.profiles import choose

    if options["policy"]:
        return None
    profile = choose(opened.settings.profiles, None, model=options["model"], base_url=options["base_url"])
    return profile if options["retries"] is None else profile.model_copy(update={"retries": options["retries"]})


def _plan(
    tasks: list[tuple[str, int]],
    model: Profile | None,
    options: dict[str, Any],
    trained: dict[str, Any],
    most_tokens: int | None,
) -> Plan:
    """The plan; `trained` are the rules that a checkpoint was trained by."""
    from train.evaluate_heldout import plan_for

    return plan_for(
        tasks,
        subset=options["subset"],
        model=model,
        actor=options["policy"] or "model",
        tries=options["tries"],
        concurrency=options["concurrency"],
        most_tokens=options["most_tokens"] or most_tokens,
        sampling={name: options[name] for name in ("temperature", "top_p", "top_k") if options[name] is not None},
        rules={"form": options["form"], **trained, **_asked(options)},
    )


def _asked(options: dict[str, Any]) -> dict[str, Any]:
    """The rules that were asked for."""
    window, asked = options["window"], {}
    if window is not None:
        asked["window"] = window_of(window)
    return asked | ({"max_turns": options["turns"]} if options["turns"] else {})


def _tell(trajectory: Trajectory, progress: Progress) -> None:
    if progress.done % max(1, progress.total // 20) == 0 or progress.done == progress.total:
        say(f"{progress.done} of {progress.total} rollouts; last: {trajectory.key} {trajectory.end}")
