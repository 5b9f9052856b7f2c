"""A checkpoint is served to a harness while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="training needs the extra: pip install 'awm-studio[train]'")

from pipeline.workspace import Workspace
from tests.train.tiny_worlds import model, tokenizer
from train.checkpoints import find_checkpoint
from train.harness import harness_run
from train.harness.offers import plan_for
from train.policy_model import save


def test_a_checkpoint_is_evaluated_by_a_harness(fake_bfcl: Path, workspace: Workspace, tmp_path: Path) -> None:
    made = tokenizer()
    save(model(made), made, tmp_path / "model")
    found = find_checkpoint(workspace.runs, str(tmp_path / "model"))
    profile = found.profile.model_copy(update={"params": {"max_tokens": 8}})
    plan = plan_for("bfcl", "paper", profile, domains=["irrelevance"], checkpoint=found.folder)
    document = harness_run.work(workspace, harness_run.create(workspace, plan))
    assert (document["state"], document["n"], document["score"]) == ("done", 1, 0.0)
    assert document["model"] == str(tmp_path / "model")
    assert document["requests"]["tokens_out"] > 0
