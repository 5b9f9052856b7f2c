"""What a training run does, as a file a person can read: presets, overrides, and what is wrong with them."""

from __future__ import annotations

import difflib
import importlib.util
import json
import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from curation.extras import require
from pipeline.errors import UserError
from train.reward import Rewards
from train.rules import Rules
from train.tiny import TinyModel

_CLOSED = ConfigDict(frozen=True, extra="forbid")


RESERVED = frozenset({"output_dir", "max_steps", "max_completion_length", "seed", "logging_steps", "disable_tqdm"})
"""Fields of `trl.GRPOConfig` that follow from ours (`grpo.steps`, `most_tokens`, `seed`) or that the log needs."""

COUNTS = frozenset(
    {
        "num_generations",
        "per_device_train_batch_size",
        "steps_per_generation",
        "gradient_accumulation_steps",
        "num_iterations",
        "save_total_limit",
    }
)
"""Fields of `trl.GRPOConfig` by which it is known beforehand what a training takes."""


class Model(BaseModel):
    """Which model is trained: one by name or path, or a tiny one made on the spot."""

    model_config = _CLOSED

    name: str | None = None
    """A Hugging Face model's name, or a folder."""
    tiny: TinyModel | None = None
    dtype: str = "float32"
    """What its parameters are kept in: float32, bfloat16, float16 or auto."""
    options: dict[str, Any] = {}
    """Further arguments of `AutoModelForCausalLM.from_pretrained`."""

    @model_validator(mode="after")
    def _one(self) -> Model:
        if (self.name is None) == (self.tiny is None):
            raise ValueError("give model.name or model.tiny, one of them")
        return self


class Warmup(BaseModel):
    """Supervised training on rollouts that are right, before reinforcement learning."""

    model_config = _CLOSED

    steps: int = Field(default=0, ge=0)
    """Steps; 0: none."""
    solutions: bool = True
    """Whether the reference solutions of the training tasks are demonstrated."""
    runs: list[int] = []
    """Runs of rollouts whose complete trajectories are demonstrations too."""
    nested: bool = True
    """Whether demonstrations write arguments as a JSON text, as the system prompt asks, or as an object."""
    vary_numbers: bool = False
    """Whether numbers are exchanged, the same ones throughout a demonstration, each time it is shown: a tiny model is
    to copy numbers, not to learn them. Needs a tokenizer with a token for each digit."""
    vary_words: list[list[str]] = []
    """Groups of words, names of records for example, that are exchanged with one another likewise, as far as they are
    one token."""
    spoilt: float = Field(default=0.0, ge=0, lt=1)
    """Share of the demonstrated solutions that show a bad habit: they claim to be done before the last call. Of a tiny
    model reinforcement repairs habits, not what it cannot do: this gives it one, for experiments."""
    options: dict[str, Any] = {}
    """Further fields of `trl.SFTConfig`."""


