"""`awm-studio synth` with a model and `awm-studio run`, as a person and as a script use them."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from pipeline.engine.board import Board, State, read
from pipeline.engine.commands import find_run
from pipeline.engine.lock import worker
from pipeline.errors import UserError
from pipeline.model import Part
from pipeline.records import Event
from pipeline.workspace import Workspace
from studio.cli import awm_studio
from studio.synthesis import board_table
from tests.llm_server import Server, Status
from tests.pipeline.engine.conftest import contents
from tests.scripted_model import Model

IN_FLIGHT = 8
"""Requests that a profile has in flight at once by default."""


@pytest.fixture(autouse=True)
def no_model_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWM_MODEL", "AWM_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_KEY", "AWM_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


@pytest.fixture
def studio(workspace: Path) -> Callable[..., Result]:
    """Run `awm-studio` in this process."""

    def run(*arguments: str, **options: Any) -> Result:
        return CliRunner().invoke(awm_studio, ["--workspace", str(workspace), *arguments], **options)

    return run


@pytest.fixture
def started(workspace: Path) -> Callable[..., subprocess.Popen[bytes]]:
    """Start `awm-studio` as a process of its own."""

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "studio.cli", "--workspace", str(workspace), *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    return start


@pytest.fixture(autouse=True)
def nothing_left_running(workspace: Path) -> Iterator[None]:
    """End what a failed test leaves behind, and show what it said."""
    yield
    for folder in workspace.glob("runs/*"):
        if pid := worker(folder):
            os.kill(pid, signal.SIGKILL)
    for log in workspace.glob("logs/*.log"):
        print(log.read_text())


def board_of(workspace: Path) -> Board:
    with Workspace.open(workspace) as opened:
        return read(opened.catalog, find_run(opened.catalog, None).id)


def until(true_of: Callable[[], Any], *, seconds: float = 60) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := true_of()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)
    return found


def synth(server: Server, *more: str, count: int = 1) -> tuple[str, ...]:
    return (
        "synth", "--count", str(count), "--model", "m", "--base-url", server.url, "--nearness", "ngrams", *more
    )  # fmt: skip


def test_environments_come_out_with_their_figures_and_each_stage_can_be_looked_into(studio: Callable[..., Result]):
    with Server(Model()) as server:
        done = studio(*synth(server, "--json"))
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document.keys() >= {"run", "environments", "stages", "means"}
    assert document["stages"].keys() == {"scenario", "tasks", "database", "interface", "verification"}
    for figures in document["stages"].values():
        assert figures.keys() >= {"attempts", "first_try", "final", "tokens", "usd", "seconds"}
        assert figures["usd"] is None  # no prices, so not zero
    assert document["means"].keys() == {"tables", "rows", "tools", "lines", "tokens"}
    assert document["environments"][0]["state"] == "done"
    listed = json.loads(studio("list", "--json").stdout)["environments"]
    assert [(each["name"], each["origin"], each["tasks"]) for each in listed] == [
        (document["environments"][0]["name"], "model", 10)
    ]

    steps = json.loads(studio("run", "show", "1", "1", "database", "--json").stdout)["steps"]
    assert [(step["step"], len(step["attempts"]), step["attempts"][0]["right"]) for step in steps] == [
        ("schema", 1, True),
        ("sample", 1, True),
    ]
    assert "You fill the SQLite database" in studio("run", "show", "1", "1", "database", "--prompt").stdout
    assert "INSERT INTO users" in studio("run", "show", "1", "1", "database", "--text").stdout
    with pytest.raises(UserError, match="no stage 'cooking'"):
        studio("run", "show", "1", "1", "cooking", catch_exceptions=False)
    with pytest.raises(UserError, match="no scenario 'nobody'"):
        studio("run", "show", "1", "nobody", catch_exceptions=False)


def test_profiles_of_the_settings_say_who_is_asked_for_what_and_what_it_costs(
    studio: Callable[..., Result], workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    def embed(text: str) -> list[float]:
        return [random.Random(f"{text}{n}").gauss() for n in range(32)]

    with Server(Model(), embed=embed) as server:
        Path(os.environ["AWM_CONFIG"]).write_text(
            f'[profiles.default]\nmodel = "big"\nbase_url = "{server.url}"\nprices = {{ input = 1, output = 10 }}\n'
            f'[profiles.small]\nmodel = "little"\nbase_url = "{server.url}"\nprices = {{ input = 0.1, output = 1 }}\n'
            f'[profiles.vectors]\nmodel = "embedder"\nbase_url = "{server.url}"\nprices = {{ input = 0, output = 0 }}\n'
            '[stages]\ntasks = "small"\nembedding = "vectors"\n'
        )
        done = studio("synth", "--count", "1", "--budget", "2", "--json")
        assert done.exit_code == 0, done.output
        assert {request["model"] for request in server.requests if "input" in request} == {"embedder"}
    document = json.loads(done.stdout)
    assert 0 < document["spent_usd"] < 2
    tasks = document["stages"]["tasks"]
    assert tasks["usd"] == pytest.approx(((tasks["tokens"] - 200) * 0.1 + 200) / 1e6, rel=0.01)
    with Workspace.open(workspace) as opened:
        authors = {v.part: v.author.name for v in opened.catalog.current(document["environments"][0]["name"])}
    assert (authors[Part.tasks], authors[Part.code]) == ("little", "big")


def test_the_live_table_shows_every_state_by_its_sign():
    board = Board()
    events = [
        ("changed", {"count": 2, "budget": 5.0, "models": {"tasks": {"prices": {"input": 1, "output": 1}}}}, None),
        ("scenario", {"title": "One [bold]", "category": "c", "description": "", "score": 9, "round": 1}, "one"),
        ("stage", {"stage": "scenario", "state": "done"}, "one"),
        ("stage", {"stage": "tasks", "state": "running"}, "one"),
        ("attempt", {"stage": "tasks", "step": "tasks", "number": 1, "right": False, "findings": [], "keys": [],
                     "content": None}, "one"),
    ]  # fmt: skip
    for number, (kind, data, scenario) in enumerate(events, 1):
        board.apply(Event(number, 1, kind, scenario, data, datetime.now(UTC)))
    console = Console(width=100)
    with console.capture() as capture:
        console.print(board_table(board))
    shown = capture.get()
    assert "0/2 done, 0 failed, 0 waiting · $0.00 of $5" in shown
    assert "One [bold]" in shown
    assert "✓" in shown and "↻" in shown and "correcting" in shown


def test_it_is_told_what_waits_and_how_to_go_on(studio: Callable[..., Result]):
    def wrong(step: str, about: str, before: int) -> Any:
        return Status(401, "bad key") if step == "schema" and before == 0 else None

    with Server(Model(wrong)) as server:
        done = studio(*synth(server))
        assert done.exit_code == 1
        assert "database waiting" in done.stderr
        assert "refuses the key in OPENAI_API_KEY" in done.stderr
        assert "awm-studio synth --resume --run 1" in done.stderr
        again = studio("synth", "--resume", "--json")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["environments"][0]["state"] == "done"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--count", "2"), "No model is set up"),
        ((), "--count N"),
        (("--resume",), "is no workspace|no workspace|There is no"),
        (("--count", "2", "--model", "m", "--gate", "cooking"), "'cooking' is no gate"),
        (("--count", "2", "--model", "m", "--budget", "5"), "A budget needs prices, and m has none"),
        (("--count", "2", "--model", "m", "--base-url", "localhost"), "not an http"),
        (("--count", "2", "--model", "m", "--seeds", "/no/such/file"), "cannot be read"),
        (("--count", "2", "--model", "m", "--nearness", "endpoint"), "No embedding model is named"),
    ],
)
def test_what_is_missing_is_said(studio: Callable[..., Result], arguments: tuple[str, ...], told: str):
    with pytest.raises(UserError, match=told):
        studio("synth", *arguments, catch_exceptions=False)


def test_killed_at_any_moment_it_goes_on_and_repeats_at_most_what_was_in_flight(
    workspace: Path, started: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
):
    """Killed in stage 1 and again later, the run ends with the catalog of one that was never killed."""
    victims: list[subprocess.Popen[bytes]] = []
    kill_at = iter([2, 30])
    next_kill = [next(kill_at)]

    def murderous(step: str, about: str, before: int) -> Any:
        if sum(model.asked.values()) >= next_kill[0]:
            next_kill[0] = next(kill_at, 10**9)
            victims[-1].send_signal(signal.SIGKILL)
        return None

    with Server(model := Model(murderous)) as server:
        victims.append(started(*synth(server, count=2)))
        victims[-1].wait(timeout=120)
        while next_kill[0] < 10**9:
            victims.append(started("synth", "--resume"))
            assert victims[-1].wait(timeout=120) == -signal.SIGKILL
        victims.append(started("synth", "--resume", "--json"))
        output, errors = victims[-1].communicate(timeout=120)
        assert victims[-1].returncode == 0, errors.decode()
        assert json.loads(output)["state"] == "done"
        asked = len(server.requests)
    with Server(calm := Model()) as server:
        undisturbed = tmp_path / "undisturbed"
        done = CliRunner().invoke(awm_studio, ["--workspace", str(undisturbed), *synth(server, count=2)])
        assert done.exit_code == 0, done.output
        assert asked <= sum(calm.asked.values()) + 2 * IN_FLIGHT
    with Workspace.open(workspace) as ours, Workspace.open(undisturbed) as theirs:
        assert [row[:5] for row in contents(ours)] == [row[:5] for row in contents(theirs)]


def test_a_detached_run_is_watched_and_steered_from_other_processes(
    studio: Callable[..., Result], workspace: Path, tmp_path: Path
):
    def waits_at(stage: str) -> bool:
        return any(row.cells[stage].state is State.waiting for row in board_of(workspace).wanted)

    def is_alive() -> bool:
        return json.loads(studio("run", "show", "1", "--json").stdout)["alive"]

    with Server(Model()) as server:
        done = studio(*synth(server, "--detach", "--gate", "tasks", "--gate", "database", "--json"))
        assert done.exit_code == 0, done.output
        pid = json.loads(done.stdout)["pid"]
        assert os.getsid(pid) == pid  # it outlives the terminal
        until(lambda: waits_at("tasks"))
        assert is_alive()
        assert "is working on run 1 already" in str(studio("synth", "--resume").exception)

        tasks = tmp_path / "tasks.json"
        tasks.write_text(json.dumps(['Mark the item "Item 2" as done.']))
        assert "is yours" in studio("run", "edit", "1", "1", "tasks", "--file", str(tasks)).stderr
        until(lambda: waits_at("database"))

        assert "stops" in studio("run", "stop", "1").stderr
        until(lambda: not is_alive())
        assert "nobody works on run 1 now" in studio("run", "approve", "1").stderr
        assert studio("run", "resume", "1").exit_code == 0  # a new process, which finds the approval
        until(lambda: board_of(workspace).state == "done")
    assert json.loads(studio("list", "--json").stdout)["environments"][0]["tasks"] == 1
    listed = json.loads(studio("run", "list", "--json").stdout)["runs"]
    assert [(run["run"], run["state"], run["done"]) for run in listed] == [(1, "done", 1)]


def test_ctrl_c_ends_in_order_and_says_how_to_go_on(started: Callable[..., subprocess.Popen[bytes]], workspace: Path):
    with Server(Model()) as server:
        process = started(*synth(server, "--gate", "tasks"))
        until(lambda: workspace.exists() and (workspace / "runs" / "1").exists())
        until(lambda: board_of(workspace).counts()[State.waiting] == 1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130
        assert b"interrupted" in errors
        assert board_of(workspace).state == "interrupted"
