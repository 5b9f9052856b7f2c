"""`awm-studio eval bfcl`, `tau2`, `mcp-universe` and `harnesses`, as a script would use them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipeline.errors import UserError
from pipeline.workspace import Workspace
from studio.cli import awm_studio
from tests.llm_server import Say, Server, Status
from tests.train.harness.conftest import CHECKOUT
from train.harness import launching

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command: its exit code, stdout and stderr. Raises the UserError it would print."""
    monkeypatch.setattr(launching, "LOOK_EVERY_S", 0.05)

    def run(*arguments: str) -> tuple[int, str, str]:
        called = ["--workspace", str(workspace.path), *arguments]
        result = CliRunner().invoke(awm_studio, called, catch_exceptions=False)
        return result.exit_code, result.stdout, result.stderr

    return run


@pytest.fixture
def server() -> Iterator[Server]:
    with Server([Say("right", streams=False)]) as running:
        yield running


def of(server: Server) -> list[str]:
    return ["--model", "m", "--base-url", server.url, "--protocol", "native"]


def test_the_harnesses_are_listed_with_what_is_missing(
    command: Command, fake_bfcl: Path, fake_mcp_universe: Path
) -> None:
    code, printed, _ = command("eval", "harnesses", "--json")
    found = {each["name"]: each for each in json.loads(printed)["harnesses"]}
    assert (code, found["bfcl"]["state"], found["tau2"]["state"]) == (0, "ready", "not installed")
    assert found["mcp-universe"]["state"] == "incomplete"
    _, shown, _ = command("eval", "harnesses", "--tasks", str(CHECKOUT))
    assert "17 domains" in shown
    assert "awm-studio eval harnesses --install tau2" in shown
    assert "echo" in shown


def test_an_installation_can_be_removed(command: Command, fake_bfcl: Path) -> None:
    assert json.loads(command("eval", "harnesses", "--remove", "bfcl", "--json")[1])["harnesses"][0]["state"] != "ready"
    assert not fake_bfcl.exists()


def test_a_benchmark_prints_its_report(command: Command, fake_bfcl: Path, server: Server) -> None:
    code, printed, said = command(
        "eval", "bfcl", "--preset", "quick", "--category", "simple", "--yes", "--json", *of(server)
    )
    document = json.loads(printed)
    keys = {"suite", "version", "n", "total", "excluded", "score", "interval", "state", "why"}
    assert keys <= document.keys()
    assert (code, document["suite"], document["n"], document["score"], document["state"]) == (0, "bfcl", 4, 1.0, "done")
    assert "4 requests to the model" in said
    assert "Money: unknown (the profile has no prices)" in said
    _, shown, _ = command("eval", "report", str(document["run"]))
    assert "bfcl, m: 1.000 (0.510 to 1.000) on 4 tasks, 4 of 4 tries." in shown


def test_one_that_stopped_exits_with_2_and_says_how_to_go_on(command: Command, fake_bfcl: Path) -> None:
    with Server([Say("hello", streams=False), Status(400, "no")]) as server:
        code, printed, said = command("eval", "bfcl", "--category", "simple", "--yes", "--json", *of(server))
    assert (code, json.loads(printed)["state"], json.loads(printed)["score"]) == (2, "not run", None)
    assert "awm-studio eval bfcl --resume --run 1 goes on." in said


def test_nothing_starts_before_its_costs_are_agreed_to(command: Command, fake_bfcl: Path, server: Server) -> None:
    with pytest.raises(UserError, match="This costs time and perhaps money: start it with --yes"):
        command("eval", "bfcl", "--category", "simple", *of(server))
    code, printed, _ = command("eval", "bfcl", "--category", "simple", "--estimate", "--json", *of(server))
    assert (code, json.loads(printed)["model"]["requests"]) == (0, 2)
    assert server.requests == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["bfcl", "--preset", "huge"], "bfcl has no preset 'huge': there are smoke, quick, paper"),
        (["bfcl", "--category", "sql"], "BFCLv3 has no domain 'sql'"),
        (["tau2"], "τ²-bench needs a model that plays the user: name one with --user-model"),
        (["tau2", "--user-model", "u"], "τ²-bench is not installed"),
        (["mcp-universe"], "its package has no tasks: clone"),
        (["mcp-universe", "--tasks", "nowhere"], "nowhere is not a folder"),
        (["bfcl", "--resume"], "There is no unfinished evaluation of bfcl to go on with"),
    ],
)
def test_what_cannot_be_done_is_told(
    arguments: list[str], told: str, command: Command, fake_bfcl: Path, fake_mcp_universe: Path, server: Server
) -> None:
    with pytest.raises(UserError, match=told):
        command("eval", *arguments, "--yes", *of(server))
    assert server.requests == []


def test_a_harness_that_is_not_there_is_told_with_the_command(command: Command, server: Server, place: Path) -> None:
    with pytest.raises(UserError, match="awm-studio eval harnesses --install bfcl does it"):
        command("eval", "bfcl", "--yes", *of(server))
    assert not place.exists()


def test_a_window_is_a_number_or_all(command: Command, fake_bfcl: Path, server: Server) -> None:
    code, _, said = command("eval", "bfcl", "--window", "some", *of(server))
    assert (code, "'some' is neither a number nor all" in said) == (2, True)
