"""What would keep a training from working, as far as it can be known before it starts.

Nothing heavy is imported here and no model is loaded: what only loading can tell is told by the run itself.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from curation.subset import TEST, TRAIN
from pipeline.errors import UserError
from pipeline.model import Mode
from pipeline.places import named_place
from train.config import TrainConfig, require_installed
from train.estimate import Estimate, estimate
from train.worlds import Task, Worlds, subset_named, tasks_of_subset

if TYPE_CHECKING:
    from pipeline.workspace import Workspace

ANSWERS_WITHIN_S = 2.0
"""Seconds a model's server has to take a connection."""

WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")
"""Files of which a folder with a model has some."""


@dataclass(frozen=True, slots=True)
class Ready:
    """What was found to be in order: the tasks to train on and to try, and what it will take."""

    train: list[Task]
    test: list[Task]
    estimate: Estimate


def check(workspace: Workspace, config: TrainConfig, subset: str) -> Ready:
    """Look at everything that can go wrong. Raises UserError for the first thing that would."""
    require_installed(config)
    chosen = subset_named(workspace.catalog, subset)
    tasks, test = tasks_of_subset(chosen, TRAIN), tasks_of_subset(chosen, TEST)
    _require_tasks(config, subset, tasks)
    if config.rewards.by != "code" and config.judge not in workspace.settings.profiles:
        raise UserError(
            f"rewards.by is {config.rewards.by}: name a profile of the settings in judge, for example default."
        )
    worlds = Worlds(workspace.catalog, chosen)
    _require_verifiers(config, worlds, tasks)
    _require_demonstrations(config, worlds, tasks)
    if config.model.name is not None:
        _require_model(config.model.name)
    if config.accelerate is not None and not Path(config.accelerate).is_file():
        raise UserError(f"There is no file {config.accelerate} with a configuration for accelerate.")
    if config.grpo.options.get("use_vllm") and config.grpo.options.get("vllm_mode") == "server":
        _require_server(config)
    taken = estimate(config, len(tasks), len({task.environment for task in tasks}))
    _require_disk(workspace.runs, taken)
    return Ready(tasks, test, taken)


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


def _require_demonstrations(config: TrainConfig, worlds: Worlds, tasks: list[Task]) -> None:
    """A warm start learns from solutions or records, and a tiny model's tokenizer is made for them."""
    if not config.warmup.steps and config.model.tiny is None:
        return
    solved = config.warmup.solutions and any(worlds.environment(t.environment).solution(t.number) for t in tasks)
    if not solved and not config.warmup.runs:
        raise UserError(
            "There is nothing to warm up on: no training task has a reference solution. Name runs with complete "
            "records, such as warmup.runs=[12] (awm-studio rollout makes them), save your own calls as solutions, or "
            "take a preset whose model knows tool calls already, with warmup.steps=0."
        )


def _require_model(name: str) -> None:
    """A model that is a folder, or was downloaded, is looked at; one that is neither must be downloadable."""
    folder = named_place(name) if name.startswith("~") else Path(name)
    if folder.is_dir():
        if not (folder / "config.json").is_file() or not any(any(folder.glob(kind)) for kind in WEIGHTS):
            raise UserError(f"{folder} holds no model: there must be a config.json and weights in it.")
        _require_template(folder, name)
    elif folder.is_absolute() or name.startswith((".", "~")):
        raise UserError(f"There is no folder {name}: name a folder with a model, or one on the Hugging Face hub.")
    elif (cached := _cached(name)) is not None:
        _require_template(cached, name)
    elif os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on"):
        raise UserError(f"The model {name} was not downloaded before, and HF_HUB_OFFLINE forbids doing so now.")


def _cached(name: str) -> Path | None:
    """Where an earlier download has put a model."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(name, "config.json")
    except HFValidationError:
        raise UserError(f"{name!r} is neither a folder nor a name like Qwen/Qwen3-4B.") from None
    return Path(found).parent if isinstance(found, str) else None


def _require_template(folder: Path, name: str) -> None:
    """A chat template is in a file of its own, or in the tokenizer's configuration."""
    if any((folder / file).is_file() for file in ("chat_template.jinja", "chat_template.json")):
        return
    try:
        told: Any = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    except (OSError, ValueError):
        told = {}
    if not told.get("chat_template"):
        raise UserError(
            f"The tokenizer of {name} has no chat template, so nothing says how a conversation is written for it: "
            "choose a chat model, or give its tokenizer a template."
        )


def _require_server(config: TrainConfig) -> None:
    options = config.grpo.options
    url = options.get("vllm_server_base_url")
    place = urlsplit(url) if url else None
    host = (place.hostname if place else options.get("vllm_server_host")) or "127.0.0.1"
    port = (place.port if place else options.get("vllm_server_port")) or 8000
    try:
        socket.create_connection((host, port), ANSWERS_WITHIN_S).close()
    except OSError as error:
        raise UserError(
            f"No vLLM server answers at {host}:{port} ({error.strerror or error}): start one with "
            f"trl vllm-serve --model {config.model.name} --port {port}, or set grpo.options.vllm_mode=colocate."
        ) from None


def _require_disk(runs: Path, taken: Estimate) -> None:
    free = shutil.disk_usage(runs).free
    if taken.disk_bytes is not None and taken.disk_bytes > free:
        raise UserError(
            f"The checkpoints will take about {taken.disk_bytes / 1e9:.1f} GB, and {runs} has {free / 1e9:.1f} GB "
            "left: free some space, or keep fewer with grpo.options.save_total_limit."
        )
