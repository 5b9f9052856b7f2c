"""Checkpoints to try: a training's model or any model's folder, and the rules it was trained by where that is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.errors import UserError
from pipeline.llm.profiles import Profile
from train import training_run
from train.config import TrainConfig
from train.run_log import METRICS

NOWHERE = "http://127.0.0.1:9/v1"
"""The address in a checkpoint's profile until it is served; nothing listens on the discard port."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model in a folder. `rules` and `most_tokens` are those of its training; empty and None where it had none."""

    folder: Path
    rules: Mapping[str, Any] = field(default_factory=dict)
    most_tokens: int | None = None

    @property
    def profile(self) -> Profile:
        """The model as a server of this machine will offer it."""
        return Profile(model=self.folder.name, base_url=NOWHERE, api_key_env="", retries=0, concurrency=64)


def find_checkpoint(runs: Path, name: str) -> Checkpoint:
    """The checkpoint in a folder, or the model of the training with a number. Raises UserError where there is none."""
    folder = runs / name / "model" if name.isdigit() and not Path(name).exists() else Path(name).absolute()
    if not any((folder / file).is_file() for file in ("config.json", "adapter_config.json")):
        raise UserError(
            f"{_without_model(runs, name, folder)}: name a training that is done, or a folder with a config.json and "
            "weights, for example runs/12/model."
        )
    config = _trained_by(folder)
    if config is None:
        return Checkpoint(folder)
    return Checkpoint(folder, config.rules.model_dump(), config.most_tokens)


def _without_model(runs: Path, name: str, folder: Path) -> str:
    if not name.isdigit():
        return f"{folder} holds no model"
    if (runs / name / training_run.CONFIG).is_file():
        return f"Training {name} has no finished model"
    return f"Run {name} is no training" if (runs / name).is_dir() else f"There is no training {name}"


def _trained_by(folder: Path) -> TrainConfig | None:
    """What the training did whose run's folder the checkpoint lies in."""
    for place in (folder.parent, folder.parent.parent):
        if (place / METRICS).is_file() and (place / training_run.CONFIG).is_file():
            return training_run.config_of(place)
    return None
