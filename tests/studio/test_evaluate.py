"""The Evaluate screen as a person uses it: evaluations are followed, read, compared, exported, started, gone on with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Select, Static

from pipeline.llm.profiles import Profile
from pipeline.records import Run
from pipeline.settings import Settings
from pipeline.workspace import Workspace
from studio import launch
from studio.app import Studio
from studio.evaluation_watch import EvaluationWatch
from studio.screens.choose import ChooseScreen
from studio.screens.evaluate import EvaluateScreen
from studio.screens.evaluate_new import NewEvaluationScreen
from studio.screens.evaluate_record import TaskRecordScreen
from studio.screens.evaluate_rollout import EvaluatedRolloutScreen
from studio.widgets.evaluation.bars import BAR, bar
from studio.widgets.grid import Grid
from studio.widgets.source import Source
from tests.studio.conftest import studio_on, until
from tests.studio.evaluations import INCOMPLETE, NOT_INSTALLED, READY, fill_with_evaluations
from tests.train.held_out import SUBSET
from train import evaluate
from train.harness.plan import CALLS
from train.json_lines import json_line
from train.rollout_run import LIVE

RECORDED = Path(__file__).parents[1] / "train" / "harness" / "recorded"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, kept_host: Any) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.runtime.host.Host.from_settings", lambda settings: kept_host)
        yield fill_with_evaluations(tmp_path_factory.mktemp("evaluations") / "workspace")


@pytest.fixture
def evaluations(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "workspace"))


@pytest.fixture(autouse=True)
def as_if(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Harnesses in three states, a process that lives, and commands that are noted instead of started."""
    started: list[tuple[str, ...]] = []
    monkeypatch.setattr("train.evaluate_suites.readiness", lambda: [READY, NOT_INSTALLED, INCOMPLETE])
    monkeypatch.setattr(launch, "is_alive", lambda run: run.state == "running")
    monkeypatch.setattr(Studio, "start_run", lambda self, *arguments: started.append(arguments))
    return started


async def opened(pilot: Pilot[None]) -> EvaluateScreen:
    await until(pilot, lambda: pilot.app.workspace)
    await pilot.press("6")
    await until(pilot, lambda: isinstance(pilot.app.screen, EvaluateScreen) and len(pilot.app.screen.grid.rows))
    screen = pilot.app.screen
    assert isinstance(screen, EvaluateScreen)
    await until(pilot, lambda: screen.suites and screen.grid.rows[-1].report)
    return screen


async def at(pilot: Pilot[None], screen: EvaluateScreen, number: int, tab: str = "result") -> None:
    screen.grid.go_to(lambda watch: watch.run.id == number)
    screen.detail.open(tab)
    await pilot.pause(0.1)


def said(screen: EvaluateScreen, name: str) -> str:
    return str(screen.query_one(f"#{name}", Static).content)


async def test_the_suites_are_told_with_what_each_is_missing(evaluations: Path) -> None:
    async with studio_on(evaluations) as (_, pilot):
        screen = await opened(pilot)
        assert "Held-out ✓  BFCLv3 ✓" in said(screen, "suites-head")
        assert "τ²-bench ✗ not installed" in said(screen, "suites-head")
        screen.detail.open("suites")
        await until(pilot, lambda: len(screen.query_one("#suite-list Grid", Grid).rows) == 4)
        screen.query_one("#suite-list Grid", Grid).cursor = 3
        await until(pilot, lambda: "Blender" in screen.query_one("#suite-list Source", Source).text)
        assert "✗ web_search  55 tasks  SERP_API_KEY is not set" in screen.query_one("#suite-list Source", Source).text


async def test_a_subset_that_was_made_meanwhile_can_be_tried(evaluations: Path) -> None:
    async with studio_on(evaluations) as (studio, pilot):
        with Workspace.open(evaluations) as workspace:
            [stored] = [subset for subset in workspace.catalog.subsets() if subset.name == SUBSET]
            document = workspace.catalog.subset(SUBSET)
            workspace.catalog.remove_subset(SUBSET)
            screen = await opened(pilot)
            assert "Held-out ✗" in said(screen, "suites-head")
            await pilot.press("4")
            await until(pilot, lambda: studio.screen is not screen)
            workspace.catalog.set_subset(SUBSET, document, stored.card)
            await pilot.press("6")
            await until(pilot, lambda: "Held-out ✓" in said(screen, "suites-head"))


