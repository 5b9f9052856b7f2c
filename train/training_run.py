"""A training as a run of the workspace: checked and recorded, started in a process of its own, stopped, summed up."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.subset import TEST, TRAIN
from pipeline.engine.lock import worker
from pipeline.errors import UserError
from pipeline.model import Mode
from pipeline.records import Run
from pipeline.snapshots import replace_file
from train.config import TrainConfig, require_installed
from train.rates import rate, shown_interval
from train.run_log import STOP, read_metrics, read_status
from train.worlds import Task, Worlds, subset_named, tasks_of_subset

if TYPE_CHECKING:
    from pipeline.workspace import Workspace

KIND = "training"
CONFIG = "config.json"

QUIET = {
    "HF_HUB_DISABLE_TELEMETRY": "1",  # TRL reports each start to its makers otherwise
    "TRL_EXPERIMENTAL_SILENCE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_VERBOSITY": "error",
}
"""What a training process finds in its environment, unless it is set to something else."""


def create(workspace: Workspace, config: TrainConfig, subset: str, *, preset: str = "") -> Run:
    """Record a training with everything it needs. It is not started by this.

    Raises UserError for whatever is known beforehand to go wrong.
    """
    require_installed(config)
    chosen = subset_named(workspace.catalog, subset)
    tasks = tasks_of_subset(chosen, TRAIN)
    _require_tasks(config, subset, tasks)
    if config.rewards.by != "code" and config.judge not in workspace.settings.profiles:
        raise UserError(
            f"rewards.by is {config.rewards.by}: name a profile of the settings in judge, for example default."
        )
    _require_verifiers(config, Worlds(workspace.catalog, chosen), tasks)
    about = {
        "preset": preset,
        "subset": subset,
        "tasks": len(tasks),
        "held_out": len(tasks_of_subset(chosen, TEST)),
        "steps": config.grpo.steps,
        "model": config.model.name or "tiny",
    }
    number = workspace.catalog.add_run(KIND, about)
    folder = workspace.runs / str(number)
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / CONFIG, config.model_dump_json(indent=1).encode())
    return find(workspace, number)


def find(workspace: Workspace, number: int) -> Run:
    """A training by its number. Raises UserError where there is none."""
    for run in workspace.catalog.runs():
        if run.kind == KIND and run.id == number:
            return run
    raise UserError(f"There is no training with the number {number}; awm-studio run list shows the runs.")


def config_of(folder: Path) -> TrainConfig:
    """What a training does. Raises UserError where its folder is gone."""
    try:
        return TrainConfig.model_validate_json((folder / CONFIG).read_bytes())
    except OSError as error:
        raise UserError(f"{folder / CONFIG} cannot be read ({error.strerror}): the training cannot go on.") from None


def start(workspace: Workspace, run: Run, *, detached: bool) -> subprocess.Popen[bytes]:
    """Work on a training in a process of its own; detached, it outlives this one and its words go to the logs.

    Raises UserError where a process works on it already.
    """
    folder = workspace.runs / str(run.id)
    if (pid := worker(folder)) is not None:
        raise UserError(f"Process {pid} is working on training {run.id} already.")
    config = config_of(folder)
    (folder / STOP).unlink(missing_ok=True)
    command = [sys.executable, *_launcher(config), "-m", "train.work", str(workspace.path), str(run.id)]
    environment = {**QUIET, **os.environ}
    if not detached:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment)
    with (workspace.logs / f"run-{run.id}.log").open("ab") as words:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=words, stderr=words, env=environment, start_new_session=True
        )


def wait(workspace: Workspace, run: Run, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Wait for a training that was started here; returns its figures. Ctrl-C reaches it too, and is waited out.

    Raises UserError with the reason where it failed.
    """
    while True:
        try:
            code = process.wait()
            break
        except KeyboardInterrupt:
            continue
    status = read_status(workspace.runs / str(run.id))
    if status.get("state") == "failed":
        raise UserError(f"Training {run.id} failed: {status.get('detail')}")
    if status.get("state") not in ("done", "stopped"):
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        raise UserError(
            f"The process of training {run.id} ended {how} without a word: awm-studio train --resume {run.id} goes on "
            "from its last checkpoint."
        )
    return figures(workspace, find(workspace, run.id))


def wait_until_it_works(workspace: Workspace, run: Run, process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait until a detached training is past its beginning, where most things go wrong; `seconds` at most.

    Raises UserError with the reason where it failed.
    """
    folder = workspace.runs / str(run.id)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        status = read_status(folder)
        if status.get("state") == "failed":
            raise UserError(f"Training {run.id} failed: {status.get('detail')}")
        if status.get("phase") not in (None, "starting") or process.poll() is not None:
            return
        time.sleep(0.2)


def ask_to_stop(workspace: Workspace, run: Run) -> None:
    """Ask a training to stop after its step. Raises UserError where nothing works on it."""
    folder = workspace.runs / str(run.id)
    if worker(folder) is None:
        raise UserError(f"Training {run.id} is not running.")
    (folder / STOP).touch()


def figures(workspace: Workspace, run: Run) -> dict[str, Any]:
    """How a training stands, as `awm-studio train --json` prints it.

    `before` and `after` are the shares of held-out tasks that were complete, of `tried` rollouts each; None where
    there were none to try. `interval` is the 95 % interval of `after`.
    """
    folder = workspace.runs / str(run.id)
    steps = [event["step"] for event in read_metrics(folder, "step")]
    tries = read_metrics(folder, "try")
    before = next((event for event in tries if event["step"] == 0), None)
    after = next((event for event in reversed(tries) if event["step"] > 0), None)
    return {
        "run": run.id,
        "state": read_status(folder).get("state", run.state),
        "steps": max(steps, default=0),
        "before": before and before["rate"],
        "after": after and after["rate"],
        "interval": after and shown_interval(rate(after["complete"], after["judged"])),
        "tried": after and after["judged"],
        "folder": str(folder),
    }


def _launcher(config: TrainConfig) -> list[str]:
    if config.processes == 1 and config.accelerate is None:
        return []
    file = ["--config_file", config.accelerate] if config.accelerate else []
    return ["-m", "accelerate.commands.launch", *file, "--num_processes", str(config.processes)]


def _require_tasks(config: TrainConfig, subset: str, tasks: list[Task]) -> None:
    size = config.grpo.options.get("num_generations", 8)
    at_once = config.grpo.trajectories * config.processes
    if at_once % size:
        raise UserError(
            f"A generation makes {at_once} rollouts (per_device_train_batch_size x steps_per_generation x processes), "
            f"which is not a multiple of num_generations, {size}."
        )
    if len(tasks) < at_once // size:
        raise UserError(
            f"The subset {subset!r} has {len(tasks)} training tasks, and a generation needs {at_once // size}: pick "
            "more, or make per_device_train_batch_size or steps_per_generation smaller."
        )


def _require_verifiers(config: TrainConfig, worlds: Worlds, tasks: list[Task]) -> None:
    if config.rewards.by != "code":
        return
    lacking = [t for t in tasks if worlds.environment(t.environment).verifier(t.number, Mode.code) is None]
    if lacking:
        raise UserError(
            f"{lacking[0].environment} has no code verifier for task {lacking[0].number} ({len(lacking)} tasks have "
            "none): pick tasks that have one."
        )
