"""First steps, Activity, Settings, comparing, editing a task."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import event
from textual.widgets import Input, Select, TextArea

from pipeline import settings as settings_file
from pipeline.catalog import Catalog
from pipeline.model import AuthorKind, Part
from studio.screens.activity import ActivityScreen
from studio.screens.ask import AskScreen
from studio.screens.compare import CompareScreen
from studio.screens.edit_task import EditTaskScreen
from studio.screens.environments import EnvironmentsScreen
from studio.screens.first_steps import FirstStepsScreen
from studio.screens.page import PageScreen
from studio.widgets.grid import Grid
from studio.widgets.source import Source
from tests.studio.conftest import studio_on, until
from tests.studio.worlds import named


def seen(studio) -> str:
    """What is being notified."""
    return "\n".join(notification.message for notification in studio._notifications)


# First steps


async def test_an_empty_workspace_offers_three_ways_in(tmp_path: Path) -> None:
    async with studio_on(tmp_path / "new", wait=False) as (studio, pilot):
        await until(pilot, lambda: isinstance(studio.screen, FirstStepsScreen))
        text = " ".join(str(way.render()) for way in studio.screen.query(".way"))
        for words in ("offline", "Import a folder", "Set up a model"):
            assert words in text
        await pilot.press("s")
        assert studio.current_mode == "settings"


async def test_making_environments_offline_leads_to_them_as_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.screens.first_steps.COUNT", 2)
    async with studio_on(tmp_path / "new", wait=False) as (studio, pilot):
        await until(pilot, lambda: isinstance(studio.screen, FirstStepsScreen))
        await pilot.press("m")
        await until(
            pilot, lambda: isinstance(studio.screen, EnvironmentsScreen) and studio.screen.grid.rows, seconds=60
        )
        await until(pilot, lambda: len(studio.screen.grid.rows) == 2)
        await until(pilot, lambda: [run.state for run in studio.runs] == ["done"])


async def test_environments_that_come_while_another_screen_is_in_front_are_shown_on_the_way_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.screens.first_steps.COUNT", 2)
    async with studio_on(tmp_path / "new", wait=False) as (studio, pilot):
        await until(pilot, lambda: isinstance(studio.screen, FirstStepsScreen))
        await pilot.press("m", "7")
        await until(pilot, lambda: [run.state for run in studio.runs] == ["done"], seconds=60)
        await studio.workers.wait_for_complete()
        assert studio.current_mode == "activity"
        await pilot.press("2")
        await until(pilot, lambda: isinstance(studio.screen, EnvironmentsScreen))
        await until(pilot, lambda: len(studio.screen.grid.rows) == 2)


async def test_a_run_that_cannot_start_says_why(tmp_path: Path) -> None:
    async with studio_on(tmp_path / "new", wait=False) as (studio, pilot):
        await until(pilot, lambda: isinstance(studio.screen, FirstStepsScreen))
        studio.start_run("synth", "--offline", "--count", "1", "--domain", "no_such_domain")
        await until(pilot, lambda: "no_such_domain" in seen(studio), seconds=60)


async def test_importing_a_folder_leads_to_its_environments(tmp_path: Path) -> None:
    folder = tmp_path / "outputs"
    folder.mkdir()
    (folder / "gen_scenario.jsonl").write_text('{"name": "Zoo", "description": "A zoo."}\n')
    (folder / "gen_tasks.jsonl").write_text('{"scenario": "Zoo", "tasks": ["Feed the seals."]}\n')
    async with studio_on(tmp_path / "new", wait=False) as (studio, pilot):
        await until(pilot, lambda: isinstance(studio.screen, FirstStepsScreen))
        await pilot.press("i")
        await until(pilot, lambda: isinstance(studio.screen, AskScreen))
        studio.screen.query_one(Input).value = str(folder)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(studio.screen, EnvironmentsScreen) and studio.screen.grid.row)
        assert studio.screen.grid.row.title == "Zoo"
        await until(pilot, lambda: "Imported 1 environments" in seen(studio))


async def test_a_folder_that_cannot_be_imported_says_why(tmp_path: Path) -> None:
    async with studio_on(tmp_path / "new", wait=False) as (studio, pilot):
        await until(pilot, lambda: isinstance(studio.screen, FirstStepsScreen))
        await pilot.press("i")
        await until(pilot, lambda: isinstance(studio.screen, AskScreen))
        studio.screen.query_one(Input).value = str(tmp_path / "nowhere")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(studio.screen, FirstStepsScreen))
        await until(pilot, lambda: "nowhere" in seen(studio))


# Activity


@pytest.fixture
def worker() -> Iterator[subprocess.Popen[bytes]]:
    """A process that ends when it is interrupted, as a run's does."""
    process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    yield process
    process.kill()
    process.wait()