async def test_a_suite_is_started_or_installed_from_where_it_is_told(evaluations: Path, as_if: list[Any]) -> None:
    async with studio_on(evaluations) as (_, pilot):
        screen = await opened(pilot)
        screen.detail.open("suites")
        grid = screen.query_one("#suite-list Grid", Grid)
        await until(pilot, lambda: len(grid.rows) == 4)
        screen.detail.enter()
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, NewEvaluationScreen))
        assert pilot.app.screen.query_one("#suite", Select).value == "bfcl"
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChooseScreen))
        await pilot.press("down", "enter")
        await until(pilot, lambda: as_if)
    assert as_if == [("eval", "harnesses", "--install", "tau2")]


async def test_a_running_evaluation_tells_its_pass_rate_pace_and_time_left(evaluations: Path) -> None:
    async with studio_on(evaluations) as (_, pilot):
        screen = await opened(pilot)
        await until(pilot, lambda: "15.0/min" in said(screen, "run-head"))
        told = said(screen, "run-head")
        assert "▶ running" in told
        assert "30/64  passed 75.0% (57%–87%) so far │ 15.0/min  ETA 2m16 │ left out 2" in told
        folder = evaluations / "runs" / "5"
        later = {
            "done": 40,
            "total": 64,
            "judged": 38,
            "passed": 21,
            "excluded": 2,
            "why": "slow",
            "t": 1767349230 + 150,
        }
        (folder / evaluate.PROGRESS).write_bytes(json_line(later))
        await until(pilot, lambda: "40/64" in said(screen, "run-head"))
        assert said(screen, "run-trouble") == "✗ slow"


async def test_a_result_has_bars_with_intervals_and_what_they_rest_on(evaluations: Path) -> None:
    async with studio_on(evaluations) as (_, pilot):
        screen = await opened(pilot)
        await at(pilot, screen, 2)
        text = screen.query_one("#scores", Source).text
        assert "1.000 (0.676–1.000)  8 tasks" in text
        assert "tries judged       16 of 16" in text
        assert "By concept" in text
        assert "pass^2" in text
        await at(pilot, screen, 3)
        text = screen.query_one("#scores", Source).text
        assert "left out                 no answer: 1" in text
        assert "31, 48,210 tokens read, 2,904 written, 3 errors" in text
        assert said(screen, "run-trouble") == "✗ 1 of 5 tries have no result: resume."


async def test_what_was_not_run_has_no_score(evaluations: Path) -> None:
    async with studio_on(evaluations) as (_, pilot):
        screen = await opened(pilot)
        await at(pilot, screen, 4)
        assert "✗ not run" in said(screen, "run-head")
        assert "passed" not in said(screen, "run-head")
        assert "knows no model 'gone-8b'" in said(screen, "run-trouble")
        assert "no score" in screen.query_one("#scores", Source).text
        assert "0.000" not in screen.query_one("#scores", Source).text


async def test_a_report_that_is_damaged_is_told_and_not_shown(evaluations: Path) -> None:
    place = evaluations / "runs" / "2" / "report.json"
    place.write_text(place.read_text().replace('"score":1.0', '"score":NaN', 1))
    async with studio_on(evaluations) as (_, pilot):
        screen = await opened(pilot)
        await at(pilot, screen, 2)
        assert "NaN is not a result" in said(screen, "run-trouble")
        assert "no report" in screen.query_one("#scores", Source).text


async def test_a_failed_task_is_stepped_through_with_its_calls_and_changes(evaluations: Path) -> None:
    async with studio_on(evaluations) as (_, pilot):
        screen = await opened(pilot)
        await at(pilot, screen, 1, "tasks")
        grid = screen.query_one("#evaluated Grid", Grid)
        await until(pilot, lambda: len(grid.rows) == 8 and grid.rows[0].rollouts)
        assert grid.rows[0].item.passes == (False, False)
        screen.detail.enter()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, EvaluatedRolloutScreen))
        rollout = pilot.app.screen
        assert isinstance(rollout, EvaluatedRolloutScreen)
        await until(pilot, lambda: rollout.again)
        assert len(rollout.query_one("#turns", Grid).rows) == 3
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)


async def test_what_a_harness_has_kept_of_a_task_is_read(evaluations: Path) -> None:
    shutil.copytree(RECORDED / "bfcl", evaluations / "runs" / "3" / "harness")
    async with studio_on(evaluations) as (_, pilot):
        screen = await opened(pilot)
        await at(pilot, screen, 3, "tasks")
        grid = screen.query_one("#evaluated Grid", Grid)
        await until(pilot, lambda: len(grid.rows) == 5)
        screen.detail.enter()
        grid.go_to(lambda row: row.item.id == "multi_turn_base_0")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, TaskRecordScreen))
        text = pilot.app.screen.query_one("#record", Source).text
        assert "result/awm-studio/BFCL_v3_multi_turn_base_result.json" in text
        assert "final_report.pdf" in text
        await pilot.press("escape")
        await until(pilot, lambda: pilot.app.screen is screen)


