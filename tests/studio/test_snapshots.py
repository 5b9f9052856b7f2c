"""Every screen and state as a picture, at three sizes and in several themes. `make snapshots` accepts what changed."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Select, Static, TabbedContent, TextArea

from pipeline.catalog import Catalog
from pipeline.settings import Settings
from studio.app import Studio
from studio.screens.call import CallScreen
from studio.screens.finish import FinishScreen
from studio.screens.first_steps import FirstStepsScreen
from studio.screens.new_run import NewRunScreen
from studio.screens.page import PageScreen
from studio.screens.pipeline import PipelineScreen
from studio.screens.problem import ProblemScreen
from studio.widgets.source import Source
from tests.studio.conftest import until
from tests.studio.runs import fill_with_run
from tests.studio.test_calling import call, choose, fill_in
from tests.studio.worlds import fill

SMALL, USUAL, LARGE = (80, 24), (120, 36), (200, 50)

Steps = Callable[[Pilot[None]], Awaitable[None]]


@pytest.fixture(scope="module")
def still_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small workspace with two finished runs, in which nothing says what time it is now."""
    folder = fill(tmp_path_factory.mktemp("still") / "workspace")
    with Catalog.open(folder / "catalog.db") as catalog:
        made = catalog.add_run("blueprints", {"count": 24, "seed": 0, "made_by": "rules"})
        catalog.add_event(made, "made", {"domain": "farm"}, scenario="birchwick_farm")
        catalog.add_event(made, "progress", {"done": 24, "total": 24})
        catalog.update_run(made, state="done", result={"environments": 24})
        audit = catalog.add_run("audit", {"environments": ["museum_loans"]})
        catalog.add_event(audit, "progress", {"done": 3, "total": 8})
        catalog.update_run(audit, state="stopped")
    with sqlite3.connect(folder / "catalog.db") as connection:
        for table in ("versions", "checks", "events", "runs"):
            connection.execute(f"UPDATE {table} SET created_at = '2026-01-02T10:20:30+00:00'")
        connection.execute("UPDATE runs SET updated_at = '2026-01-02T10:22:10+00:00'")
    connection.close()
    return folder


