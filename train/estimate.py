"""What a training will take, as far as it can be known before it starts, and what of it would not fit this machine."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from train.config import TrainConfig

PROGRAM_MB = (30, 75)
"""What one loaded environment takes, measured on blueprints and on AWM's released environments."""

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes of a parameter, by its type."""

ADAM_BYTES = 8
"""AdamW's two moments of a trained parameter, in float32."""

SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "intermediate_size")
"""What a model's config.json calls its sizes."""

_BILLIONS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*([bm])(?![a-z])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Upper bounds where it says "most"; None where nothing is known beforehand.

    `instances` run at once, `rollouts` are those of the whole training, `passes` is how often each training task comes
    up in them. `most_turns` and `most_tokens` are sampled in a step: every turn of every rollout, each at its longest.
    `parameters` are the model's, from its configuration or its name. `model_bytes` hold parameters, gradients, Adam's
    moments and the reference model, without activations; `disk_bytes` hold the checkpoints that are kept.
    `environment_bytes` are those of the environments that are kept loaded, from and to.
    """

    instances: int
    rollouts: int
    passes: float | None
    most_turns: int
    most_tokens: int
    parameters: int | None
    model_bytes: int | None
    disk_bytes: int | None
    environment_bytes: tuple[int, int]


def estimate(config: TrainConfig, tasks: int, environments: int) -> Estimate:
    """What a training on so many tasks of so many environments will take."""
    instances = config.grpo.trajectories * config.processes
    groups = instances / config.grpo.options.get("num_generations", 8)
    parameters = parameters_of(config)
    loaded = min(config.programs, environments)
    low, high = (loaded * megabytes * 1_000_000 for megabytes in PROGRAM_MB)
    turns = instances * config.rules.max_turns
    return Estimate(
        instances=instances,
        rollouts=instances * config.grpo.steps,
        passes=groups * config.grpo.steps / tasks if tasks else None,
        most_turns=turns,
        most_tokens=turns * config.most_tokens,
        parameters=parameters,
        model_bytes=None if parameters is None else _model_bytes(config, parameters),
        disk_bytes=None if parameters is None else _disk_bytes(config, parameters),
        environment_bytes=(low, high),
    )


def parameters_of(config: TrainConfig) -> int | None:
    """How many parameters a model has: computed from its sizes, else read off its name; None where neither says."""
    if config.model.tiny is not None:
        sizes = config.model.tiny
        return _transformer(sizes.vocabulary, sizes.hidden, sizes.layers, 3 * sizes.hidden)
    assert config.model.name is not None
    try:
        told = json.loads((Path(config.model.name) / "config.json").read_text("utf-8"))
        return _transformer(*(told[key] for key in SIZES))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    named = _BILLIONS.search(Path(config.model.name).name)
    return None if named is None else round(float(named[1]) * (1e9 if named[2] in "bB" else 1e6))


def _transformer(vocabulary: int, hidden: int, layers: int, inner: int) -> int:
    """Parameters of a Qwen3-like model with tied embeddings, to some ten per cent: embeddings, attention whose keys
    and values take half as many heads, and three matrices of the inner width."""
    return vocabulary * hidden + layers * (3 * hidden * hidden + 3 * hidden * inner)


def _model_bytes(config: TrainConfig, parameters: int) -> int:
    size = BYTES.get(config.model.dtype, 4)
    reference = size if config.grpo.options.get("beta", 0.0) and config.lora is None else 0
    if config.lora is not None:  # only adapters, a percent or so, have gradients and moments
        return parameters * size
    return parameters * (size + size + ADAM_BYTES + reference)


def _disk_bytes(config: TrainConfig, parameters: int) -> int:
    """Checkpoints with weights and moments, as many as are kept and one that is being written, and the model itself."""
    if config.lora is not None:
        return parameters * BYTES.get(config.model.dtype, 4) // 10
    size = BYTES.get(config.model.dtype, 4)
    kept = config.grpo.options.get("save_total_limit") or 2
    return parameters * ((kept + 1) * (size + ADAM_BYTES) + size)
