"""The Train screen as a picture, at three sizes. `make snapshots` accepts what changed."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from pipeline.settings import Settings
from studio.app import Studio
from studio.screens.train import TrainScreen
from studio.screens.train_new import NewTrainingScreen
from studio.screens.train_rollout import RolloutScreen
from studio.widgets.changes import Changes
from studio.widgets.source import Source
from studio.widgets.training.fields import Fields
from tests.studio.conftest import until
from tests.studio.trainings import fill_with_trainings

SMALL, USUAL, LARGE = (80, 24), (120, 36), (200, 50)

Steps = Callable[[Pilot[None]], Awaitable[None]]


@pytest.fixture(scope="module")
def still_trainings(tmp_path_factory: pytest.TempPathFactory, kept_host: Any) -> Path:
    """Four trainings on which nobody works."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.runtime.host.Host.from_settings", lambda settings: kept_host)
        return fill_with_trainings(tmp_path_factory.mktemp("still-trainings") / "workspace")


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One time zone, no blinking."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(Input, "cursor_blink", False)
    yield
    monkeypatch.undo()
    time.tzset()


async def opened(pilot: Pilot[None]) -> TrainScreen:
    await until(pilot, lambda: pilot.app.workspace and pilot.app.runs)
    await pilot.press("5")
    await until(pilot, lambda: isinstance(pilot.app.screen, TrainScreen) and pilot.app.screen.detail.charts.charts)
    assert isinstance(pilot.app.screen, TrainScreen)
    return pilot.app.screen


def pressing(*keys: str) -> Steps:
    async def steps(pilot: Pilot[None]) -> None:
        await opened(pilot)
        await pilot.press(*keys)
        await pilot.pause(0.1)

    return steps


async def compared(pilot: Pilot[None]) -> None:
    await pressing("x", "down", "x", "down", "x", "down")(pilot)


async def settings(pilot: Pilot[None]) -> None:
    screen = await opened(pilot)
    await pilot.press("x", "down", *["right_square_bracket"] * 2)
    await until(pilot, lambda: screen.query_one(Fields).rows)


async def rollouts(pilot: Pilot[None]) -> TrainScreen:
    screen = await opened(pilot)
    await pilot.press("right_square_bracket")
    await until(pilot, lambda: screen.detail.rollouts.grid.rows)
    screen.detail.enter()
    await pilot.pause()
    return screen


async def a_rollout(pilot: Pilot[None]) -> None:
    await rollouts(pilot)
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(pilot.app.screen, RolloutScreen) and pilot.app.screen.again)
    await pilot.press("down", "down")
    await until(pilot, lambda: pilot.app.screen.query_one(Changes).rows)


async def the_log(pilot: Pilot[None]) -> None:
    screen = await opened(pilot)
    await pilot.press("left_square_bracket")
    await until(pilot, lambda: "checkpoint" in screen.query_one("#story", Source).text)


async def the_form(pilot: Pilot[None]) -> None:
    await opened(pilot)
    await pilot.press("n")
    await until(pilot, lambda: isinstance(pilot.app.screen, NewTrainingScreen))
    form = pilot.app.screen
    form.query_one("#new-set", Input).value = "grpo.options.per_device_train_batch_size=8"
    await until(pilot, lambda: "instances" in str(form.query_one("#new-cost", Static).content))


STILLS: dict[str, tuple[Steps, tuple[int, int], str]] = {
    "curves": (pressing(), USUAL, "dark"),
    "curves-small": (pressing("enter"), SMALL, "dark"),
    "curves-large": (pressing(), LARGE, "light"),
    "list-small": (pressing(), SMALL, "light"),
    "one-chart": (pressing("enter", "enter"), USUAL, "dark"),
    "compared": (compared, USUAL, "dark"),
    "failed": (pressing("down", "down"), USUAL, "dark"),
    "settings": (settings, USUAL, "dark"),
    "rollouts": (rollouts, USUAL, "dark"),
    "rollouts-small": (rollouts, SMALL, "dark"),
    "rollout": (a_rollout, USUAL, "dark"),
    "rollout-small": (a_rollout, SMALL, "dark"),
    "rollout-large": (a_rollout, LARGE, "dark"),
    "log": (the_log, USUAL, "dark"),
    "new": (the_form, USUAL, "dark"),
    "new-small": (the_form, SMALL, "dark"),
}  # fmt: skip


@pytest.mark.parametrize("name", STILLS)
def test_the_screen_looks_as_it_did(still_trainings: Path, snap_compare: Any, name: str) -> None:
    steps, size, theme = STILLS[name]
    studio = Studio(still_trainings, settings=Settings(theme=theme))
    assert snap_compare(studio, terminal_size=size, run_before=steps)
