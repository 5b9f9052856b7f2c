"""The Train screen as a person uses it: trainings are followed, compared, stopped, gone on with, deleted, started."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Select, Static

from pipeline.engine.lock import work_on
from pipeline.settings import Settings
from pipeline.workspace import Workspace
from studio import launch
from studio.app import Studio
from studio.screens.train import TrainScreen
from studio.screens.train_new import NewTrainingScreen
from studio.screens.train_rollout import RolloutScreen
from studio.widgets.changes import Changes
from studio.widgets.grid import Grid
from studio.widgets.source import Source
from studio.widgets.training.fields import Fields
from tests.studio.conftest import studio_on, until
from tests.studio.trainings import fill_with_trainings
from train import training_run
from train.json_lines import json_line
from train.run_log import STOP


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, kept_host: Any) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.runtime.host.Host.from_settings", lambda settings: kept_host)
        yield fill_with_trainings(tmp_path_factory.mktemp("trainings") / "workspace")


@pytest.fixture
def trainings(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "workspace"))


async def opened(pilot: Pilot[None]) -> TrainScreen:
    await until(pilot, lambda: pilot.app.workspace)
    await pilot.press("5")
    await until(pilot, lambda: isinstance(pilot.app.screen, TrainScreen) and pilot.app.screen.grid.rows)
    screen = pilot.app.screen
    assert isinstance(screen, TrainScreen)
    await until(pilot, lambda: screen.detail.charts.charts)
    return screen


def head(studio: Studio) -> str:
    return str(studio.screen.query_one("#run-head", Static).content)


async def test_the_newest_training_is_shown_with_how_it_stands(trainings: Path) -> None:
    async with studio_on(trainings) as (studio, pilot):
        screen = await opened(pilot)
        assert [watch.run.id for watch in screen.grid.rows] == [4, 3, 2, 1]
        assert "step 30/30" in head(studio)
        assert "held-out 0.32 → 0.79" in head(studio)
        titles = [chart.title for chart in screen.detail.charts.charts]
        assert titles[:4] == ["reward", "held-out complete", "outcomes", "errors"]
        assert "KL" in titles
        await pilot.press("down", "down")
        await until(pilot, lambda: "run 2" in head(studio))
        assert "lower the learning rate" in str(screen.query_one("#run-trouble", Static).content)


async def test_a_step_that_is_written_appears(trainings: Path) -> None:
    async with studio_on(trainings) as (studio, pilot):
        screen = await opened(pilot)
        await pilot.press("down")
        with (trainings / "runs" / "3" / "metrics.jsonl").open("ab") as file:
            file.write(json_line({"t": 1.0, "kind": "step", "step": 13, "reward": 0.77}))
            file.write(b'{"t": 2.0, "kind": "st')
        screen.look()
        await until(pilot, lambda: "step 13/30" in head(studio) and "reward 0.77" in head(studio))


WARMING = "step warm 30 · warm start of 90 steps │ warm start ends in 1m00"


async def test_a_warm_start_says_how_long_it_is_and_when_it_ends(trainings: Path) -> None:
    folder = trainings / "runs" / "3"
    warmed = [{"t": 10.0 * number, "kind": "warmup", "warmup_step": 10 * number, "loss": 1.0} for number in (1, 2, 3)]
    (folder / "metrics.jsonl").write_bytes(b"".join(map(json_line, warmed)))
    status = {"state": "running", "phase": "warmup", "warmup_steps": 90, "warmup_step": 30}
    (folder / "status.json").write_bytes(json_line(status))
    with Workspace.open(trainings) as workspace:
        workspace.catalog.update_run(3, state="running", pid=os.getpid())
    async with studio_on(trainings) as (studio, pilot):
        await opened(pilot)
        await pilot.press("down")
        await until(pilot, lambda: "run 3" in head(studio))
        await until(pilot, lambda: WARMING in head(studio))


async def test_one_chart_gets_all_the_room_and_its_points_can_be_copied(trainings: Path) -> None:
    async with studio_on(trainings) as (_, pilot):
        screen = await opened(pilot)
        charts = screen.detail.charts
        await pilot.press("enter")
        await until(pilot, lambda: charts.has_focus)
        await pilot.press("right", "enter")
        assert (charts.alone, charts.chart and charts.chart.key) == (True, "held_out")
        assert charts.copy_text().splitlines()[0] == "run 4\tcomplete\t0\t0.323"
        await pilot.press("escape")
        assert (charts.alone, charts.has_focus) == (False, True)
        await pilot.press("escape")
        assert screen.grid.has_focus


async def test_marked_trainings_are_laid_beside_the_current_one(trainings: Path) -> None:
    async with studio_on(trainings) as (_, pilot):
        screen = await opened(pilot)
        await pilot.press("down", "x", "up")
        assert [watch.run.id for watch in screen.compared] == [4, 3]
        await pilot.press("right_square_bracket", "right_square_bracket")
        fields = screen.query_one(Fields)
        await until(pilot, lambda: len(fields.rows) and len(fields.rows[0].values) == 2)
        differing = {row.name: row.values for row in fields.rows if row.differs}
        assert differing == {
            "grpo.options.learning_rate": ("0.0005", "0.0001"),
            "grpo.options.beta": ("0.01", "0.0"),
            "rules.window": ("3", "2"),
        }


async def test_a_rollout_of_a_step_is_stepped_through_with_what_each_call_changed(trainings: Path) -> None:
    async with studio_on(trainings) as (studio, pilot):
        screen = await opened(pilot)
        await pilot.press("right_square_bracket")
        rollouts = screen.detail.rollouts
        await until(pilot, lambda: rollouts.grid.rows)
        assert (rollouts.step, len(rollouts.grid.rows)) == (30, 6)
        screen.detail.enter()
        await pilot.press("less_than_sign")
        assert (rollouts.step, len(rollouts.grid.rows)) == (29, 4)
        await pilot.press("greater_than_sign", "enter")
        await until(pilot, lambda: isinstance(studio.screen, RolloutScreen) and studio.screen.again)
        await pilot.press("down", "down")
        await until(pilot, lambda: studio.screen.query_one(Changes).rows)
        (change,) = studio.screen.query_one(Changes).rows
        assert (change.table, change.column, change.before, change.after) == ("items", "amount", "1", "5")
        assert "set_amount" in studio.screen.query_one("#exchange", Source).text
        await pilot.press("escape")
        assert studio.screen is screen


async def test_what_a_training_said_is_in_its_log(trainings: Path) -> None:
    (trainings / "logs").mkdir(exist_ok=True)
    (trainings / "logs" / "run-4.log").write_text("a word of its process")
    async with studio_on(trainings) as (_, pilot):
        screen = await opened(pilot)
        await pilot.press("left_square_bracket")
        story = screen.query_one("#story", Source)
        await until(pilot, lambda: "a word of its process" in story.text)
        assert "checkpoint" in story.text


async def test_a_training_that_is_worked_on_is_asked_to_stop(trainings: Path) -> None:
    async with studio_on(trainings) as (studio, pilot):
        await opened(pilot)
        folder = trainings / "runs" / "4"
        await pilot.press("s")
        await until(pilot, lambda: any("not running" in note.message for note in studio._notifications))
        with work_on(folder, 4):
            await pilot.press("s")
            await until(pilot, (folder / STOP).exists)


async def test_a_stopped_training_goes_on_and_a_finished_one_does_not(
    trainings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    def start(workspace: Workspace, run: Any, *, detached: bool) -> bool:
        assert detached
        started.append(run.id)
        return True

    monkeypatch.setattr(training_run, "start", start)
    async with studio_on(trainings) as (studio, pilot):
        await opened(pilot)
        await pilot.press("r")
        await until(pilot, lambda: any("nothing to go on with" in note.message for note in studio._notifications))
        await pilot.press("down", "r")
        await until(pilot, lambda: started == [3])


def test_a_training_can_be_gone_on_with_from_the_list_of_all_runs(made: Path) -> None:
    with Workspace.open(made) as workspace:
        run = training_run.find(workspace, 3)
    assert launch.going_on(run) == ("train", "--resume", "3", "--detach")


async def test_a_training_is_deleted_once_that_is_confirmed(trainings: Path) -> None:
    async with studio_on(trainings) as (_, pilot):
        screen = await opened(pilot)
        await pilot.press("D", "enter")
        assert (trainings / "runs" / "4").exists()
        await pilot.press("D", "down", "enter")
        await until(pilot, lambda: [watch.run.id for watch in screen.grid.rows] == [3, 2, 1])
        assert not (trainings / "runs" / "4").exists()


async def test_the_curves_are_saved_as_a_figure(trainings: Path) -> None:
    async with studio_on(trainings) as (_, pilot):
        await opened(pilot)
        await pilot.press("S")
        file = trainings / "figures" / "training-4.svg"
        await until(pilot, file.exists)
        assert "held-out complete" in file.read_text()


async def test_the_form_says_what_a_training_will_take_and_what_is_wrong_with_it(
    trainings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []
    monkeypatch.setattr(training_run, "start", lambda workspace, run, *, detached: started.append(run.config["subset"]))
    async with studio_on(trainings) as (studio, pilot):
        screen = await opened(pilot)
        await pilot.press("n")
        await until(pilot, lambda: isinstance(studio.screen, NewTrainingScreen))
        form = studio.screen
        problem, cost = form.query_one("#new-problem", Static), form.query_one("#new-cost", Static)
        await until(pilot, lambda: "a generation needs 8" in str(problem.content))
        form.query_one("#new-set", Input).value = "grpo.options.per_device_train_batch_size=8 grpo.optoins.x=1"
        await until(pilot, lambda: "Did you mean options" in str(problem.content))
        form.query_one("#new-set", Input).value = "grpo.options.per_device_train_batch_size=8"
        form.query_one("#new-steps", Input).value = "3"
        await until(pilot, lambda: "8 instances at once, 24 rollouts in all" in str(cost.content))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: studio.screen is screen)
        await until(pilot, lambda: screen.current and screen.current.run.id > 4)
        assert started == ["kitchen"]


async def test_without_a_subset_nothing_is_started(tmp_path: Path) -> None:
    from tests.train.pantry import fill

    async with studio_on(fill(tmp_path / "workspace")) as (studio, pilot):
        await pilot.press("5", "n")
        await until(pilot, lambda: isinstance(studio.screen, NewTrainingScreen))
        assert studio.screen.query_one("#subset", Select).value is Select.NULL
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "no subset yet" in str(studio.screen.query_one("#new-problem", Static).content))


async def test_in_a_narrow_terminal_the_training_takes_the_place_of_the_list(trainings: Path) -> None:
    studio = Studio(trainings, settings=Settings(theme="dark"))
    async with studio.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot)
        assert not screen.detail.display or screen.detail.size.width == 0
        await pilot.press("enter")
        await until(pilot, lambda: screen.detail.charts.has_focus)
        assert screen.query_one("#runs", Grid).size.width == 0
        await pilot.press("escape")
        assert screen.grid.has_focus
