"""`awm-studio ablate`: the paper's questions, one command each."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import rich_click as click

from pipeline.errors import UserError
from pipeline.words import whole_number
from studio.commands.options import (
    counted,
    json_option,
    open_workspace,
    print_json,
    print_table,
    say,
    workspace_option,
)

if TYPE_CHECKING:
    from pipeline.llm.profiles import Profile
    from pipeline.records import Run
    from pipeline.workspace import Workspace
    from train.ablate import Answer
    from train.ablate_training import Parts
    from train.config import TrainConfig

F = TypeVar("F", bound=Callable[..., Any])


@click.group("ablate")
def ablate_command() -> None:
    """The paper's questions, one command each, with a report as Markdown and JSON.

    Examples:

        awm-studio ablate verification --run 4 --model gpt-5-mini

        awm-studio ablate history --subset mix-v1 --preset cpu-tiny

        awm-studio ablate scaling --subset mix-v1 --preset cpu-tiny --sizes 10,100,526

        awm-studio ablate simulator --subset mix-v1 --model gpt-5-mini
    """


def model_options(command: F) -> F:
    """`--model` and `--base-url`."""
    url = click.option("--base-url", metavar="U", help="Its OpenAI-compatible server.")
    name = click.option("--model", metavar="M", help="A model's name, or a profile's [default: the profiles].")
    return name(url(command))


def training_options(command: F) -> F:
    """What trainings and evaluations need, or the run to go on with."""
    options = (
        click.option("--subset", metavar="S", help="What is trained on and tried: its two splits."),
        click.option("--preset", metavar="P", default="cpu-tiny", show_default=True, help="A preset or a TOML file."),
        click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="A field of the preset."),
        click.option("--tries", type=click.IntRange(1), default=4, show_default=True, help="Rollouts a task."),
        click.option("--resume", type=int, metavar="RUN", help="Go on with an ablation."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@ablate_command.command("verification")
@click.option("--run", "runs", type=int, multiple=True, metavar="RUN", help="A run of rollouts. Repeatable.")
@click.option("--most", type=click.IntRange(1), metavar="N", help="At most so many rollouts.")
@model_options
@json_option
@workspace_option
def verification(
    *,
    runs: tuple[int, ...],
    most: int | None,
    model: str | None,
    base_url: str | None,
    as_json: bool,
    workspace: str | None,
) -> None:
    """Code alone, an LLM alone, or an LLM with the code's evidence: agreement, accept rates, blocked tasks, cost.

    All three judge the same recorded rollouts. Judgements are kept, so that doing it again asks only for what is
    missing.

    Examples:

        awm-studio ablate verification --run 4 --model gpt-5-mini
    """
    from itertools import islice
    from pathlib import Path

    from train.ablate_verification import ablate_verification
    from train.files import recorded

    if not runs:
        raise UserError("Name a run of rollouts to judge: --run RUN (awm-studio rollout makes one).")
    with open_workspace(workspace) as opened:
        judge = _model(opened, model, base_url)
        found = [each for number in runs for each in recorded(Path(str(number)), opened.runs)]
        chosen = list(islice(found, most))
        config = {"runs": list(runs), "model": judge.model, "rollouts": len(chosen)}
        _finish(opened, "verification", config, lambda: ablate_verification(opened, chosen, judge), as_json=as_json)


@ablate_command.command("simulator")
@click.option("--subset", metavar="S", help="The tasks of its test split, by their reference solutions.")
@click.option("--env", "environments", multiple=True, metavar="ENV", help="All tasks of an environment. Repeatable.")
@click.option("--run", "number", type=int, metavar="RUN", help="The calls of recorded rollouts instead.")
@click.option("--most", type=click.IntRange(1), metavar="N", help="At most so many tasks.")
@model_options
@json_option
@workspace_option
def simulator(
    *,
    subset: str | None,
    environments: tuple[str, ...],
    number: int | None,
    most: int | None,
    model: str | None,
    base_url: str | None,
    as_json: bool,
    workspace: str | None,
) -> None:
    """A model as the environment: its state against the real database after every call, latency and cost a step.

    The baseline the paper beats: the model is given the rows, the operation and the call, and says what comes back and
    which rows change. The same calls are made for real.

    Examples:

        awm-studio ablate simulator --subset mix-v1 --model gpt-5-mini --most 20
    """
    from train.ablate_cases import cases_of_run, cases_of_solutions
    from train.ablate_simulator import ablate_simulator

    if sum(map(bool, (subset, environments, number))) != 1:
        raise UserError("Say which calls: --subset S, --env ENV or --run RUN, one of them.")
    with open_workspace(workspace) as opened:
        profile = _model(opened, model, base_url)
        found = cases_of_run(opened, number) if number else cases_of_solutions(opened, subset, environments)
        cases = found[:most]
        config = {"model": profile.model, "tasks": len(cases)}
        tell = counted("task")
        _finish(
            opened, "simulator", config, lambda: ablate_simulator(opened, cases, profile, tell=tell), as_json=as_json
        )


@ablate_command.command("rewards")
@training_options
@click.option("--judge", metavar="PROFILE", default="default", show_default=True, help="The profile that judges.")
@json_option
@workspace_option
def rewards(*, as_json: bool, workspace: str | None, **options: Any) -> None:
    """Training with code, with an LLM, and with an LLM and the code's evidence as judges, tried on the same tasks.

    The other half of verification, for where trainings can be afforded.

    Examples:

        awm-studio ablate rewards --subset mix-v1 --preset cpu-tiny --judge default
    """
    from train.ablate_rewards import ablate_rewards

    def work(parts: Parts, config: TrainConfig, kept: dict[str, Any]) -> Answer:
        return ablate_rewards(
            parts, config, kept["subset"], judge=kept["judge"], tries=kept["tries"], preset=kept["preset"]
        )

    _train(workspace, "rewards", options, work, as_json=as_json)


@ablate_command.command("history")
@training_options
@click.option("--window", type=click.IntRange(0), default=3, show_default=True, help="Exchanges that are kept.")
@json_option
@workspace_option
def history(*, as_json: bool, workspace: str | None, **options: Any) -> None:
    """Training with a history window against training with all of the history, each tried both ways.

    Examples:

        awm-studio ablate history --subset mix-v1 --preset cpu-tiny --window 3
    """
    from train.ablate_history import ablate_history

    def work(parts: Parts, config: TrainConfig, kept: dict[str, Any]) -> Answer:
        return ablate_history(
            parts, config, kept["subset"], window=kept["window"], tries=kept["tries"], preset=kept["preset"]
        )

    _train(workspace, "history", options, work, as_json=as_json)


@ablate_command.command("scaling")
@training_options
@click.option("--sizes", metavar="N,N", help="Environments of each training [default: the subset's series].")
@json_option
@workspace_option
def scaling(*, as_json: bool, workspace: str | None, **options: Any) -> None:
    """Training on nested subsets: a figure with intervals and how many environments there really were.

    Examples:

        awm-studio ablate scaling --subset mix-v1 --preset cpu-tiny --sizes 10,100,526,1000
    """
    from pipeline.snapshots import replace_file
    from train.ablate_scaling import SIZES, ablate_scaling
    from train.worlds import subset_named

    def work(parts: Parts, config: TrainConfig, kept: dict[str, Any]) -> Answer:
        series = subset_named(parts.workspace.catalog, kept["subset"]).recipe.series
        sizes = _sizes(kept["sizes"]) or series or SIZES
        answer, figure = ablate_scaling(
            parts, config, kept["subset"], sizes, tries=kept["tries"], preset=kept["preset"]
        )
        replace_file(parts.folder / "scaling.svg", figure.encode())
        return answer

    _sizes(options["sizes"])
    _train(workspace, "scaling", options, work, as_json=as_json)


def _sizes(text: str | None) -> list[int]:
    if text is None:
        return []
    numbers = [whole_number(word.strip()) for word in text.split(",")]
    if not all(numbers):
        raise click.BadParameter(f"{text!r} is not numbers with commas between.", param_hint="--sizes")
    return [number for number in numbers if number]


def _model(opened: Workspace, model: str | None, base_url: str | None) -> Profile:
    from pipeline.llm.profiles import choose

    return choose(opened.settings.profiles, None, model=model, base_url=base_url)


def _train(
    workspace: str | None,
    name: str,
    options: dict[str, Any],
    work: Callable[[Parts, TrainConfig, dict[str, Any]], Answer],
    *,
    as_json: bool,
) -> None:
    """Make or go on with an ablation that trains."""
    from train import ablate
    from train.ablate_training import Parts
    from train.config import load
    from train.worlds import subset_named

    with open_workspace(workspace) as opened:
        if (number := options.pop("resume")) is not None:
            run = ablate.find(opened, name, number)
        else:
            if options["subset"] is None:
                raise UserError("Say what to train on: --subset S (or --resume RUN).")
            subset_named(opened.catalog, options["subset"])
            load(options["preset"], options["overrides"])
            run = ablate.create(opened, name, {**options, "overrides": list(options["overrides"])})
        kept = run.config
        parts = Parts(opened, opened.runs / str(run.id), tell=say)
        config = load(kept["preset"], kept["overrides"])
        try:
            _work(opened, run, lambda: work(parts, config, kept), as_json=as_json)
        except KeyboardInterrupt:
            say(f"awm-studio ablate {name} --resume {run.id} goes on.")
            raise


def _finish(opened: Workspace, name: str, config: dict[str, Any], work: Callable[[], Answer], *, as_json: bool) -> None:
    from train import ablate

    _work(opened, ablate.create(opened, name, config), work, as_json=as_json)


def _work(opened: Workspace, run: Run, work: Callable[[], Answer], *, as_json: bool) -> None:
    """Do it, keep the report, and print it."""
    from train import ablate

    say(f"Ablation {run.id}: its folder is {opened.runs / str(run.id)}")
    with ablate.working_on(opened, run):
        answer = work()
        folder = ablate.keep(opened, run, answer)
    if as_json:
        print_json({"ablation": run.config["ablation"], "run": run.id, **answer.document()})
    else:
        _print(answer)
    say(f"The report is {folder / ablate.MARKDOWN}.")
    if answer.state != "done":
        say(f"awm-studio: {answer.why}")
        sys.exit(2)


def _print(answer: Answer) -> None:
    from train.ablate import shown

    click.echo(answer.question)
    click.echo("n: " + ", ".join(f"{count:,} {what}" for what, count in answer.n.items()))
    for table in answer.tables:
        click.echo()
        print_table(table.columns, shown(table), title=table.heading)
    for note in answer.notes:
        click.echo(f"- {note}")