async def test_two_evaluations_are_compared_and_a_lost_task_is_opened(evaluations: Path) -> None:
    async with studio_on(evaluations) as (_, pilot):
        screen = await opened(pilot)
        await at(pilot, screen, 2, "versus")
        assert "Mark an evaluation with x" in screen.query_one("#verdict-lines", Source).text
        await pilot.press("x")
        await at(pilot, screen, 1, "versus")
        verdict = screen.query_one("#verdict-lines", Source)
        await until(pilot, lambda: "▼ worse" in verdict.text)
        assert "paired bootstrap over tasks" in verdict.text
        changed = screen.query_one("#changed-tasks", Grid)
        assert [(row.gained, row.before, row.after) for row in changed.rows] == [(False, "2/2", "0/2")] * 8
        screen.detail.enter()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, EvaluatedRolloutScreen))
        assert pilot.app.screen.trajectory.policy == "noop"


async def test_other_suites_are_not_compared(evaluations: Path) -> None:
    async with studio_on(evaluations) as (_, pilot):
        screen = await opened(pilot)
        await at(pilot, screen, 2, "versus")
        await pilot.press("x")
        await at(pilot, screen, 3, "versus")
        verdict = screen.query_one("#verdict-lines", Source)
        await until(pilot, lambda: "the suite is heldout in one and bfcl in the other" in verdict.text)


async def test_a_report_is_exported(evaluations: Path) -> None:
    async with studio_on(evaluations) as (_, pilot):
        screen = await opened(pilot)
        await at(pilot, screen, 2)
        await pilot.press("e")
        place = evaluations / "reports"
        await until(pilot, (place / "evaluation-2.html").exists)
        assert sorted(path.suffix for path in place.iterdir()) == [".csv", ".html", ".md"]


async def test_what_goes_on_is_shown_rollouts_or_what_went_through_the_proxy(evaluations: Path) -> None:
    live = {"total": 64, "done": 30, "live": [{"key": "pantry0/0/3", "seconds": 4.2, "turn": 2, "doing": "thinking"}]}
    (evaluations / "runs" / "5" / LIVE).write_bytes(json_line(live))
    usage = {"prompt_tokens": 812, "completion_tokens": 40}
    call = {"name": "cd", "arguments": '{"folder": "document"}'}
    entry = {"t": 1767349230, "messages": 3, "tools": 18, "new": [{"role": "user", "content": "Go there."}],
             "said": ["<think>so</think> I go."], "content": None, "calls": [call], "finish": "tool_calls",
             "usage": usage, "seconds": 1.2, "error": "slow down"}  # fmt: skip
    (evaluations / "runs" / "3" / CALLS).write_bytes(json_line(entry))
    async with studio_on(evaluations) as (_, pilot):
        screen = await opened(pilot)
        going_on = screen.query_one("#going-on", Source)
        await at(pilot, screen, 5, "live")
        await until(pilot, lambda: "1 rollouts go on" in going_on.text)
        assert "turn  2      4 s  thinking" in going_on.text
        await at(pilot, screen, 3, "live")
        await until(pilot, lambda: "3 messages, 18 tools  1 s, 812 → 40 tokens" in going_on.text)
        assert 'cd({"folder": "document"})' in going_on.text
        assert "✗ slow down" in going_on.text
        await at(pilot, screen, 2, "live")
        await until(pilot, lambda: "Nothing goes on" in going_on.text)


async def test_what_is_missing_is_done_and_what_is_done_is_not(evaluations: Path, as_if: list[Any]) -> None:
    async with studio_on(evaluations) as (_, pilot):
        screen = await opened(pilot)
        await at(pilot, screen, 3)
        await pilot.press("r")
        await at(pilot, screen, 2)
        await pilot.press("r")
        await pilot.pause()
    assert as_if == [("eval", "bfcl", "--resume", "--run", "3")]


def test_an_ablation_that_trains_is_gone_on_with_and_another_is_asked_for_anew() -> None:
    now = datetime(2026, 1, 2, tzinfo=UTC)

    def run(config: dict[str, Any]) -> Run:
        return Run(7, "ablation", "stopped", config, None, None, now, now)

    assert launch.going_on(run({"ablation": "history", "preset": "paper"})) == ("ablate", "history", "--resume", "7")
    assert launch.going_on(run({"ablation": "simulator", "model": "m"})) is None


async def asked(pilot: Pilot[None]) -> NewEvaluationScreen:
    await opened(pilot)
    await pilot.press("n")
    await until(pilot, lambda: isinstance(pilot.app.screen, NewEvaluationScreen))
    dialog = pilot.app.screen
    assert isinstance(dialog, NewEvaluationScreen)
    return dialog


