"""`awm-studio train`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import rich_click as click

from pipeline.errors import UserError
from studio.commands.options import json_option, open_workspace, print_json, print_table, say, workspace_option

if TYPE_CHECKING:
    from pipeline.records import Run
    from pipeline.workspace import Workspace

BEGINS_WITHIN_S = 300.0
"""Seconds to wait for a detached training to get past its beginning, where most things go wrong."""


@click.command()
@click.option("--preset", metavar="P", help="A preset, or a TOML file like one; --presets lists them.")
@click.option("--subset", metavar="S", help="What is trained on, and tried before and after: its two splits.")
@click.option("--steps", type=click.IntRange(0), metavar="N", help="Generations of rollouts [default: the preset's].")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="A field of the preset. Repeatable.")
@click.option("--detach", is_flag=True, help="Train in a process that outlives this terminal.")
@click.option("--resume", type=int, metavar="RUN", help="Go on with a training from its last checkpoint.")
@click.option("--stop", type=int, metavar="RUN", help="Ask a training to stop after its step, with a checkpoint.")
@click.option("--presets", "show", is_flag=True, help="List the presets; with --preset, print that one.")
@json_option
@workspace_option
def train_command(
    *,
    preset: str | None,
    subset: str | None,
    steps: int | None,
    overrides: tuple[str, ...],
    detach: bool,
    resume: int | None,
    stop: int | None,
    show: bool,
    as_json: bool,
    workspace: str | None,
) -> None:
    """Train a model on a subset's tasks: a warm start on what is right, then GRPO on rollouts.

    A training is a process of its own. Its metrics, rollouts and checkpoints go to its folder as they come; Ctrl-C or
    --stop ends it after its step, and --resume continues the same curve, also after kill -9. Presets are files in
    which every value names its source: cpu-tiny needs nothing but minutes, single-gpu-lora a GPU, paper eight.

    Examples:

        awm-studio train --preset cpu-tiny --subset mix-v1

        awm-studio train --preset single-gpu-lora --subset mix-v1 --set model.name=Qwen/Qwen3-4B --detach

        awm-studio train --resume 12

        awm-studio train --presets --preset paper
    """
    if show:
        _show(preset, as_json=as_json)
        return
    from train import training_run

    with open_workspace(workspace) as opened:
        if stop is not None:
            training_run.ask_to_stop(opened, training_run.find(opened, stop))
            say(f"Training {stop} will stop after its step.")
            return
        run = _new(opened, preset, subset, steps, overrides) if resume is None else training_run.find(opened, resume)
        say(f"Training {run.id}: its folder is {opened.runs / str(run.id)}")
        process = training_run.start(opened, run, detached=detach)
        if detach:
            training_run.wait_until_it_works(opened, run, process, BEGINS_WITHIN_S)
            print_json({"run": run.id, "pid": process.pid}) if as_json else say(f"It goes on in process {process.pid}.")
            return
        figures = training_run.wait(opened, run, process)
    print_json(figures) if as_json else _print(figures)
    if figures["state"] == "stopped":
        say(f"It stopped: awm-studio train --resume {run.id} goes on.")
        sys.exit(130)


def _new(
    opened: Workspace, preset: str | None, subset: str | None, steps: int | None, overrides: tuple[str, ...]
) -> Run:
    from train import training_run
    from train.config import load

    if preset is None or subset is None:
        raise UserError("Say what to train and on what: --preset P --subset S (or --resume RUN).")
    chosen = [*overrides, *([f"grpo.steps={steps}"] if steps is not None else [])]
    return training_run.create(opened, load(preset, chosen), subset, preset=preset)


def _show(preset: str | None, *, as_json: bool) -> None:
    from train.config import load, preset_names, preset_text

    if preset is not None:
        config = load(preset)
        print_json(config.model_dump(mode="json")) if as_json else click.echo(preset_text(preset), nl=False)
        return
    rows = [(name, load(name).about.strip()) for name in preset_names()]
    if as_json:
        print_json({"presets": [{"name": name, "about": about} for name, about in rows]})
    else:
        print_table(["preset", "about"], rows)


def _print(figures: dict[str, Any]) -> None:
    interval = figures["interval"]
    after = figures["after"]
    shown = None if after is None else f"{after:.3f} ({interval[0]:.3f} to {interval[1]:.3f}) of {figures['tried']}"
    print_table(
        ["training", figures["run"]],
        [
            ("state", figures["state"]),
            ("steps", figures["steps"]),
            ("held-out tasks complete before", figures["before"]),
            ("after, 95 % interval", shown),
            ("folder", figures["folder"]),
        ],
    )