async def test_a_run_is_followed_stopped_and_told_when_it_ends(
    workspace: Path, worker: subprocess.Popen[bytes]
) -> None:
    with Catalog.open(workspace / "catalog.db") as elsewhere:
        async with studio_on(workspace) as (studio, pilot):
            await pilot.press("7")
            screen = studio.screen
            assert isinstance(screen, ActivityScreen)
            run = elsewhere.add_run("audit", {"environments": 8})
            elsewhere.update_run(run, state="running", pid=worker.pid)
            elsewhere.add_event(run, "progress", {"done": 2, "total": 8}, scenario="bike_fleet")
            await until(pilot, lambda: screen.grid.row and screen.grid.row.progress)
            assert (screen.grid.row.progress.done, screen.grid.row.progress.total) == (2, 8)
            assert screen.grid.row.state == "running"
            story = screen.query_one("#run", Source)
            await until(pilot, lambda: "bike_fleet" in story.text)
            assert '"environments": 8' in story.text
            await until(pilot, lambda: "▶1" in studio.note)
            await pilot.press("s")
            await until(pilot, lambda: worker.poll() is not None)
            elsewhere.update_run(run, state="done", pid=None, result={"trusted": 7})
            await until(pilot, lambda: f"Run {run} (audit) ✓ finished" in seen(studio))
            await until(pilot, lambda: screen.grid.row.state == "done" and '"trusted": 7' in story.text)


async def test_a_run_whose_process_is_gone_is_told_and_shown_as_interrupted(
    workspace: Path, worker: subprocess.Popen[bytes]
) -> None:
    worker.kill()
    worker.wait()
    with Catalog.open(workspace / "catalog.db") as elsewhere:
        run = elsewhere.add_run("audit", {})
        elsewhere.update_run(run, state="running", pid=worker.pid)
    async with studio_on(workspace) as (studio, pilot):
        await until(pilot, lambda: "Interrupted: run 1 (audit)" in seen(studio))
        await pilot.press("7")
        await until(pilot, lambda: studio.screen.grid.row is not None)
        assert studio.screen.grid.row.state == "interrupted"
        await pilot.press("s")
        await until(pilot, lambda: "not running any more" in seen(studio))
        await pilot.press("r")
        await until(pilot, lambda: "cannot be resumed" in seen(studio))


# Settings


async def test_settings_are_written_to_the_file_and_hold_at_once(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        await pilot.press("8")
        screen = studio.screen
        screen.query_one("#theme", Select).value = "light"
        await until(pilot, lambda: studio.theme == "light")
        screen.query_one("#call_timeout_s", Input).value = "3.5"
        screen.query_one("#model-model", Input).value = "small-model"
        screen.query_one("#model-api_key_env", Input).value = "NO_SUCH_KEY"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: settings_file.settings_path().exists())
        saved = settings_file.load()
        assert (saved.theme, saved.call_timeout_s) == ("light", 3.5)
        assert saved.profiles["default"].model == "small-model"
        assert studio.settings == saved
        await until(pilot, lambda: "NO_SUCH_KEY is not set" in str(screen.query_one("#key-state").render()))


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [("call_timeout_s", "soon", "valid number"), ("memory_mb", "64", "greater than or equal to 128")],
)
async def test_a_wrong_setting_is_named_and_nothing_is_written(
    small_world: Path, field: str, value: str, problem: str
) -> None:
    async with studio_on(small_world) as (studio, pilot):
        await pilot.press("8")
        studio.screen.query_one(f"#{field}", Input).value = value
        await pilot.press("ctrl+s")
        await until(pilot, lambda: problem in str(studio.screen.query_one(f"#{field}-problem").render()))
        assert not settings_file.settings_path().exists()