async def test_an_evaluation_is_started_as_a_command_after_what_it_takes_was_told(
    evaluations: Path, as_if: list[Any]
) -> None:
    async with studio_on(evaluations) as (_, pilot):
        dialog = await asked(pilot)
        dialog.query_one("#new-model", Input).value = "qwen3-4b"
        dialog.query_one("#new-base-url", Input).value = "http://localhost:8000/v1"
        dialog.query_one("#new-tries", Input).value = "4"
        cost = dialog.query_one("#new-cost", Static)
        await until(pilot, lambda: "32 rollouts of at most 20 turns" in str(cost.content))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: as_if)
    assert as_if == [
        ("eval", "heldout", "--subset", "mix", "--model", "qwen3-4b", "--base-url", "http://localhost:8000/v1",
         "--form", "text", "--tries", "4"),
    ]  # fmt: skip


async def test_held_out_tasks_are_tried_without_a_model_too(evaluations: Path, as_if: list[Any]) -> None:
    async with studio_on(evaluations) as (_, pilot):
        dialog = await asked(pilot)
        problem = dialog.query_one("#new-problem", Static)
        dialog.query_one("#model", Select).value = "policy:reference"
        dialog.query_one("#suite", Select).value = "bfcl"
        await until(pilot, lambda: "only held-out tasks" in str(problem.content))
        dialog.query_one("#suite", Select).value = "heldout"
        dialog.query_one("#new-base-url", Input).value = "http://localhost:8000/v1"
        await until(pilot, lambda: "there is no server" in str(problem.content))
        dialog.query_one("#new-base-url", Input).value = ""
        await until(pilot, lambda: not str(problem.content))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: as_if)
    assert as_if == [("eval", "heldout", "--subset", "mix", "--policy", "reference", "--form", "text", "--tries", "1")]


async def test_a_suite_that_is_not_ready_is_not_started(evaluations: Path, as_if: list[Any]) -> None:
    async with studio_on(evaluations) as (_, pilot):
        dialog = await asked(pilot)
        dialog.query_one("#new-model", Input).value = "qwen3-4b"
        dialog.query_one("#suite", Select).value = "mcp-universe"
        await pilot.pause()
        await pilot.press("ctrl+s")
        problem = dialog.query_one("#new-problem", Static)
        assert "MCP-Universe cannot be run: SERP_API_KEY is not set; Blender" in str(problem.content)
        dialog.query_one("#suite", Select).value = "heldout"
        dialog.query_one("#new-tries", Input).value = "none"
        await pilot.pause()
        await pilot.press("ctrl+s")
        assert "'none' is no number of tries" in str(problem.content)
        await pilot.press("escape")
    assert as_if == []


async def test_profiles_are_offered_as_models(evaluations: Path, as_if: list[Any]) -> None:
    settings = Settings(profiles={"default": Profile(model="qwen3-4b", base_url="http://localhost:8000/v1")})
    studio = Studio(evaluations, settings=settings)
    async with studio.run_test(size=(120, 36)) as pilot:
        dialog = await asked(pilot)
        assert dialog.query_one("#model", Select).value == "profile:default"
        dialog.query_one("#protocol", Select).value = "native"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: as_if)
    assert as_if[0][4:] == ("--model", "default", "--form", "native", "--tries", "1")


@pytest.mark.parametrize(
    ("score", "interval", "drawn"),
    [
        (0.0, [0.0, 0.2], "┃▒▒▒··············"),
        (0.5, [0.25, 0.75], "████▒▒▒▒▒┃▒▒▒▒····"),
        (1.0, [0.8, 1.0], "██████████████▒▒▒┃"),
        (None, None, "··················"),
    ],
)
def test_a_bar_says_score_and_interval_without_colour(score: Any, interval: Any, drawn: str) -> None:
    pieces = bar(score, interval)
    assert "".join(text for text, _ in pieces) == drawn
    assert len(drawn) == BAR


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"model": "tiny-awm-4b"}, "tiny-awm-4b"),
        ({"model": "m", "checkpoint": "/home/ada/w/runs/18/model"}, "training 18"),
        ({"model": "m", "checkpoint": "/home/ada/models/arctic-4b"}, "models/arctic-4b"),
        ({"model": "m", "checkpoint": "arctic-4b"}, "arctic-4b"),
    ],
)
def test_what_is_tried_out_is_named_as_people_know_it(config: dict[str, str], told: str) -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    run = Run(1, "eval", "done", config, {}, None, moment, moment)
    assert EvaluationWatch(run, Path("runs/1")).model == told
