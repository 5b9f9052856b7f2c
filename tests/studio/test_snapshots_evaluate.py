"""The Evaluate screen as a picture: every state of an evaluation and of a suite, at three sizes."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from pipeline.settings import Settings
from studio import launch
from studio.app import Studio
from studio.screens.evaluate import EvaluateScreen
from studio.screens.evaluate_new import NewEvaluationScreen
from studio.screens.evaluate_rollout import EvaluatedRolloutScreen
from studio.widgets.grid import Grid
from studio.widgets.source import Source
from tests.studio.conftest import until
from tests.studio.evaluations import INCOMPLETE, NOT_INSTALLED, READY, UNAVAILABLE, fill_with_evaluations
from tests.studio.test_evaluate import at, opened

SMALL, USUAL, LARGE = (80, 24), (120, 36), (200, 50)

Steps = Callable[[Pilot[None]], Awaitable[None]]


@pytest.fixture(scope="module")
def still_evaluations(tmp_path_factory: pytest.TempPathFactory, kept_host: Any) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.runtime.host.Host.from_settings", lambda settings: kept_host)
        yield fill_with_evaluations(tmp_path_factory.mktemp("still-evaluations") / "workspace")


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One time zone, no blinking, harnesses and a process that are always the same."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(Input, "cursor_blink", False)
    monkeypatch.setattr("train.evaluate_suites.readiness", lambda: [READY, NOT_INSTALLED, INCOMPLETE])
    monkeypatch.setattr("train.evaluate_suites.version", lambda name: "1.0.0")
    monkeypatch.setattr(launch, "is_alive", lambda run: run.state == "running")
    yield
    monkeypatch.undo()
    time.tzset()


SHOWS: dict[str, Callable[[EvaluateScreen, int], object]] = {
    "result": lambda screen, _: screen.query_one("#scores", Source).text,
    "tasks": lambda screen, number: any(
        row.rollouts or number == 3 for row in screen.query_one("#evaluated Grid", Grid).rows
    ),
    "suites": lambda screen, _: screen.query_one("#suite-list Grid", Grid).rows,
}
"""When a tab shows what it has to."""


def looking_at(number: int, tab: str = "result", *keys: str, zoomed: bool = False) -> Steps:
    async def steps(pilot: Pilot[None]) -> None:
        screen = await opened(pilot)
        await at(pilot, screen, number, tab)
        await until(pilot, lambda: SHOWS[tab](screen, number))
        screen.zoomed = zoomed
        if zoomed or keys:
            screen.detail.enter()
        await pilot.press(*keys)
        await until(pilot, lambda: str(number) in str(screen.query_one("#run-head", Static).content))
        await pilot.pause(0.2)
        pilot.app.clear_notifications()
        await pilot.pause()

    return steps


def compared(*, zoomed: bool = False) -> Steps:
    async def steps(pilot: Pilot[None]) -> None:
        screen = await opened(pilot)
        await at(pilot, screen, 1)
        await pilot.press("x")
        await at(pilot, screen, 2, "versus")
        screen.zoomed = zoomed
        await until(pilot, lambda: "▲ better" in screen.query_one("#verdict-lines", Source).text)
        await pilot.pause(0.1)

    return steps


async def a_failed_rollout(pilot: Pilot[None]) -> None:
    screen = await opened(pilot)
    await at(pilot, screen, 1, "tasks")
    await until(pilot, lambda: screen.query_one("#evaluated Grid", Grid).rows[0].rollouts)
    screen.detail.enter()
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(pilot.app.screen, EvaluatedRolloutScreen) and pilot.app.screen.again)
    await pilot.press("down")
    await pilot.pause(0.1)


async def a_new_evaluation(pilot: Pilot[None]) -> None:
    await opened(pilot)
    await pilot.press("n")
    await until(pilot, lambda: isinstance(pilot.app.screen, NewEvaluationScreen))
    pilot.app.screen.query_one("#new-model", Input).value = "qwen3-4b"
    await until(pilot, lambda: "8 rollouts" in str(pilot.app.screen.query_one("#new-cost", Static).content))
    await pilot.pause()


SCENES: dict[str, tuple[tuple[int, int], str, Steps]] = {
    "running_small": (SMALL, "dark", looking_at(5)),
    "running_usual": (USUAL, "light", looking_at(5)),
    "result_usual": (USUAL, "dark", looking_at(2)),
    "result_small": (SMALL, "dark", looking_at(2, zoomed=True)),
    "result_large": (LARGE, "dark", looking_at(3)),
    "not_run": (USUAL, "colour-blind", looking_at(4)),
    "tasks_usual": (USUAL, "dark", looking_at(3, "tasks", "down", "down")),
    "tasks_small": (SMALL, "high-contrast", looking_at(1, "tasks", zoomed=True)),
    "compared_usual": (USUAL, "dark", compared()),
    "compared_small": (SMALL, "light", compared(zoomed=True)),
    "suites_held_out": (USUAL, "dark", looking_at(2, "suites", "home")),
    "suites_ready": (LARGE, "light", looking_at(2, "suites", "down")),
    "suites_not_installed": (USUAL, "dark", looking_at(2, "suites", "down", "down")),
    "suites_incomplete_small": (SMALL, "dark", looking_at(2, "suites", "end", zoomed=True)),
    "rollout": (USUAL, "dark", a_failed_rollout),
    "new_usual": (USUAL, "dark", a_new_evaluation),
    "new_small": (SMALL, "light", a_new_evaluation),
}  # fmt: skip


@pytest.mark.parametrize("scene", SCENES)
def test_picture(scene: str, still_evaluations: Path, snap_compare: Any) -> None:
    size, theme, steps = SCENES[scene]
    studio = Studio(still_evaluations, settings=Settings(theme=theme))
    assert snap_compare(studio, terminal_size=size, run_before=steps)


def test_picture_of_a_suite_that_cannot_be_installed(
    still_evaluations: Path, snap_compare: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("train.evaluate_suites.readiness", lambda: [UNAVAILABLE, NOT_INSTALLED, INCOMPLETE])
    studio = Studio(still_evaluations, settings=Settings(theme="dark"))
    assert snap_compare(studio, terminal_size=USUAL, run_before=looking_at(2, "suites", "down"))