@pytest.fixture(scope="module")
def still_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a synthesis in every state, on which nobody works."""
    folder = tmp_path_factory.mktemp("still-run") / "workspace"
    fill_with_run(folder)
    return folder


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One time zone, no blinking, calls that always take as long."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setattr("studio.screens.call.duration", lambda _: "3 ms")
    monkeypatch.setattr("studio.screens.finish.duration", lambda _: "9 ms")
    monkeypatch.setattr("studio.widgets.board.now", lambda: datetime(2026, 1, 2, 10, 25, 30, tzinfo=UTC))
    monkeypatch.setattr(Input, "cursor_blink", False)
    monkeypatch.setattr(TextArea, "cursor_blink", False)
    monkeypatch.setattr("studio.actions.settings_path", lambda: Path("/home/ada/.config/awm-studio/config.toml"))
    monkeypatch.setattr("pipeline.settings.settings_path", lambda: Path("/home/ada/.config/awm-studio/config.toml"))
    yield
    monkeypatch.undo()
    time.tzset()


async def opened(pilot: Pilot[None]) -> None:
    studio = pilot.app
    await until(pilot, lambda: studio.workspace and studio.screen.query_one("#detail").dossier)


def pressing(*keys: str) -> Steps:
    async def steps(pilot: Pilot[None]) -> None:
        await opened(pilot)
        await pilot.press(*keys)
        await pilot.pause()

    return steps


def tab(name: str, *keys: str, shows: str = "") -> Steps:
    async def steps(pilot: Pilot[None]) -> None:
        await opened(pilot)
        screen = pilot.app.screen
        if screen.has_class("-narrow"):
            screen.zoomed = True
        pane = screen.detail.open(name)
        await until(
            pilot,
            lambda: shows in " ".join(source.text for source in (pane, *pane.query(Source)) if hasattr(source, "text")),
        )
        screen.detail.enter()
        await pilot.press(*keys)
        await pilot.pause(0.1)

    return steps


async def tables(pilot: Pilot[None]) -> None:
    await tab("tables")(pilot)
    pane = pilot.app.screen.detail.pane
    await until(pilot, lambda: len(pane.query_one("#rows").rows) == 3)


async def columns(pilot: Pilot[None]) -> None:
    await tables(pilot)
    await pilot.press("down", "t")
    await pilot.pause()


async def a_call(pilot: Pilot[None]) -> CallScreen:
    await opened(pilot)
    await pilot.press("c")
    await until(pilot, lambda: isinstance(pilot.app.screen, CallScreen))
    screen = pilot.app.screen
    await until(pilot, lambda: screen.query_one("#tool", Select).value == "list_bags")
    await choose(pilot, screen, "create_claim")
    fill_in(screen, bag_id="2", amount="250")
    await call(pilot, screen, 1)
    return screen


async def changes(pilot: Pilot[None]) -> None:
    screen = await a_call(pilot)
    screen.query_one("#answers", TabbedContent).active = "changes"
    await pilot.pause()


async def history(pilot: Pilot[None]) -> None:
    screen = await a_call(pilot)
    await choose(pilot, screen, "break_down")
    await call(pilot, screen, 2)
    await pilot.press("f6")
    screen.query_one("#answers", TabbedContent).active = "history"
    await pilot.pause()


async def verdict(pilot: Pilot[None]) -> None:
    await a_call(pilot)
    await pilot.press("f8")
    await until(pilot, lambda: isinstance(pilot.app.screen, FinishScreen))
    screen = pilot.app.screen
    screen.query_one("#task", Select).value = 0
    await pilot.press("f8")
    await until(pilot, lambda: "complete" in screen.query_one("#verdict", Source).text)


async def editing(pilot: Pilot[None]) -> None:
    await tab("tasks", "e")(pilot)
    await until(pilot, lambda: pilot.app.screen.query_one("#anchors").rows)


async def page(pilot: Pilot[None]) -> None:
    await opened(pilot)
    await pilot.app.push_screen(PageScreen("http://127.0.0.1:8001/airline_lost_baggage"))
    await pilot.pause()


SCENES: dict[str, tuple[tuple[int, int], str, Steps]] = {
    "list_small": (SMALL, "dark", pressing()),
    "list_usual": (USUAL, "dark", pressing("down", "x", "down")),
    "list_usual_light": (USUAL, "light", pressing("down", "x", "down")),
    "list_large": (LARGE, "dark", pressing()),
    "list_tiny": ((40, 10), "dark", pressing()),
    "filter_mistake": (SMALL, "dark", pressing("slash", *"bike", "space", *"tabels", "greater_than_sign", "4")),
    "sort": (SMALL, "light", pressing("s")),
    "tasks": (USUAL, "dark", tab("tasks", shows="Claim 250")),
    "tables_rows": (USUAL, "light", tables),
    "tables_columns_small": (SMALL, "dark", columns),
    "tools": (USUAL, "dark", tab("tools", "down", shows="list_bags")),
    "code_large": (LARGE, "light", tab("code", shows="FastAPI")),
    "verifiers": (USUAL, "light", tab("verifiers", shows="verify_task_completion")),
    "findings_small": (SMALL, "dark", pressing("end", "enter", "left_square_bracket")),
    "call_changes": (USUAL, "dark", changes),
    "call_small": (SMALL, "light", a_call),
    "call_history_large": (LARGE, "dark", history),
    "verdict": (USUAL, "light", verdict),
    "compare": (USUAL, "colour-blind", pressing("down", "x", "end", "d", "n")),
    "edit_task": (USUAL, "dark", editing),
    "activity": (USUAL, "dark", pressing("7", "down")),
    "activity_small": (SMALL, "high-contrast", pressing("7")),
    "settings": (USUAL, "light", pressing("8")),
    "settings_small": (SMALL, "dark", pressing("8")),
    "help_small": (SMALL, "high-contrast", pressing("question_mark")),
    "page_small": (SMALL, "dark", page),
}  # fmt: skip


@pytest.mark.parametrize("scene", SCENES)
def test_picture(scene: str, still_world: Path, snap_compare) -> None:
    size, theme, steps = SCENES[scene]
    studio = Studio(still_world, settings=Settings(theme=theme, workers=4))
    assert snap_compare(studio, terminal_size=size, run_before=steps)


def board(*keys: str, shows: str = "", on: str = "#brief") -> Steps:
    async def steps(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: pilot.app.workspace)
        await pilot.press("1")
        await until(pilot, lambda: isinstance(pilot.app.screen, PipelineScreen) and pilot.app.screen.board.rows)
        await pilot.press(*keys)
        await until(pilot, lambda: any(shows in source.text for source in pilot.app.screen.query(on).results(Source)))
        pilot.app.clear_notifications()
        await pilot.pause()

    return steps


async def a_new_run(pilot: Pilot[None]) -> None:
    await board()(pilot)
    await pilot.press("n")
    await until(pilot, lambda: isinstance(pilot.app.screen, NewRunScreen))
    form = pilot.app.screen
    await until(pilot, lambda: str(form.query_one("#new-cost", Static).content))


RUN_SCENES: dict[str, tuple[tuple[int, int], str, Steps]] = {
    "pipeline_small": (SMALL, "dark", board("g", shows="to be approved")),
    "pipeline_usual": (USUAL, "dark", board("down", "right", shows="items could not be created")),
    "pipeline_light_large": (LARGE, "light", board("g", shows="to be approved")),
    "pipeline_filter": (USUAL, "colour-blind", board("f")),
    "stage_tries": (USUAL, "dark", board("g", "enter", shows="server error", on="#before")),
    "stage_difference_small": (SMALL, "dark", board("g", "enter", "d", shows="-        return session", on="#after")),
    "new_run_small": (SMALL, "dark", a_new_run),
}  # fmt: skip


@pytest.mark.parametrize("scene", RUN_SCENES)
def test_picture_of_a_run(scene: str, still_run: Path, snap_compare) -> None:
    size, theme, steps = RUN_SCENES[scene]
    studio = Studio(still_run, settings=Settings(theme=theme, workers=4))
    assert snap_compare(studio, terminal_size=size, run_before=steps)


async def first_steps(pilot: Pilot[None]) -> None:
    await until(pilot, lambda: isinstance(pilot.app.screen, FirstStepsScreen))


async def problem(pilot: Pilot[None]) -> None:
    await until(pilot, lambda: isinstance(pilot.app.screen, ProblemScreen))
    pilot.app.screen.say(
        "/home/ada/photos is not a workspace (it has no catalog.db); name another folder with --workspace."
    )
    await pilot.pause()


def test_picture_of_first_steps(tmp_path: Path, snap_compare) -> None:
    studio = Studio(tmp_path / "new", settings=Settings(theme="dark"))
    assert snap_compare(studio, terminal_size=SMALL, run_before=first_steps)


def test_picture_of_a_problem(tmp_path: Path, snap_compare) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    studio = Studio(tmp_path / "photos", settings=Settings(theme="light"))
    assert snap_compare(studio, terminal_size=SMALL, run_before=problem)
