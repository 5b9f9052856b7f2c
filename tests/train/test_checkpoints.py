"""Checkpoints: found, served to this machine, and evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("trl", reason="training needs the extra: pip install 'awm-studio[train]'")

from pipeline.errors import UserError
from pipeline.snapshots import replace_file
from pipeline.workspace import Workspace
from tests.train.held_out import SUBSET, workspace_with_held_out
from tests.train.tiny_worlds import model, tokenizer
from train import evaluate_heldout, training_run
from train.checkpoint_server import serving_checkpoint
from train.checkpoints import find_checkpoint
from train.config import load
from train.policy_model import save
from train.run_log import METRICS


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model that has learned nothing, in the folder of a training."""
    folder = tmp_path_factory.mktemp("runs") / "3"
    folder.mkdir()
    made = tokenizer()
    save(model(made), made, folder / "model")
    config = load("cpu-tiny", ["most_tokens=8"])
    replace_file(folder / training_run.CONFIG, config.model_dump_json().encode())
    (folder / METRICS).touch()
    return folder / "model"


@pytest.fixture(scope="session")
def url(checkpoint: Path) -> Iterator[str]:
    with serving_checkpoint(checkpoint, threads=1) as address:
        yield address


def ask(url: str, text: str = "rice and beans", **fields: Any) -> httpx.Response:
    body = {"model": "model", "messages": [{"role": "user", "content": text}], "max_tokens": 6, **fields}
    return httpx.post(f"{url}/chat/completions", json=body, timeout=60)


def test_a_checkpoint_answers_as_a_server_does(url: str) -> None:
    reply = ask(url, return_token_ids=True).json()
    (choice,) = reply["choices"]
    assert choice["finish_reason"] in ("stop", "length")
    assert 0 < len(choice["token_ids"]) == reply["usage"]["completion_tokens"] <= 6
    assert len(reply["prompt_token_ids"]) == reply["usage"]["prompt_tokens"]


def test_without_temperature_it_says_the_same_alone_and_in_a_batch(url: str) -> None:
    texts = ["rice", "beans and salt and sugar", "tea"] * 4
    alone = [ask(url, text, temperature=0).json()["choices"][0]["message"]["content"] for text in texts[:3]]
    with ThreadPoolExecutor(12) as pool:
        together = list(pool.map(lambda text: ask(url, text, temperature=0).json(), texts))
    assert [reply["choices"][0]["message"]["content"] for reply in together] == alone * 4


def test_what_is_too_long_is_refused_as_servers_do(url: str) -> None:
    reply = ask(url, "rice " * 2000)
    assert (reply.status_code, "maximum context length" in reply.text) == (400, True)


def test_a_checkpoint_is_found_with_the_rules_it_was_trained_by(checkpoint: Path) -> None:
    by_number, by_folder = find_checkpoint(checkpoint.parent.parent, "3"), find_checkpoint(Path(), str(checkpoint))
    assert by_number == by_folder
    assert (by_number.rules["window"], by_number.rules["listing"], by_number.most_tokens) == (3, "short", 8)


def test_a_folder_without_a_model_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no model"):
        find_checkpoint(tmp_path, str(tmp_path))
    (tmp_path / "11").mkdir()
    with pytest.raises(UserError, match="Run 11 is no training"):
        find_checkpoint(tmp_path, "11")
    (tmp_path / "11" / training_run.CONFIG).touch()
    with pytest.raises(UserError, match="Training 11 has no finished model"):
        find_checkpoint(tmp_path, "11")
    with pytest.raises(UserError, match="There is no training 13"):
        find_checkpoint(tmp_path, "13")


@pytest.mark.usefixtures("one_host")
def test_a_checkpoint_that_cannot_be_loaded_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    with Workspace.open(workspace_with_held_out(tmp_path / "w", ("pantry0",))) as workspace:
        found = find_checkpoint(workspace.runs, str(tmp_path / "model"))
        tasks = evaluate_heldout.held_out_tasks(workspace, SUBSET)
        plan = evaluate_heldout.plan_for(tasks, subset=SUBSET, model=found.profile)
        run = evaluate_heldout.create(workspace, plan, checkpoint=str(found.folder))
        document = evaluate_heldout.work(workspace, run)
    assert (document["state"], document["score"], "cannot be loaded" in document["why"]) == ("not run", None, True)


@pytest.mark.usefixtures("one_host")
def test_a_checkpoint_is_evaluated_on_what_is_held_out(tmp_path: Path, checkpoint: Path) -> None:
    with Workspace.open(workspace_with_held_out(tmp_path / "w", ("pantry0",))) as workspace:
        found = find_checkpoint(workspace.runs, str(checkpoint))
        tasks = evaluate_heldout.held_out_tasks(workspace, SUBSET)
        rules = {**found.rules, "stop_on_slip": False}
        plan = evaluate_heldout.plan_for(
            tasks, subset=SUBSET, model=found.profile, most_tokens=found.most_tokens, rules=rules
        )
        run = evaluate_heldout.create(workspace, plan, checkpoint=str(checkpoint))
        document = evaluate_heldout.work(workspace, run)
    assert (document["state"], document["n"], document["score"]) == ("done", 2, 0.0)
    assert (document["model"], document["settings"]["window"]) == (str(checkpoint), 3)
    assert document["means"]["tokens_out"] > 0
