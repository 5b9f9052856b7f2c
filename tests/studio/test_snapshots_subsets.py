"""The Subsets screens as pictures, at three sizes and in several themes."""

from __future__ import annotations

import sqlite3
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
from studio.screens.subset_build import BuildScreen
from studio.screens.subset_compare import CompareSubsetsScreen, Differences
from studio.screens.subset_export import ExportScreen
from studio.screens.subset_members import MembersScreen
from studio.widgets.source import Source
from tests.studio.conftest import until
from tests.studio.landscapes import with_subsets
from tests.studio.worlds import fill

SMALL, USUAL, LARGE = (80, 24), (120, 36), (200, 50)

Steps = Callable[[Pilot[None]], Awaitable[None]]


@pytest.fixture(scope="module")
def picked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = with_subsets(tmp_path_factory.mktemp("still") / "workspace")
    with sqlite3.connect(path / "catalog.db") as connection:
        connection.execute("UPDATE subsets SET created_at = '2026-01-02T10:20:30+00:00'")
    connection.close()
    return path


@pytest.fixture(scope="module")
def unpicked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("unpicked") / "workspace")


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


def pressing(*keys: str) -> Steps:
    async def steps(pilot: Pilot[None]) -> None:
        studio = pilot.app
        await until(pilot, lambda: studio.workspace)
        await pilot.press("4")
        screen = studio.screen
        await until(pilot, lambda: "Reading" not in screen.grid.empty)
        await until(pilot, lambda: not screen.grid.rows or screen.query_one("#card", Source).text)
        await pilot.press(*keys)
        await pilot.pause(0.1)

    return steps


async def building(pilot: Pilot[None]) -> None:
    await pressing("b")(pilot)
    form = pilot.app.screen
    assert isinstance(form, BuildScreen)
    values = {"name": "mix-v2", "where": "tools<5", "budget": "9", "held-out": "0.2"}
    await until(pilot, lambda: form._pool)
    for name, value in values.items():
        form.query_one(f"#build-{name}", Input).value = value
    await until(pilot, lambda: "never trained on" in str(form.query_one("#preview").render()))
    await pilot.pause(0.1)


async def comparing(pilot: Pilot[None]) -> None:
    await pressing("x", "down", "c")(pilot)
    screen = pilot.app.screen
    assert isinstance(screen, CompareSubsetsScreen)
    await until(pilot, lambda: screen.query_one(Differences).grid.rows)
    await pilot.pause(0.1)


async def opened(pilot: Pilot[None]) -> None:
    await pressing("enter")(pilot)
    screen = pilot.app.screen
    assert isinstance(screen, MembersScreen)
    await until(pilot, lambda: screen.query_one("#member", Source).text)
    await pilot.pause(0.1)


async def exporting(pilot: Pilot[None]) -> None:
    await pressing("e")(pilot)
    assert isinstance(pilot.app.screen, ExportScreen)


SCENES: dict[str, tuple[tuple[int, int], str, Steps]] = {
    "list_small": (SMALL, "dark", pressing()),
    "list_usual": (USUAL, "dark", pressing("x")),
    "list_light_large": (LARGE, "light", pressing("down")),
    "card_small": (SMALL, "colour-blind", pressing("z")),
    "build_small": (SMALL, "light", building),
    "build_usual": (USUAL, "dark", building),
    "compare": (USUAL, "light", comparing),
    "members": (USUAL, "dark", opened),
    "members_small": (SMALL, "high-contrast", opened),
    "export_small": (SMALL, "dark", exporting),
}


@pytest.mark.parametrize("scene", SCENES)
def test_picture(scene: str, picked: Path, snap_compare) -> None:
    size, theme, steps = SCENES[scene]
    studio = Studio(picked, settings=Settings(theme=theme))
    assert snap_compare(studio, terminal_size=size, run_before=steps)


def test_picture_without_any(unpicked: Path, snap_compare) -> None:
    studio = Studio(unpicked, settings=Settings(theme="light"))
    assert snap_compare(studio, terminal_size=SMALL, run_before=pressing())