async def test_other_models_in_the_file_stay_as_they_are(small_world: Path) -> None:
    settings_file.settings_path().write_text('[profiles.big]\nmodel = "big-model"\n')
    async with studio_on(small_world) as (studio, pilot):
        studio.settings = settings_file.load()
        await pilot.press("8")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "Saved" in seen(studio))
        assert set(settings_file.load().profiles) == {"big"}


def test_config_locate_says_where_everything_is(workspace: Path) -> None:
    command = [sys.executable, "-m", "studio.cli", "config", "locate", "--json", "--workspace", str(workspace)]
    places = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert places["settings"] == str(settings_file.settings_path())
    assert places["workspace"] == str(workspace)
    assert places["logs"] == str(workspace / "logs")
    assert Path(places["keymap"]).parent == settings_file.settings_path().parent


# Comparing and editing


async def test_two_environments_are_compared_part_by_part(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        await pilot.press("d")
        assert "Mark two" in seen(studio)
        await pilot.press("down", "x", "end", "d")
        await until(pilot, lambda: isinstance(studio.screen, CompareScreen))
        screen = studio.screen
        facts = {(fact.group, fact.name): fact for fact in screen.query_one(Grid).rows}
        assert facts["table", "t0"].same
        assert not facts["table", "t11"].same, "only the museum has twelve tables"
        assert facts["table", "t11"].left == ""
        await until(pilot, lambda: "+About Museum loans." in screen.query_one(Source).text)
        await pilot.press("n")
        await until(pilot, lambda: "+CREATE TABLE t5" in screen.query_one(Source).text)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(studio.screen, EnvironmentsScreen))


async def test_editing_a_task_makes_a_version_by_a_person(workspace: Path) -> None:
    async with studio_on(workspace) as (studio, pilot):
        list_screen = studio.screen
        await pilot.press("e")
        await until(pilot, lambda: list_screen.detail.has_focus_within)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(studio.screen, EditTaskScreen))
        screen = studio.screen
        grid, text = screen.query_one(Grid), screen.query_one(TextArea)
        await until(pilot, lambda: grid.rows)
        assert grid.rows[0].values["owner"] == "Grace Hopper", "what the task speaks of comes first"
        assert grid.rows[0].mentioned == ("owner",)
        text.text = "Claim 99 euros for the bag of "
        text.move_cursor(text.document.end)
        grid.focus()
        await pilot.press("down", "enter")
        await until(pilot, lambda: studio.screen is not screen)
        await pilot.press("down", "enter")
        await until(pilot, lambda: text.text.endswith("Ada Lovelace"))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: studio.screen is list_screen)
        with Catalog.open(workspace / "catalog.db") as catalog:
            tasks = catalog.versions("airline_lost_baggage", Part.tasks)
            assert catalog.environment("airline_lost_baggage").tasks[0] == "Claim 99 euros for the bag of Ada Lovelace"
        assert [version.author.kind for version in tasks] == [AuthorKind.blueprint, AuthorKind.person]
        assert tasks[1].parents == (tasks[0].id,)
        assert "verifiers were written for the old text" in seen(studio)
        await until(pilot, lambda: "Ada Lovelace" in list_screen.detail.pane.source.text)


