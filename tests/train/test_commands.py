"""`awm-studio rollout` and `trajectory`, as a script would use them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pipeline.blueprints.make import environment
from pipeline.errors import UserError
from studio.cli import awm_studio
from tests.llm_server import Say, Server
from tests.train.pantry import broken, fill, pantry
from train.protocol import call_text, list_text

pytestmark = pytest.mark.usefixtures("one_host")

Command = Callable[..., tuple[int, Any]]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Runs a command with --json on a workspace with a pantry. Raises the UserError it would print."""
    folder = fill(tmp_path / "workspace", pantry())

    def run(*arguments: str) -> tuple[int, Any]:
        words = ["--workspace", str(folder), *arguments, "--json"]
        result = CliRunner().invoke(awm_studio, words, catch_exceptions=False)
        return result.exit_code, json.loads(result.stdout)

    return run


def test_reference_solutions_of_blueprints_complete_every_task_and_doing_nothing_none(tmp_path: Path) -> None:
    folder = str(fill(tmp_path / "w", environment("library", 0, 0)))

    def rolled(policy: str) -> Any:
        words = ["rollout", "--policy", policy, "--workspace", folder, "--json"]
        return json.loads(CliRunner().invoke(awm_studio, words, catch_exceptions=False).stdout)

    right, idle = rolled("reference"), rolled("noop")
    assert (right["rollouts"], right["complete"], right["excluded"]) == (10, 10, 0)
    assert (idle["rollouts"], idle["complete"], idle["excluded"]) == (10, 0, 0)


def test_a_rollout_tells_what_came_of_it(command: Command) -> None:
    code, figures = command("rollout", "pantry", "--task", "0", "--policy", "reference", "--tries", "2")
    assert code == 0
    assert {key: figures[key] for key in ("rollouts", "outcomes", "complete", "rate", "excluded", "calls")} == {
        "rollouts": 2, "outcomes": {"answered": 2}, "complete": 2, "rate": 1.0, "excluded": 0, "calls": 4,
    }  # fmt: skip
    assert 0 < figures["interval"][0] < figures["interval"][1] == 1.0


def test_a_model_is_rolled_out_by_its_address(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "")
    turns = [list_text(), call_text("set_amount", {"item_id": 1, "amount": 5}), "Done."]
    with Server([Say(turn) for turn in turns]) as server:
        model = (
            "--model",
            "agent",
            "--base-url",
            server.url,
            "--temperature",
            "0.6",
            "--window",
            "10",
            "--concurrency",
            "1",
        )
        code, figures = command("rollout", "pantry", "--task", "0", *model)
        assert (code, figures["complete"]) == (0, 1)
        assert [request["temperature"] for request in server.requests] == [0.6] * 3


def test_a_reference_that_fails_and_nothing_to_judge_are_failures(command: Command, tmp_path: Path) -> None:
    fill(tmp_path / "workspace", broken())
    code, figures = command("rollout", "ruin", "--task", "0", "--policy", "reference")
    assert (code, figures["rate"], figures["excluded"]) == (1, None, 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("rollout", "pantri", "--policy", "noop"), "Did you mean pantry"),
        (("rollout", "pantry", "--task", "3", "--policy", "noop"), "tasks 0 to 2"),
        (("rollout", "--subset", "mix", "--policy", "noop"), "no subset 'mix'"),
        (("rollout", "pantry"), "No model is set up"),
        (("rollout", "pantry", "--policy", "noop", "--audit", "missing.json"), "missing.json cannot be read"),
        (("rollout", "--resume"), "no unfinished rollouts"),
        (("trajectory", "show", "7"), "There is no"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(command: Command, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UserError, match=said):
        command(*words)


def test_a_trajectory_is_stepped_through_with_what_each_call_changed(command: Command) -> None:
    _, figures = command("rollout", "pantry", "--task", "0", "--policy", "reference")
    _, shown = command("trajectory", "show", str(figures["run"]))
    assert [step["move"] for step in shown["steps"]] == ["list", "call", "call", "answer"]
    assert shown["steps"][1]["diff"] == {}
    assert shown["steps"][2]["diff"]["items"]["changed"] == [
        {"key": {"id": 1}, "before": {"amount": 1}, "after": {"amount": 5}}
    ]
    assert shown["same"] is True


def test_trajectories_are_replayed_scored_exported_and_imported(command: Command, tmp_path: Path) -> None:
    _, figures = command("rollout", "pantry", "--policy", "noop")
    run = str(figures["run"])
    assert command("trajectory", "replay", run)[1]["same"] == 3
    assert command("trajectory", "score", run)[1]["changed"] == []
    assert len(command("trajectory", "score", run, "--no-op-pays")[1]["changed"]) == 2
    assert command("trajectory", "export", run, str(tmp_path / "out"))[1]["rollouts"] == 3
    _, taken = command("trajectory", "import", str(tmp_path / "out"))
    assert len(command("trajectory", "show", str(taken["run"]))[1]["trajectories"]) == 3


def test_rollouts_whose_databases_were_not_kept_are_scored_by_doing_their_calls_again(command: Command) -> None:
    _, figures = command("rollout", "pantry", "--task", "0", "--policy", "reference")
    run, folder = str(figures["run"]), Path(figures["folder"])
    before = command("trajectory", "score", run)[1]
    shutil.rmtree(folder / "snapshots")
    assert command("trajectory", "score", run)[1] == before
    records = folder / "trajectories.jsonl"
    records.write_text(
        records.read_text().replace('\\"amount\\": 5', '\\"amount\\": 6').replace('"amount":5', '"amount":6')
    )
    with pytest.raises(UserError, match="not kept: doing its calls again comes to something else"):
        command("trajectory", "score", run)


def test_a_trajectory_that_was_tampered_with_is_found(command: Command, tmp_path: Path) -> None:
    _, figures = command("rollout", "pantry", "--task", "0", "--policy", "reference")
    file = Path(figures["folder"]) / "trajectories.jsonl"
    file.write_text(file.read_text().replace('\\"amount\\": 5', '\\"amount\\": 6').replace('"amount":5', '"amount":6'))
    code, again = command("trajectory", "replay", str(figures["run"]))
    assert (code, again["differ"]) == (1, 1)
    assert again["replays"][0]["why"] == "final database"


def test_a_changed_environment_can_be_run_as_it_was(command: Command, tmp_path: Path) -> None:
    _, figures = command("rollout", "pantry", "--task", "0", "--policy", "reference")
    edited = pantry().code or ""
    from pipeline.catalog import Catalog
    from pipeline.model import Author, AuthorKind, Part

    with Catalog.open(tmp_path / "workspace" / "catalog.db") as catalog:
        changed = edited.replace('"amount": item.amount', '"amount": -item.amount')
        catalog.put("pantry", Part.code, changed, author=Author(AuthorKind.person))
    assert command("trajectory", "replay", str(figures["run"]))[1]["same"] == 1
