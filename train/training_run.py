"""A training as a run of the workspace: checked and recorded, started in a process of its own, stopped, summed up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pipeline.engine.lock import worker
from pipeline.errors import UserError
from pipeline.records import Run
from pipeline.snapshots import replace_file
from train import preflight
from train.config import TrainConfig, fault
from train.rates import rate, shown_interval
from train.run_log import STOP, read_metrics, read_status

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
    ready = preflight.check(workspace, config, subset)
    about = {
        "preset": preset,
        "subset": subset,
        "tasks": len(ready.train),
        "held_out": len(ready.test),
        "steps": config.grpo.steps * config.grpo.updates,
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
    """What a training does. Raises UserError where its folder is gone, or its file is damaged or of another version."""
    try:
        return TrainConfig.model_validate_json((folder / CONFIG).read_bytes())
    except OSError as error:
        raise UserError(f"{folder / CONFIG} cannot be read ({error.strerror}): the training cannot go on.") from None
    except ValidationError as error:
        raise UserError(f"{folder / CONFIG} is damaged, or of another version: {fault(error)}") from None


def start(workspace: Workspace, run: Run, *, detached: bool) -> subprocess.Popen[bytes]:
    """Work on a training in a process of its own; detached, it outlives this one and its words go to the logs.

    Raises UserError where a process works on it already.
    """
    folder = workspace.runs / str(run.id)
    if (pid := worker(folder)) is not None:
        raise UserError(f"Process {pid} is working on training {run.id} already.")
    config = config_of(folder)
    (folder / STOP).unlink(missing_ok=True)
    command = [sys.executable, *launcher(config), "-m", "train.work", str(workspace.path), str(run.id)]
    environment = {**QUIET, **os.environ}
    if not detached:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment)
    with log_of(workspace, run).open("ab") as words:
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


def delete(workspace: Workspace, run: Run) -> None:
    """Delete a training's folder: checkpoints, model, records, curves. The catalog goes on saying that it was.

    Raises UserError where a process works on it.
    """
    folder = workspace.runs / str(run.id)
    if (pid := worker(folder)) is not None:
        raise UserError(f"Process {pid} is working on training {run.id}: stop it first.")
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise UserError(f"{folder} cannot be deleted: {error.strerror}.") from error
    log_of(workspace, run).unlink(missing_ok=True)
    workspace.catalog.update_run(run.id, state="deleted", pid=None)


def log_of(workspace: Workspace, run: Run) -> Path:
    """The file that a detached training's process writes its words to."""
    return workspace.logs / f"run-{run.id}.log"


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


def launcher(config: TrainConfig) -> list[str]:
    """The arguments for Python that start a training's processes; none where it is one."""
    if config.processes == 1 and config.accelerate is None:
        return []
    # a configuration file has its own port; otherwise any free one is taken, so that two trainings do not meet
    file = ["--config_file", config.accelerate] if config.accelerate else ["--main_process_port", "0"]
    return ["-m", "accelerate.commands.launch", *file, "--num_processes", str(config.processes)]
