"""Trainings as small as they can be: their overrides of cpu-tiny, their subsets, and working on one in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from curation.subset import TEST, TRAIN, Pick, Recipe, Subset, current_contents
from pipeline.catalog import Catalog
from pipeline.workspace import Workspace
from train import training_run, work
from train.config import load

SMALL = (
    "most_tokens=24",
    "model.tiny.hidden=32",
    "model.tiny.layers=1",
    "model.tiny.vocabulary=400",
    "warmup.steps=2",
    "grpo.steps=3",
    "grpo.options.per_device_train_batch_size=4",
    "grpo.options.num_generations=2",
    "grpo.options.save_steps=1",
    "evaluation.tries=2",
)


def make_subset(catalog: Catalog, name: str, train: list[tuple[str, int]], test: list[tuple[str, int]]) -> None:
    pairs = [(TRAIN, *pair) for pair in train] + [(TEST, *pair) for pair in test]
    picks = tuple(Pick(environment, task, 0, split, "") for split, environment, task in pairs)
    contents = current_contents(catalog, {pick.environment for pick in picks})
    catalog.set_subset(name, Subset(Recipe(name), picks, contents, {}).to_json(), {})


def create(workspace: Workspace, *overrides: str, subset: str = "both") -> Any:
    return training_run.create(workspace, load("cpu-tiny", (*SMALL, *overrides)), subset)


def worked(workspace: Workspace, run: Any) -> tuple[int, Path]:
    code = work.main([str(workspace.path), str(run.id)])
    return code, workspace.runs / str(run.id)
