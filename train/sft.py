"""The warm start: supervised training on rollouts that are right, on the rows that reinforcement learning uses too."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from trl import SFTConfig, SFTTrainer

from pipeline.errors import UserError
from train.run_log import last_checkpoint
from train.samples import Row
from train.watch import Watch

IGNORED = -100
"""What PyTorch's cross entropy ignores as a label."""


def warm_up(
    model: Any,
    tokenizer: Any,
    demonstrations: Sequence[Row],
    *,
    steps: int,
    options: dict[str, Any],
    folder: Path,
    watch: Watch,
    seed: int,
    vary_numbers: bool = False,
    vary_words: Sequence[Sequence[str]] = (),
    peft_config: Any = None,
) -> Any:
    """Train a model on demonstrations; returns it, perhaps with an adapter. Goes on from a checkpoint in the folder.

    Raises UserError where there are no demonstrations.
    """
    from datasets import Dataset
    from transformers import PrinterCallback

    if not demonstrations:
        raise UserError("There is nothing to warm up on: no training task has a reference solution or complete record.")
    folder.mkdir(parents=True, exist_ok=True)
    fields: dict[str, Any] = {"report_to": "none", "logging_steps": 10, "save_steps": 100, "save_total_limit": 1}
    fields |= options
    fields |= {"output_dir": str(folder), "max_steps": steps, "seed": seed, "max_length": None, "packing": False}
    fields |= {"dataset_kwargs": {"skip_prepare_dataset": True}, "remove_unused_columns": False, "disable_tqdm": True}
    config = SFTConfig(**fields)
    exchanged = [*(_number_ids(tokenizer) if vary_numbers else ()), *(_word_ids(tokenizer, g) for g in vary_words)]
    trainer = SFTTrainer(
        model=model,
        args=config,
        train_dataset=Dataset.from_list([labelled(row) for row in demonstrations]),
        processing_class=tokenizer,
        data_collator=Padding(tokenizer.pad_token_id, exchanged, seed),
        callbacks=[watch],
        peft_config=peft_config,
    )
    trainer.remove_callback(PrinterCallback)
    last = last_checkpoint(folder)
    trainer.train(resume_from_checkpoint=str(last[0]) if last else None)
    return trainer.model


def labelled(row: Row) -> dict[str, list[int]]:
    """A row for supervised training: loss on what the agent said, and on nothing else."""
    said = [token if own else IGNORED for token, own in zip(row.completion_ids, row.mask, strict=True)]
    return {
        "input_ids": [*row.prompt_ids, *row.completion_ids],
        "labels": [*[IGNORED] * len(row.prompt_ids), *said],
    }


class Padding:
    """Puts rows of different length into one batch, and exchanges tokens, the same ones throughout a row.

    `groups` are tokens that may stand for one another, for example all numbers of two digits.
    """

    def __init__(self, pad: int, groups: Sequence[Sequence[int]], seed: int) -> None:
        self._pad = pad
        self._groups = [frozenset(group) for group in groups]
        self._choices = [sorted(group) for group in groups]
        self._rng = random.Random(seed)  # noqa: S311 (reproducible on purpose)

    def __call__(self, features: list[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
        """A batch."""
        longest = max(len(feature["input_ids"]) for feature in features)
        batch: dict[str, list[list[int]]] = {"input_ids": [], "labels": [], "attention_mask": []}
        for feature in features:
            exchanged = self._exchange(feature["input_ids"])
            ids, labels = ([exchanged.get(token, token) for token in feature[name]] for name in ("input_ids", "labels"))
            room = longest - len(ids)
            batch["input_ids"].append(ids + [self._pad] * room)
            batch["labels"].append(labels + [IGNORED] * room)
            batch["attention_mask"].append([1] * len(ids) + [0] * room)
        return {name: torch.tensor(values) for name, values in batch.items()}

    def _exchange(self, ids: Sequence[int]) -> dict[int, int]:
        """Another token for each of a row's that is in a group; different ones stay different."""
        exchanged: dict[int, int] = {}
        for group, choices in zip(self._groups, self._choices, strict=True):
            there = sorted(group.intersection(ids))
            exchanged |= zip(there, self._rng.sample(choices, len(there)), strict=True)
        return exchanged


def _number_ids(tokenizer: Any) -> list[list[int]]:
    """The tokens that are numbers, by how many digits they have.

    Raises UserError where the ten digits are not among them.
    """
    by_length: dict[int, list[int]] = {}
    for token, number in tokenizer.get_vocab().items():
        if token.isascii() and token.isdigit():
            by_length.setdefault(len(token), []).append(number)
    if len(by_length.get(1, ())) != 10:
        raise UserError("warmup.vary_numbers needs a tokenizer with a token of its own for each digit.")
    return list(by_length.values())


def _word_ids(tokenizer: Any, words: Sequence[str]) -> list[int]:
    """The tokens of those words that are one. Raises UserError where they are fewer than two."""
    found = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
    whole = [ids[0] for ids in found if len(ids) == 1]
    if len(whole) < 2:
        raise UserError(f"warmup.vary_words: of {', '.join(words)} fewer than two are a token of their own.")
    return whole
