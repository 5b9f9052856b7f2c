"""What is known to go wrong with a training before it starts, and what it will take."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("trl", reason="training needs the extra: pip install 'awm-studio[train]'")

from pipeline.errors import UserError
from pipeline.loopback import listen, port_of
from pipeline.workspace import Workspace
from tests.train import tiny_worlds
from tests.train.pantry import pantry
from tests.train.small_trainings import create, make_subset
from train import preflight, training_run
from train.config import load
from train.estimate import estimate


@pytest.mark.parametrize(
    ("overrides", "subset", "said"),
    [
        ((), "nowhere", "no subset 'nowhere'"),
        ((), "empty", "is empty"),
        (("grpo.options.num_generations=1",), "both", "a group of one"),
        (("grpo.options.num_generations=3",), "both", "not a multiple of num_generations"),
        (("grpo.options.per_device_train_batch_size=64",), "both", "has 3 training tasks, and a generation needs 32"),
        (("grpo.options.use_vllm=true", "grpo.merge_rows=false"), "both", "vLLM, which is not installed"),
        (("grpo.option.x=1",), "both", "no field 'grpo.option'. Did you mean options"),
        (("grpo.steps=many",), "both", "grpo.steps is 'many'"),
        (("grpo.options.importance_sampling_level=sequence",), "both", "merge_rows must be false"),
        (("rules.form=native",), "both", "rules.form must be text"),
        (("rewards.by=judge",), "both", "name a profile"),
        (("grpo.options.max_steps=3",), "both", "may not set max_steps"),
        (("model.name=/nowhere/model",), "both", "There is no folder /nowhere/model"),
        (("model.name=not a name",), "both", "neither a folder nor a name like"),
        (("accelerate=missing.yaml",), "both", "no file missing.yaml"),
    ],
)
def test_what_can_be_known_is_said_before_anything_starts(
    workspace: Workspace, overrides: tuple[str, ...], subset: str, said: str
) -> None:
    with pytest.raises(UserError, match=said.replace("(", r"\(")):
        create(workspace, *overrides, subset=subset)
    assert workspace.catalog.runs() == []


def a_model(folder: Path, **tokenizer: str) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").touch()
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    return folder


def test_a_model_without_a_chat_template_or_without_weights_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    model = a_model(tmp_path / "model")
    with pytest.raises(UserError, match="no chat template"):
        create(workspace, f"model.name={model}")
    create(workspace, f"model.name={a_model(tmp_path / 'other', chat_template='{{ messages }}')}")
    (model / "model.safetensors").unlink()
    with pytest.raises(UserError, match="holds no model"):
        create(workspace, f"model.name={model}")


def test_a_model_that_cannot_be_downloaded_is_refused_where_that_is_known(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(UserError, match="not downloaded before"):
        create(workspace, "model.name=nobody/nothing-of-this-name")


def test_a_server_that_does_not_answer_is_missed_before_the_start(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "require_installed", lambda config: None)
    server = ("grpo.options.use_vllm=true", "grpo.merge_rows=false", "grpo.options.vllm_mode=server")
    with listen() as listener:
        port = port_of(listener)
        create(workspace, *server, f"grpo.options.vllm_server_port={port}")
    with pytest.raises(UserError, match=f"No vLLM server answers at 127.0.0.1:{port}"):
        create(workspace, *server, f"grpo.options.vllm_server_port={port}")


def test_checkpoints_that_do_not_fit_on_the_disk_are_refused(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight.shutil, "disk_usage", lambda path: SimpleNamespace(free=1_000_000))
    with pytest.raises(UserError, match="checkpoints will take about"):
        create(workspace)


def test_several_processes_meet_at_a_port_that_is_free() -> None:
    assert training_run.launcher(load("cpu-tiny", ["processes=2"]))[-4:] == [
        "--main_process_port", "0", "--num_processes", "2",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "overrides", "parameters", "instances"),
    [("paper", (), 4e9, 1024), ("single-gpu-lora", (), 1.7e9, 64), ("cpu-tiny", (), None, 64),
     ("single-gpu-lora", ("model.name=someone/something",), 0, 64)],
)  # fmt: skip
def test_what_a_training_takes_is_estimated(
    name: str, overrides: tuple[str, ...], parameters: float | None, instances: int
) -> None:
    taken = estimate(load(name, overrides), tasks=64, environments=8)
    assert taken.instances == instances
    assert taken.most_tokens == taken.most_turns * load(name).most_tokens
    if parameters is None:
        from train.tiny import make_model

        sizes, tokenizer = load(name).model.tiny, tiny_worlds.tokenizer()
        assert sizes is not None
        made = sum(p.numel() for p in make_model(tokenizer, sizes).parameters())
        vocabulary = (sizes.vocabulary - len(tokenizer)) * sizes.hidden
        assert taken.parameters == pytest.approx(made + vocabulary, rel=0.1)
    else:
        assert taken.parameters == (parameters or None)
        assert (taken.model_bytes is None) == (not parameters)


def test_tasks_without_a_code_verifier_are_refused(workspace: Workspace) -> None:
    from pipeline.blueprints.synthesis import put

    put(workspace.catalog, replace(pantry("mute"), verifiers=()))
    make_subset(workspace.catalog, "mute", [("mute", 0), ("mute", 1)], [])
    with pytest.raises(UserError, match="no code verifier"):
        create(workspace, subset="mute")


def test_a_warm_start_without_anything_to_learn_from_is_refused(workspace: Workspace) -> None:
    from pipeline.blueprints.synthesis import put

    put(workspace.catalog, replace(pantry("unsolved"), solutions=()))
    make_subset(workspace.catalog, "unsolved", [("unsolved", 0), ("unsolved", 1)], [])
    with pytest.raises(UserError, match="nothing to warm up on: no training task has a reference solution"):
        create(workspace, subset="unsolved")
    with pytest.raises(UserError, match="nothing to warm up on"):
        create(workspace, "warmup.solutions=false")
    create(workspace, "warmup.runs=[12]", subset="unsolved")
