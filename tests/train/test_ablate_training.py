"""Ablations that train: windows of history, and nested subsets, with a tiny model."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="training needs the extra: pip install 'awm-studio[train]'")

import torch

from curation.subset import TEST, TRAIN, Pick, Recipe, Subset, current_contents
from pipeline.errors import UserError
from pipeline.records import Run
from pipeline.workspace import Workspace
from tests.llm_server import Say, Server
from tests.train.pantry import fill, pantry
from train import ablate, training_run, work
from train.ablate_history import ablate_history
from train.ablate_rewards import ablate_rewards
from train.ablate_scaling import ablate_scaling, figure, keep_nested, nested
from train.ablate_training import Parts
from train.config import load
from train.worlds import subset_named

pytestmark = [
    pytest.mark.usefixtures("one_host"),
    pytest.mark.filterwarnings("ignore:You are using 'rollout_func'", "ignore:.*gradient_checkpointing.*"),
]

SMALL = (
    "most_tokens=12",
    "model.tiny.hidden=32",
    "model.tiny.layers=1",
    "model.tiny.vocabulary=400",
    "warmup.steps=0",
    "grpo.steps=1",
    "grpo.options.per_device_train_batch_size=4",
    "grpo.options.num_generations=2",
    "evaluation.tasks=0",
)
CONFIG = load("cpu-tiny", SMALL)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    torch.set_num_threads(1)
    with Workspace.open(fill(tmp_path / "workspace", *map(pantry, ("p0", "p1", "p2", "held")))) as opened:
        picks = [Pick(f"p{rank}", task, rank, TRAIN, "pantries") for rank in range(3) for task in (0, 1)]
        picks += [Pick("held", task, 0, TEST, "other pantries") for task in (0, 1)]
        contents = current_contents(opened.catalog, {pick.environment for pick in picks})
        subset = Subset(Recipe("mix", series=(1, 3)), tuple(picks), contents, {})
        opened.catalog.set_subset("mix", subset.to_json(), {})
        yield opened


def here(workspace: Workspace, run: Run) -> None:
    """Train in this process, as the process of a training does."""
    assert work.main([str(workspace.path), str(run.id)]) == 0


def parts_of(workspace: Workspace, name: str) -> tuple[Run, Parts, list[str]]:
    run, told = ablate.create(workspace, name, {}), list[str]()
    return run, Parts(workspace, workspace.runs / str(run.id), work=here, tell=told.append), told


def test_two_windows_are_trained_and_each_model_is_tried_with_both(workspace: Workspace) -> None:
    run, parts, told = parts_of(workspace, "history")
    answer = ablate_history(parts, CONFIG, "mix", window=1, tries=1, preset="cpu-tiny")
    assert answer.state == "done"
    assert answer.n == {"tasks": 2, "tries a task": 1, "trainings": 2}
    scores, compared = answer.tables
    assert [row[:3] for row in scores.rows] == [
        ["1", "1", "aligned"],
        ["1", "all", "misaligned"],
        ["all", "1", "misaligned"],
        ["all", "all", "aligned"],
    ]
    assert all(row[3].startswith("0.000 (0.000 to 0.6") for row in scores.rows)
    assert [row[3].partition(":")[0] for row in compared.rows] == ["not decided", "not decided"]
    windows = [
        training_run.config_of(workspace.runs / str(number)).rules.window
        for number in answer.data["trainings"].values()
    ]
    assert windows == [1, None]
    assert len(told) == 6
    again = ablate_history(parts, CONFIG, "mix", window=1, tries=1, preset="cpu-tiny")
    assert (again.tables, len(told)) == (answer.tables, 6)  # nothing is done twice
    folder = ablate.keep(workspace, run, answer)
    assert "| all | 1 | misaligned |" in (folder / "report.md").read_text()


def test_each_judge_is_trained_with_and_code_judges_what_came_of_it(workspace: Workspace, tmp_path: Path) -> None:
    verdict = Say(json.dumps({"reason": "because", "outcome": "partial"}))
    with Server([verdict]) as server:
        settings = f'[profiles.judge]\nmodel = "m"\nbase_url = "{server.url}"\napi_key_env = ""\n'
        (tmp_path / "config.toml").write_text(settings)
        with Workspace.open(workspace.path) as opened:
            _, parts, _ = parts_of(opened, "rewards")
            answer = ablate_rewards(parts, CONFIG, "mix", judge="judge", tries=1)
            by = [training_run.config_of(opened.runs / str(n)).rewards.by for n in answer.data["trainings"].values()]
    assert by == ["code", "llm", "judge"]
    assert answer.state == "done"
    rows = answer.tables[0].rows
    assert [row[2:4] for row in rows] == [[2, 2]] * 3
    assert [row[4] and row[4].partition(":")[0] for row in rows] == [None, "not decided", "not decided"]


def test_nested_subsets_are_trained_on_and_the_honest_number_is_told(workspace: Workspace) -> None:
    _, parts, _ = parts_of(workspace, "scaling")
    answer, svg = ablate_scaling(parts, CONFIG, "mix", [1, 3, 100], tries=1)
    (scores,) = answer.tables
    assert [row[:3] for row in scores.rows] == [[1, 1, 2], [3, 3, 6], [100, 3, 6]]
    assert [row[4] for row in scores.rows] == [2, 2, None]
    assert scores.rows[2][6] == "the subset has no more environments"
    assert answer.n == {"sizes": 2, "tries a task": 1}
    marks = [mark.text for mark in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}title")]
    assert marks[0].startswith("1 environments: 0.000 (0.000 to 0.6")
    assert len(marks) == 2


def test_a_size_that_is_too_small_to_train_on_is_not_run_and_says_why(workspace: Workspace) -> None:
    _, parts, _ = parts_of(workspace, "scaling")
    config = load("cpu-tiny", [*SMALL, "grpo.options.per_device_train_batch_size=16"])
    answer, svg = ablate_scaling(parts, config, "mix", [1], tries=1)
    assert (answer.state, answer.n["sizes"]) == ("stopped", 0)
    assert "has 2 training tasks, and a generation needs 8" in answer.tables[0].rows[0][6]
    assert "circle" not in svg


def test_a_nested_subset_has_the_first_environments_and_all_that_is_held_out(workspace: Workspace) -> None:
    whole = subset_named(workspace.catalog, "mix")
    inside = nested(whole, 1)
    assert inside.environments(TRAIN) == ["p0"]
    assert inside.environments(TEST) == whole.environments(TEST)
    assert set(inside.contents) == {"p0", "held"}
    keep_nested(workspace, inside)
    keep_nested(workspace, inside)
    with pytest.raises(UserError, match="another subset 'mix-first-1'"):
        keep_nested(workspace, nested(Subset(whole.recipe, whole.picks[2:], whole.contents, {}), 1))


def test_a_figure_of_nothing_has_no_points() -> None:
    assert "circle" not in figure([])