async def test_an_edit_of_tasks_that_changed_meanwhile_is_refused(workspace: Path) -> None:
    async with studio_on(workspace) as (studio, pilot):
        list_screen = studio.screen
        await pilot.press("e")
        await until(pilot, lambda: list_screen.detail.has_focus_within)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(studio.screen, EditTaskScreen))
        with Catalog.open(workspace / "catalog.db") as elsewhere:
            named(elsewhere, "airline_lost_baggage", "Airline: lost baggage", domain="travel", tables=1)
        studio.screen.query_one(TextArea).text = "Something else"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "changed these tasks meanwhile" in seen(studio))
        assert isinstance(studio.screen, EditTaskScreen)


REFUSALS = {
    "locked": ("PRAGMA busy_timeout = 50", "BEGIN IMMEDIATE", "is locked by another process that is writing"),
    "read-only": ("PRAGMA query_only = 1", "SELECT 1", "cannot be written to"),
    "on a full disk": ("PRAGMA max_page_count = 1", "SELECT 1", "the disk is full"),
}
"""How a catalog is made to refuse: on each of the studio's connections, by somebody else's; and what is said."""


@pytest.mark.parametrize("how", REFUSALS)
async def test_what_a_catalog_refuses_is_told_and_can_be_saved_later(workspace: Path, how: str) -> None:
    here, elsewhere, words = REFUSALS[how]
    async with studio_on(workspace) as (studio, pilot):
        list_screen = studio.screen
        await pilot.press("e")
        await until(pilot, lambda: list_screen.detail.has_focus_within)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(studio.screen, EditTaskScreen))
        editor, engine = studio.screen, studio.workspace.catalog._engine

        def refuse(connection: sqlite3.Connection, *_: object) -> None:
            connection.execute(here)

        event.listen(engine, "checkout", refuse)
        writer = sqlite3.connect(workspace / "catalog.db", isolation_level=None)
        writer.execute(elsewhere)
        editor.query_one(TextArea).text = f"Say so. {random.Random(1).randbytes(20_000).hex()}"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: words in seen(studio))
        assert studio.screen is editor
        writer.close()
        event.remove(engine, "checkout", refuse)
        engine.dispose()
        await pilot.press("ctrl+s")
        await until(pilot, lambda: studio.screen is list_screen)
    with Catalog.open(workspace / "catalog.db") as catalog:
        assert catalog.environment("airline_lost_baggage").tasks[0].startswith("Say so.")


async def test_leaving_an_unsaved_task_asks_first(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        list_screen = studio.screen
        await pilot.press("e")
        await until(pilot, lambda: list_screen.detail.has_focus_within)
        await pilot.press("e")
        await until(pilot, lambda: isinstance(studio.screen, EditTaskScreen))
        editor = studio.screen
        await pilot.press(*"more", "escape")
        await until(pilot, lambda: studio.screen is not editor)
        await pilot.press("enter")
        await until(pilot, lambda: studio.screen is editor)
        await pilot.press("escape")
        await until(pilot, lambda: studio.screen is not editor)
        await pilot.press("down", "enter")
        await until(pilot, lambda: studio.screen is list_screen)


# Datasette


async def test_without_a_browser_the_address_and_the_ssh_line_are_shown(
    small_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.7 51000 192.0.2.1 22")
    async with studio_on(small_world) as (studio, pilot):
        await pilot.press("o")
        await until(pilot, lambda: isinstance(studio.screen, PageScreen), seconds=60)
        shown = " ".join(str(line.render()) for line in studio.screen.query("Static"))
        assert "airline_lost_baggage" in shown
        assert "ssh -N -L" in shown
        await pilot.press("t")
        assert studio.clipboard.startswith("ssh -N -L")
        await pilot.press("y")
        assert studio.clipboard.startswith("http://127.0.0.1:")
        import httpx

        page = httpx.get(studio.clipboard, timeout=30, follow_redirects=True)
        assert page.status_code == 200
        assert "bags" in page.text
