"""`awm-studio eval`, as a script would use it."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from pipeline.errors import UserError
from studio.cli import awm_studio
from tests.train.held_out import SUBSET, workspace_with_held_out

pytestmark = pytest.mark.usefixtures("one_host")

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Runs a command on a workspace with held-out tasks. Raises the UserError it would print."""
    folder = workspace_with_held_out(tmp_path / "workspace")

    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(awm_studio, ["--workspace", str(folder), *arguments], catch_exceptions=False)
        return result.exit_code, result.stdout

    return run


def test_two_evaluations_are_made_compared_and_exported(command: Command, tmp_path: Path) -> None:
    for policy in ("noop", "reference"):
        code, printed = command("eval", "heldout", "--subset", SUBSET, "--policy", policy, "--tries", "2", "--json")
        found = json.loads(printed)
        assert (code, found["suite"], found["n"], found["total"]) == (0, "heldout", 8, 8)
        assert (found["state"], found["excluded"]) == ("done", 0)
        assert "items" not in found
    assert (found["score"], found["interval"][1], found["means"]["tokens_out"]) == (1.0, 1.0, None)

    compared = json.loads(command("eval", "compare", "1", "2", "--json")[1])
    assert (compared["difference"], compared["interval"], compared["verdict"]) == (1.0, None, "not decided")
    assert compared["why"] == "4 tasks differ, and fewer than 6 decide nothing"
    assert len(compared["gained"][0]["show"]) == 4
    code, shown = command(*compared["gained"][0]["show"][0].split()[1:])
    assert (code, "End: answered" in shown) == (0, True)
    assert "not decided: 4 tasks differ" in command("eval", "compare", "1", "2")[1]

    assert "## Several tries" not in command("eval", "report", "2")[1]
    for suffix in ("md", "csv", "html"):
        command("eval", "report", "2", "--out", str(tmp_path / f"report.{suffix}"))
    assert "1.000 (0.510 to 1.000)" in (tmp_path / "report.md").read_text()
    with (tmp_path / "report.csv").open() as file:
        assert [row["passed"] for row in csv.DictReader(file)] == ["2"] * 4
    assert "<svg" in (tmp_path / "report.html").read_text()


def test_the_proxy_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    folder = str(workspace_with_held_out(tmp_path / "workspace", ()))
    words = ["proxy", "--upstream", "http://127.0.0.1:9/v1", "--model", "m", "--json", "-w", folder]
    with subprocess.Popen([sys.executable, "-m", "studio.cli", *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
        models = httpx.get(f"{told['base_url']}/models").json()["data"]
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    assert [model["id"] for model in models] == ["m"] == [told["model"]]
    assert Path(told["log"]).read_bytes() == b""


def test_an_evaluation_without_a_server_exits_with_2_and_has_no_score(command: Command) -> None:
    words = ("--subset", SUBSET, "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--retries", "0")
    code, printed = command("eval", "heldout", *words, "--json")
    found = json.loads(printed)
    assert (code, found["state"], found["score"]) == (2, "not run", None)
    assert "no connection" in found["why"]
    told = command("eval", "report", "1")[1]
    assert "not run" in told
    assert "judged" not in told  # no tables of nothing


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("heldout",), "Say what to try"),
        (("heldout", "--subset", "nothing"), "no subset 'nothing'"),
        (("heldout", "--subset", SUBSET), "No model is set up"),
        (("heldout", "--subset", SUBSET, "--checkpoint", "7"), "There is no training 7"),
        (("heldout", "--resume"), "no unfinished evaluation of heldout"),
        (("report", "9"), "no evaluation with the number 9"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(command: Command, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UserError, match=said):
        command("eval", *words)