class Reinforcement(BaseModel):
    """Group-relative policy optimization."""

    model_config = _CLOSED

    steps: int = Field(ge=0)
    """Generations: each samples one batch of rollouts and trains on it."""
    merge_rows: bool = True
    """Whether the turns of a trajectory share rows where that is exact (see `samples`)."""
    rows_at_once: int | None = Field(default=None, ge=1)
    """Rows in memory at a time; None: per_device_train_batch_size."""
    shuffle_rewards: bool = False
    """Deals the rewards out at random: a control, from which nothing can be learned."""
    options: dict[str, Any] = {}
    """Fields of `trl.GRPOConfig`; batch sizes in it count trajectories."""

    @model_validator(mode="after")
    def _fits(self) -> Reinforcement:
        if taken := sorted(RESERVED & self.options.keys()):
            raise ValueError(f"grpo.options may not set {taken[0]}: it follows from other fields")
        for name in COUNTS & self.options.keys():
            value = self.options[name]
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"grpo.options.{name} is {value!r}, not a whole number from 1")
        if self.options.get("num_generations", 8) < 2:
            raise ValueError("a group of one has no mean to be better than: num_generations must be 2 or more")
        by_sequence = self.options.get("importance_sampling_level") == "sequence" or (
            self.options.get("use_vllm")
            and self.options.get("vllm_importance_sampling_correction", True)
            and str(self.options.get("vllm_importance_sampling_mode", "sequence_mask")).startswith("sequence")
        )
        if self.merge_rows and by_sequence:
            raise ValueError("merge_rows must be false with importance sampling by sequence: a turn has its own weight")
        return self

    @property
    def updates(self) -> int:
        """Updates of the parameters in each generation."""
        accumulated = self.options.get("gradient_accumulation_steps", 1)
        parts = self.options.get("steps_per_generation") or accumulated
        return max(1, parts * self.options.get("num_iterations", 1) // accumulated)

    @property
    def trajectories(self) -> int:
        """Rollouts that one process makes in each generation."""
        accumulated = self.options.get("gradient_accumulation_steps", 1)
        parts = self.options.get("steps_per_generation") or accumulated
        return self.options.get("per_device_train_batch_size", 8) * parts


class Evaluation(BaseModel):
    """Held-out tasks that are tried before and after, and in between."""

    model_config = _CLOSED

    tasks: int = Field(default=32, ge=0)
    """At most so many tasks of the subset's test split; 0: no evaluation."""
    tries: int = Field(default=4, ge=1)
    """Rollouts a task."""
    every: int = Field(default=0, ge=0)
    """Also after every so many steps; 0: only before and after."""


class TrainConfig(BaseModel):
    """A training run."""

    model_config = _CLOSED

    about: str
    """What it is for, and what was and was not run."""
    model: Model
    rules: Rules = Rules()
    rewards: Rewards = Rewards()
    most_tokens: int = Field(default=2048, ge=1)
    """Tokens a turn may have."""
    warmup: Warmup = Warmup()
    grpo: Reinforcement
    evaluation: Evaluation = Evaluation()
    lora: dict[str, Any] | None = None
    """Fields of `peft.LoraConfig`; None: all parameters are trained."""
    processes: int = Field(default=1, ge=1)
    """Processes, one a GPU; more than one are started by accelerate."""
    accelerate: str | None = None
    """A configuration file for `accelerate launch`."""
    threads: int | None = Field(default=None, ge=1)
    """Threads of PyTorch; None: its own choice."""
    programs: int = Field(default=64, ge=1)
    """Environments kept loaded, 30 to 75 MB each."""
    judge: str | None = None
    """The profile of the settings whose model judges, where `rewards.by` is not code."""
    records_every: int = Field(default=1, ge=1)
    """Steps between those whose rollouts are written down."""
    seed: int = 0

    @model_validator(mode="after")
    def _text_only(self) -> TrainConfig:
        if self.rules.form != "text":
            raise ValueError("rules.form must be text: training works on the ids of AWM's text protocol")
        return self


def preset_names() -> list[str]:
    """The presets that are shipped."""
    files = (resources.files("train") / "presets").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def preset_text(name: str) -> str:
    """A preset as it is written: a shipped one's name, or a file. Raises UserError for neither."""
    if name in preset_names():
        return (resources.files("train") / "presets" / f"{name}.toml").read_text("utf-8")
    path = Path(name)
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        there = ", ".join(preset_names())
        raise UserError(f"There is no preset {name!r}: there are {there}; or name a TOML file of your own.") from None


def load(name: str, overrides: Iterable[str] = ()) -> TrainConfig:
    """A preset with overrides like `grpo.steps=3` or `grpo.options.learning_rate=1e-5`, whose values are TOML.

    Raises UserError for an unknown preset or field, or a value that does not fit.
    """
    try:
        document = tomllib.loads(preset_text(name))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"The preset {name} is not TOML: {error}.") from None
    for override in overrides:
        _override(document, override)
    try:
        return TrainConfig.model_validate(document)
    except ValidationError as error:
        raise UserError(f"The preset {name}: {fault(error)}") from None


def fields_of(config: TrainConfig) -> dict[str, str]:
    """Every field by its path, `grpo.options.beta` for example, with its value as it would be set."""
    found: dict[str, str] = {}

    def walk(path: str, value: Any) -> None:
        if isinstance(value, dict) and value:
            for key, inner in value.items():
                walk(f"{path}.{key}" if path else key, inner)
        else:
            found[path] = value if isinstance(value, str) else json.dumps(value)

    walk("", config.model_dump(mode="json"))
    return found


def require_installed(config: TrainConfig) -> None:
    """Raise UserError where a package is missing that a run needs. Nothing is imported to find out."""
    require("train", "Training")
    if config.grpo.options.get("use_vllm") and importlib.util.find_spec("vllm") is None:
        raise UserError(
            "This preset generates with vLLM, which is not installed: pip install vllm, or "
            "--set grpo.options.use_vllm=false to generate with transformers, much more slowly."
        )


def _override(document: dict[str, Any], text: str) -> None:
    key, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"{text!r} sets nothing: write KEY=VALUE, for example grpo.steps=10.")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except ValueError:  # not TOML, or a number of thousands of digits
        parsed = value  # a word needs no quotes on a command line
    *path, last = key.strip().split(".")
    place: Any = document
    for step in path:
        place = place.setdefault(step, {})
        if not isinstance(place, dict):
            raise UserError(f"{key} cannot be set: {step} is not a section.")
    place[last] = parsed
    if key.strip() == "model.name":  # instead of a tiny one
        place.pop("tiny", None)


def fault(error: ValidationError) -> str:
    """The first thing that is wrong with a configuration, in a sentence."""
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        close = difflib.get_close_matches(str(first["loc"][-1]), _fields(first["loc"][:-1]), n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        return f"there is no field {where!r}.{hint}"
    if first["type"] == "value_error":
        return f"{first['ctx']['error']}."
    return f"{where} is {first['input']!r}; {first['msg'][:1].lower()}{first['msg'][1:]}."


def _fields(path: tuple[int | str, ...]) -> list[str]:
    """The fields of a section."""
    model: Any = TrainConfig
    sections: Mapping[str, Any] = {"model": Model, "rules": Rules, "rewards": Rewards, "warmup": Warmup,
                                   "grpo": Reinforcement, "evaluation": Evaluation, "tiny": TinyModel}  # fmt: skip
    for step in path:
        model = sections.get(str(step), model)
    return list(model.model_fields)
