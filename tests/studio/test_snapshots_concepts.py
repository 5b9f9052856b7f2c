"""The Concepts screen as pictures, at three sizes and in several themes."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

pytest.importorskip("numpy")
pytest.importorskip("scipy")
pytest.importorskip("sklearn")

from pipeline.settings import Settings
from studio.app import Studio
from studio.screens.concepts import ConceptsScreen
from studio.screens.duplicates import DuplicatesScreen
from studio.screens.judge import JudgeScreen
from studio.screens.new_run import NewRunScreen
from studio.widgets.concept_map import ConceptMap
from tests.studio.conftest import until
from tests.studio.landscapes import measured
from tests.studio.worlds import fill

SMALL, USUAL, LARGE = (80, 24), (120, 36), (200, 50)

Steps = Callable[[Pilot[None]], Awaitable[None]]


@pytest.fixture(scope="module")
def landscape(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return measured(tmp_path_factory.mktemp("still") / "workspace")


@pytest.fixture(scope="module")
def unmeasured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("unmeasured") / "workspace")


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One time zone, no blinking, and extras that count as installed."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr(Input, "cursor_blink", False)
    monkeypatch.setattr("curation.extras.missing", lambda extra: ())
    yield
    monkeypatch.undo()
    time.tzset()


def pressing(*keys: str, opens: type = ConceptsScreen) -> Steps:
    async def steps(pilot: Pilot[None]) -> None:
        studio = pilot.app
        await until(pilot, lambda: studio.workspace)
        await pilot.press("3")
        screen = studio.screen
        await until(pilot, lambda: screen.cut and screen.grid.rows)
        await pilot.press(*keys)
        await until(pilot, lambda: isinstance(studio.screen, opens))
        await until(pilot, lambda: screen.cut.threshold == screen.slider.value)
        if opens is JudgeScreen:
            await until(
                pilot, lambda: studio.screen._pairs and "judged" in str(studio.screen.query_one("#calibrated").render())
            )
        if opens is NewRunScreen:
            await until(pilot, lambda: str(studio.screen.query_one("#new-cost").render()))
        await pilot.pause(0.1)

    return steps


async def nothing(pilot: Pilot[None]) -> None:
    studio = pilot.app
    await until(pilot, lambda: studio.workspace)
    await pilot.press("3")
    await until(pilot, lambda: studio.screen.query_one(ConceptMap).empty)
    await pilot.pause(0.1)


SCENES: dict[str, tuple[tuple[int, int], str, Steps]] = {
    "map_small": (SMALL, "dark", pressing("right", "right")),
    "map_usual": (USUAL, "dark", pressing("right", "down")),
    "map_light_large": (LARGE, "light", pressing("tab", "tab")),
    "map_zoomed": (USUAL, "colour-blind", pressing("plus", "plus", "right")),
    "map_higher_threshold": (USUAL, "high-contrast", pressing("right_curly_bracket", "right_curly_bracket")),
    "list_small": (SMALL, "light", pressing("enter", "down")),
    "duplicates": (USUAL, "dark", pressing("d", opens=DuplicatesScreen)),
    "duplicates_small": (SMALL, "light", pressing("d", opens=DuplicatesScreen)),
    "judge": (USUAL, "light", pressing("p", opens=JudgeScreen)),
    "judge_small": (SMALL, "dark", pressing("p", opens=JudgeScreen)),
    "make_here_small": (SMALL, "dark", pressing("g", "n", opens=NewRunScreen)),
}  # fmt: skip


@pytest.mark.parametrize("scene", SCENES)
def test_picture(scene: str, landscape: Path, snap_compare) -> None:
    size, theme, steps = SCENES[scene]
    studio = Studio(landscape, settings=Settings(theme=theme))
    assert snap_compare(studio, terminal_size=size, run_before=steps)


def test_picture_before_anything_is_measured(unmeasured: Path, snap_compare) -> None:
    studio = Studio(unmeasured, settings=Settings(theme="dark"))
    assert snap_compare(studio, terminal_size=SMALL, run_before=nothing)
