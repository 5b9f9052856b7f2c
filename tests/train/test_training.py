"""A training from beginning to end with a tiny model: warm start, GRPO, stop, resume, and what goes wrong."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip("trl", reason="training needs the extra: pip install 'awm-studio[train]'")

import torch

from pipeline.engine.lock import work_on
from pipeline.errors import UserError
from pipeline.workspace import Workspace
from tests.train import tiny_worlds
from tests.train.small_trainings import SMALL, create, make_subset, worked
from train import training_run, work
from train.config import load, preset_names, preset_text
from train.files import recorded
from train.records import read_records
from train.reward import Rewards
from train.run_log import STOP, read_metrics, read_status
from train.scoring import scored_again
from train.trajectory import End

pytestmark = [
    pytest.mark.usefixtures("one_host"),
    pytest.mark.filterwarnings("ignore:You are using 'rollout_func'", "ignore:.*gradient_checkpointing.*"),
]


def parameters(folder: Path) -> list[torch.Tensor]:
    from train.policy_model import load_model

    return list(load_model(folder, load("cpu-tiny").model).parameters())


def test_a_training_runs_from_the_warm_start_to_a_model(workspace: Workspace) -> None:
    run = create(workspace)
    code, folder = worked(workspace, run)
    assert code == 0
    figures = training_run.figures(workspace, run)
    assert (figures["state"], figures["steps"], figures["tried"]) == ("done", 3, 2)
    assert figures["before"] is not None
    assert figures["interval"][0] <= figures["after"] <= figures["interval"][1]
    steps = read_metrics(folder, "step")
    assert [event["step"] for event in steps] == [1, 2, 3]
    assert {"reward", "reward_std", "entropy", "outcome/complete", "end/format_error", "end/environment_error",
            "rollout/turns", "rollout/response_tokens", "rollout/seconds", "clip_ratio/region_mean"} <= steps[0].keys()  # fmt: skip
    records = list(read_records(folder))
    assert len(records) == 3 * 4
    assert {record.step for record in records} == {1, 2, 3}
    assert all(turn.completion_ids for record in records for turn in record.turns)
    assert (folder / "model" / "model.safetensors").is_file()
    (kept,) = [each for each in workspace.catalog.runs() if each.id == run.id]
    assert (kept.state, kept.pid, kept.result["steps"]) == ("done", None, 3)
    scored = list(scored_again(workspace, recorded(folder), Rewards()))  # no databases were kept
    assert {now.key for now, _ in scored} == {record.key for record in records}
    assert all(now.reward == before.reward for now, before in scored)


def test_an_environment_that_does_not_load_is_a_record_in_each_step(workspace: Workspace) -> None:
    make_subset(workspace.catalog, "bad", [("pantry", 0), ("ruin", 0)], [])
    _, folder = worked(workspace, create(workspace, "grpo.steps=1", subset="bad"))
    lost = [record for record in read_records(folder) if record.environment == "ruin"]
    assert [record.end for record in lost] == [End.environment_error] * 2
    assert training_run.figures(workspace, training_run.find(workspace, 1))["before"] is None


def test_a_stopped_training_goes_on_to_the_same_parameters(workspace: Workspace) -> None:
    whole = worked(workspace, create(workspace))[1]
    run = create(workspace)
    folder = workspace.runs / str(run.id)

    def stop_in_the_first(self: Any, kind: str, **data: Any) -> None:
        event(self, kind, **data)
        if kind == "try":
            (folder / STOP).touch()

    event = work.RunLog.event
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work.RunLog, "event", stop_in_the_first)
        code, _ = worked(workspace, run)
    assert (code, read_status(folder)["state"]) == (130, "stopped")
    assert [e["step"] for e in read_metrics(folder, "step")] == [1]
    assert worked(workspace, run)[0] == 0
    assert [e["step"] for e in read_metrics(folder, "step")] == [1, 2, 3]
    assert [e["step"] for e in read_metrics(folder, "resumed")] == [1]
    assert [e["reward"] for e in read_metrics(folder, "step")] == [e["reward"] for e in read_metrics(whole, "step")]
    for one, other in zip(parameters(folder / "model"), parameters(whole / "model"), strict=True):
        assert torch.equal(one, other)


def test_a_killed_training_loses_only_what_came_after_its_checkpoint(workspace: Workspace) -> None:
    run = create(workspace, "grpo.options.save_steps=2")
    folder = workspace.runs / str(run.id)

    class Killed(BaseException):
        pass

    def die_at_the_third(self: Any, kind: str, **data: Any) -> None:
        event(self, kind, **data)
        if kind == "step" and data["step"] == 3:
            raise Killed

    event = work.RunLog.event
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work.RunLog, "event", die_at_the_third)
        with pytest.raises(Killed):
            worked(workspace, run)
    with (folder / "metrics.jsonl").open("ab") as file:
        file.write(b'{"kind": "st')
    assert worked(workspace, run)[0] == 0
    assert [e["step"] for e in read_metrics(folder, "step")] == [1, 2, 3]
    assert sorted({record.step for record in read_records(folder)}) == [1, 2, 3]
    assert len(list(read_records(folder))) == 12


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (("grpo.options.learning_rat=1",), "does not know a field"),
        (("grpo.options.loss_type=best", "warmup.steps=0"), "Unknown loss type"),
    ],
)
def test_what_trl_does_not_take_fails_with_a_sentence(
    workspace: Workspace, overrides: tuple[str, ...], said: str
) -> None:
    code, folder = worked(workspace, create(workspace, *overrides))
    status = read_status(folder)
    assert (code, status["state"]) == (2, "failed")
    assert said in status["detail"]


def test_a_model_that_cannot_be_read_fails_with_a_sentence(workspace: Workspace, tmp_path: Path) -> None:
    model = tmp_path / "model"
    tiny_worlds.tokenizer().save_pretrained(model)
    (model / "config.json").write_text('{"model_type": "qwen3"}')
    (model / "model.safetensors").write_bytes(b"no weights")
    run = create(workspace, f"model.name={model}")
    code, folder = worked(workspace, run)
    assert (code, read_status(folder)["state"]) == (2, "failed")
    assert "cannot be loaded" in read_status(folder)["detail"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), "The memory is used up: lower grpo.rows_at_once"),
        (OSError(errno.ENOSPC, "No space left on device"), "The disk is full"),
        (RuntimeError("a flaw"), "RuntimeError: a flaw"),
    ],
)
def test_what_goes_wrong_in_a_step_is_told(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    from train.grpo import WindowTrainer

    def fail(*_: Any, **__: Any) -> None:
        raise error

    run = create(workspace, "warmup.steps=0", "evaluation.tasks=0")
    monkeypatch.setattr(WindowTrainer, "compute_loss", fail)
    code, folder = worked(workspace, run)
    assert code in (1, 2)
    assert read_status(folder)["state"] == training_run.find(workspace, run.id).state == "failed"
    assert said in read_status(folder)["detail"]


def test_a_training_without_steps_is_its_warm_start(workspace: Workspace) -> None:
    run = create(workspace, "grpo.steps=0")
    code, folder = worked(workspace, run)
    figures = training_run.figures(workspace, run)
    assert (code, figures["steps"], figures["after"]) == (0, 0, None)
    assert figures["before"] is not None
    assert (folder / "model" / "model.safetensors").is_file()


def test_held_out_tasks_are_tried_in_between_and_change_nothing(workspace: Workspace) -> None:
    often = worked(workspace, create(workspace, "evaluation.every=1", "warmup.steps=0"))[1]
    never = worked(workspace, create(workspace, "warmup.steps=0"))[1]
    assert [event["step"] for event in read_metrics(often, "try")] == [0, 1, 2, 3]
    for one, other in zip(parameters(often / "model"), parameters(never / "model"), strict=True):
        assert torch.equal(one, other)


def test_how_far_a_training_is_can_be_followed_in_the_catalog(workspace: Workspace) -> None:
    run = create(workspace, "warmup.steps=0", "evaluation.tasks=0")
    worked(workspace, run)
    said = [event.data for event in workspace.catalog.events(run=run.id) if event.kind == "progress"]
    assert said == [{"done": done, "total": 3} for done in (0, 1, 2, 3)]


def test_adapters_are_trained_and_kept(workspace: Workspace) -> None:
    pytest.importorskip("peft")
    run = create(workspace, "lora.r=4", "lora.target_modules=all-linear", "grpo.steps=1", "grpo.options.beta=0.01")
    code, folder = worked(workspace, run)
    assert code == 0
    assert (folder / "model" / "adapter_config.json").is_file()
    assert "kl" in read_metrics(folder, "step")[0]


@pytest.mark.parametrize("name", preset_names())
def test_presets_are_built_and_name_the_source_of_every_value(name: str, tmp_path: Path) -> None:
    from trl import GRPOConfig, SFTConfig

    config = load(name)
    fields = work.grpo_fields(config, tmp_path)
    built = GRPOConfig(**{**fields, "use_cpu": True, "bf16": False})
    assert built.generation_batch_size == config.grpo.trajectories
    if config.warmup.steps:
        SFTConfig(output_dir=str(tmp_path), **config.warmup.options)
    if config.lora is not None:
        work._lora(config)
    for line in preset_text(name).splitlines():
        if "=" in line and not line.startswith(("#", "about")):
            assert "#" in line, f"no source: {line}"


def test_the_papers_preset_is_the_papers_recipe() -> None:
    config = load("paper")
    options = config.grpo.options
    assert config.grpo.trajectories * config.processes == 64 * 16 == 1024
    assert config.grpo.updates == 64 // 16
    assert (config.rules.window, config.rules.max_turns, config.rules.max_context, config.most_tokens) == (
        3,
        20,
        32000,
        2048,
    )
    assert (options["learning_rate"], options["beta"], options["epsilon"], options["epsilon_high"]) == (
        7e-7,
        0.001,
        0.2,
        0.28,
    )


def test_a_training_is_a_process_of_its_own(workspace: Workspace) -> None:
    run = create(workspace, "grpo.steps=1", "warmup.steps=0", "evaluation.tasks=0")
    figures = training_run.wait(workspace, run, training_run.start(workspace, run, detached=True))
    assert (figures["state"], figures["steps"]) == ("done", 1)


@pytest.mark.parametrize(
    ("ends", "status", "said"),
    [
        ("", {"state": "failed", "detail": "The disk is full."}, "The disk is full"),
        ("import os; os.kill(os.getpid(), 9)", {"state": "running"}, "by signal 9"),
    ],
)
def test_how_a_process_ended_is_told(workspace: Workspace, ends: str, status: dict[str, str], said: str) -> None:
    run = create(workspace)
    (workspace.runs / str(run.id) / "status.json").write_text(json.dumps(status))
    with pytest.raises(UserError, match=said):
        training_run.wait(workspace, run, subprocess.Popen([sys.executable, "-c", ends]))


def test_a_training_is_started_stopped_killed_and_gone_on_with_from_the_command_line(workspace: Workspace) -> None:
    """As a person does it, in real processes, with the preset as it is but for its sizes."""
    sizes = [word for override in SMALL if "steps" not in override for word in ("--set", override)]
    sizes += ["--set", "warmup.steps=2", "--set", "grpo.options.save_steps=1", "--json"]

    def command(*words: str) -> tuple[int, Any]:
        there = ["train", "--workspace", str(workspace.path), *words]
        done = subprocess.run([sys.executable, "-m", "studio.cli", *there], capture_output=True, text=True, check=False)
        return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr

    def works(pid: int) -> bool:
        return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE

    def when(happens: Callable[[], object], pid: int) -> None:
        """Wait until something has happened in a training that goes on."""
        while not happens():
            assert works(pid) or happens(), read_status(folder)
            threading.Event().wait(0.05)

    code, started = command("--preset", "cpu-tiny", "--subset", "both", "--steps", "3", "--detach", *sizes)
    assert code == 0, started
    run, folder = started["run"], workspace.runs / str(started["run"])
    when(lambda: read_status(folder).get("phase") in ("loading", "trying", "training"), started["pid"])
    training_run.ask_to_stop(workspace, training_run.find(workspace, run))
    when(lambda: not works(started["pid"]), started["pid"])
    assert read_status(folder)["state"] == "stopped"
    stopped_at = len(read_metrics(folder, "step"))
    assert stopped_at < 3

    code, again = command("--resume", str(run), "--detach", "--json")
    assert code == 0, again
    when(lambda: len(read_metrics(folder, "step")) > stopped_at, again["pid"])
    if works(again["pid"]):
        os.kill(again["pid"], signal.SIGKILL)
        when(lambda: not works(again["pid"]), again["pid"])

    assert worked(workspace, training_run.find(workspace, run))[0] == 0
    figures = training_run.figures(workspace, training_run.find(workspace, run))
    assert (figures["state"], figures["steps"], figures["tried"]) == ("done", 3, 2)
    assert [event["step"] for event in read_metrics(folder, "step")] == [1, 2, 3]


def test_a_deleted_training_leaves_nothing_but_its_mention(workspace: Workspace) -> None:
    run = create(workspace)
    folder = workspace.runs / str(run.id)
    with work_on(folder, run.id), pytest.raises(UserError, match="stop it first"):
        training_run.delete(workspace, run)
    training_run.delete(workspace, run)
    assert not folder.exists()
    assert training_run.find(workspace, run.id).state == "deleted"
    with pytest.raises(UserError, match="cannot be read"):
        training_run.start(workspace, run, detached=True)


def test_only_a_training_that_runs_can_be_stopped(workspace: Workspace) -> None:
    run = create(workspace)
    with pytest.raises(UserError, match="not running"):
        training_run.ask_to_stop(workspace, run)
    folder = workspace.runs / str(run.id)
    with work_on(folder, run.id):
        training_run.ask_to_stop(workspace, run)
        with pytest.raises(UserError, match="already"):
            training_run.start(workspace, run, detached=True)
    assert (folder / STOP).exists()
