"""Loading and keeping the model that is trained."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pipeline.errors import UserError
from train.config import Model
from train.tiny import make_model, make_tokenizer


def load_start(config: Model, corpus: Iterable[str], folder: Path) -> Path | str:
    """Where the model to begin with is: its name, or the folder that a tiny one was made in.

    The corpus is what a tiny model's tokenizer is made for.
    """
    if config.tiny is None:
        assert config.name is not None
        return config.name
    if not (folder / "config.json").is_file():
        tokenizer = make_tokenizer(corpus, config.tiny.vocabulary, config.tiny.digits)
        save(make_model(tokenizer, config.tiny), tokenizer, folder)
    return folder


def load_model(place: Path | str, config: Model) -> Any:
    """The model at a place, with an adapter that is to be trained on where that is what was kept.

    Raises UserError where there is none.
    """
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM

    try:
        if (Path(place) / "adapter_config.json").is_file():
            from peft import AutoPeftModelForCausalLM

            return AutoPeftModelForCausalLM.from_pretrained(
                place, dtype=config.dtype, is_trainable=True, **config.options
            )
        return AutoModelForCausalLM.from_pretrained(place, dtype=config.dtype, **config.options)
    except (OSError, ValueError, SafetensorError) as error:
        raise UserError(_not_found(place, error)) from error


def load_tokenizer(place: Path | str) -> Any:
    """The tokenizer of a model. Raises UserError where there is none."""
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(place, padding_side="left")
    except (OSError, ValueError) as error:
        raise UserError(_not_found(place, error)) from error


def save(model: Any, tokenizer: Any, folder: Path) -> None:
    """Keep a model with its tokenizer, whole or not at all. Raises UserError where that is not possible."""
    draft = folder.with_name(f"{folder.name}.new")
    try:
        model.save_pretrained(draft)
        tokenizer.save_pretrained(draft)
        draft.replace(folder)
    except OSError as error:
        raise UserError(f"{folder} cannot be written ({error.strerror}): free some space, then resume.") from error


def _not_found(place: Path | str, error: Exception) -> str:
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return (
        f"The model {str(place)!r} cannot be loaded: {first} Name a folder, or a model that this machine can download."
    )
