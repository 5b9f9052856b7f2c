"""Subsets: listed, built with live counts, compared, opened, exported."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from textual.pilot import Pilot
from textual.widgets import Input, Select, Static

pytest.importorskip("numpy")
pytest.importorskip("scipy")
pytest.importorskip("sklearn")

from pipeline.catalog import Catalog
from pipeline.model import Author, AuthorKind, Part
from pipeline.workspace import Workspace
from studio.app import Studio
from studio.cli import awm_studio
from studio.screens.choose import ChooseScreen
from studio.screens.subset_build import BuildScreen
from studio.screens.subset_compare import CompareSubsetsScreen, Differences
from studio.screens.subset_export import ExportScreen
from studio.screens.subset_members import MembersScreen
from studio.screens.subsets import SubsetsScreen
from studio.widgets.source import Source
from tests.studio.conftest import studio_on, until
from tests.studio.landscapes import measured, with_subsets
from train.ablate_scaling import keep_nested, nested
from train.worlds import subset_named


@pytest.fixture(autouse=True)
def all_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the screens run where only what they use here is installed."""
    monkeypatch.setattr("curation.extras.missing", lambda extra: ())


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The commands that the studio would have started."""
    commands: list[tuple[str, ...]] = []
    monkeypatch.setattr(Studio, "start_run", lambda self, *arguments: commands.append(arguments))
    return commands


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with two subsets that tests only look at."""
    return with_subsets(tmp_path_factory.mktemp("seen") / "ws")


@asynccontextmanager
async def subsets_on(
    path: Path, size: tuple[int, int] = (120, 36)
) -> AsyncIterator[tuple[Studio, Pilot[None], SubsetsScreen]]:
    async with studio_on(path, size=size) as (studio, pilot):
        await pilot.press("4")
        screen = studio.screen
        assert isinstance(screen, SubsetsScreen)
        await until(pilot, lambda: "Reading" not in screen.grid.empty)
        yield studio, pilot, screen


def said(screen, where: str) -> str:
    return str(screen.query_one(where, Static).render())


async def test_subsets_are_listed_with_what_they_hold(seen: Path) -> None:
    async with subsets_on(seen) as (_, pilot, screen):
        assert [row.name for row in screen.grid.rows] == ["mix-v1", "rides-only"]
        card = screen.query_one("#card", Source)
        await until(pilot, lambda: "mix-v1" in card.text)
        for word in ("held out", "coverage", "first 2", "Apache-2.0", "facility location", "threshold  0.4"):
            assert word in card.text, word
        await pilot.press("down")
        assert "domain:rides" in card.text


async def test_what_is_being_exported_is_told_with_how_far_it_is(tmp_path: Path) -> None:
    path = with_subsets(tmp_path / "ws")
    async with subsets_on(path) as (_, pilot, screen):
        assert not screen.query_one("#subsets-note").display
        with Catalog.open(path / "catalog.db") as catalog:
            run = catalog.add_run("export", {"format": "hf", "subset": "mix-v1", "folder": "mix-v1-hf"})
            catalog.update_run(run, state="running", pid=os.getpid())
            catalog.add_event(run, "progress", {"done": 3, "total": 6})
            await until(pilot, lambda: f"Run {run} exports to mix-v1-hf: 3 of 6" in said(screen, "#subsets-note"))
            catalog.update_run(run, state="done", pid=None)
        await until(pilot, lambda: not screen.query_one("#subsets-note").display)


async def test_without_any_it_says_what_to_press(small_world: Path) -> None:
    async with subsets_on(small_world) as (_, pilot, screen):
        await until(pilot, lambda: "b picks" in screen.grid.empty)
        await pilot.press("e", "enter", "c", "D")
        assert isinstance(screen.studio.screen, SubsetsScreen)


async def test_a_recipe_is_followed_while_it_is_written_and_then_started(
    seen: Path, started: list[tuple[str, ...]]
) -> None:
    async with subsets_on(seen) as (studio, pilot, _):
        await pilot.press("b")
        await until(pilot, lambda: isinstance(studio.screen, BuildScreen) and studio.screen._pool)
        form = studio.screen

        async def fill(shows: str, at: str = "#preview", **values: str) -> None:
            for name, value in values.items():
                form.query_one(f"#build-{name.replace('_', '-')}", Input).value = value
            await until(pilot, lambda: shows in said(form, at))

        await fill("24 of 24 environments pass the filter, 24 can be picked")
        await fill("8 of 24 environments", where="domain:rides")
        await fill("train  8 environments, 8 tasks, 1 concept")
        await fill("train  4 environments, 4 tasks, 3 concepts", where="", budget="4")
        await fill("test   1 environment, 1 task, 1 concept", budget="4", held_out="0.3")
        await fill("The budget is 90: all that can be picked are", budget="90")
        await fill("no field domian", "#form-problem", where="domian:rides")
        await fill("'lots' is not a whole number", "#form-problem", where="", budget="lots")
        await fill("is not a number from 0", "#form-problem", budget="4", held_out="2")
        await fill("needs two concepts", "#form-problem", held_out="0.3", where="domain:rides")
        await fill("is not a list of sizes", "#form-problem", where="", series="ten")
        form.query_one("#build-series", Input).value = "2,1"
        for name, problem in (("", "cannot name"), ("../x", "cannot name"), ("mix-v1", "already")):
            form.query_one("#build-name", Input).value = name
            await pilot.press("ctrl+s")
            assert problem in said(form, "#form-problem")
        form.query_one("#build-name", Input).value = "mix-v2"
        form.query_one("#build-cover", Select).value = "tasks"
        await until(pilot, lambda: "cannot be counted live" in said(form, "#preview"))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: started)
        assert started == [
            ("subset", "mix-v2", "--budget", "4", "--method", "facility", "--cover", "tasks", "--seed", "0",
             "--held-out", "0.3", "--series", "1,2")
        ]  # fmt: skip


async def test_what_the_form_starts_is_a_command_that_works(tmp_path: Path, started: list[tuple[str, ...]]) -> None:
    path = measured(tmp_path / "ws")
    async with subsets_on(path) as (studio, pilot, screen):
        await pilot.press("b")
        await until(pilot, lambda: isinstance(studio.screen, BuildScreen))
        for name, value in {"name": "mix", "where": "-domain:farm", "budget": "5", "distinct": "0.95"}.items():
            studio.screen.query_one(f"#build-{name}", Input).value = value
        await pilot.press("enter")
        await until(pilot, lambda: started)
        done = CliRunner().invoke(awm_studio, ["-w", str(path), *started[0], "--model", "ngrams"])
        assert done.exit_code == 0, done.output
        await until(pilot, lambda: [row.name for row in screen.grid.rows] == ["mix"])


async def test_where_nothing_is_measured_the_form_says_so_and_works(
    small_world: Path, started: list[tuple[str, ...]]
) -> None:
    async with subsets_on(small_world) as (studio, pilot, _):
        await pilot.press("b")
        await until(pilot, lambda: isinstance(studio.screen, BuildScreen))
        await until(pilot, lambda: "Nothing is measured yet" in said(studio.screen, "#preview"))
        studio.screen.query_one("#build-name", Input).value = "mix"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: started)
        assert started[0][:3] == ("subset", "mix", "--all")


async def test_building_without_the_extra_says_what_to_install(seen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curation.extras.missing", lambda extra: ("umap",))
    async with subsets_on(seen) as (studio, pilot, _):
        await pilot.press("b")
        await until(pilot, lambda: any("make install-all" in note.message for note in studio._notifications))
        assert isinstance(studio.screen, SubsetsScreen)


async def test_two_subsets_are_compared(seen: Path) -> None:
    async with subsets_on(seen) as (studio, pilot, _):
        await pilot.press("c")
        assert isinstance(studio.screen, SubsetsScreen), "one has to be marked first"
        await pilot.press("x", "down", "c")
        await until(pilot, lambda: isinstance(studio.screen, CompareSubsetsScreen))
        listing = studio.screen.query_one(Differences)
        await until(pilot, lambda: listing.grid.rows)
        counts = {row.what: row.counts for row in listing.grid.rows}
        with Catalog.open(seen / "catalog.db") as catalog:
            picked = [
                {pick["environment"] for pick in catalog.subset(name)["picks"]} for name in ("mix-v1", "rides-only")
            ]
        one, other = picked
        assert counts["environments"] == (f"{len(one - other)}", f"{len(one & other)}", f"{len(other - one)}")
        assert all(name in listing.source.text for name in one | other)
        await pilot.press("escape")
        assert isinstance(studio.screen, SubsetsScreen)


async def test_a_subset_that_was_cut_from_another_is_shown_without_what_was_not_measured(tmp_path: Path) -> None:
    path = with_subsets(tmp_path / "ws")
    with Workspace.open(path) as workspace:
        keep_nested(workspace, nested(subset_named(workspace.catalog, "mix-v1"), 2))
    shown = CliRunner().invoke(awm_studio, ["-w", str(path), "subset", "mix-v1-first-2"])
    assert shown.exit_code == 0
    assert "environments    2" in shown.stdout
    assert "coverage" not in shown.stdout
    async with subsets_on(path) as (studio, pilot, screen):
        assert "mix-v1-first-2" in [row.name for row in screen.grid.rows]
        await pilot.press("down")
        await until(pilot, lambda: "mix-v1-first-2" in screen.query_one("#card", Source).text)
        assert "coverage" not in screen.query_one("#card", Source).text
        await pilot.press("x", "up", "c")
        await until(pilot, lambda: isinstance(studio.screen, CompareSubsetsScreen))
        listing = studio.screen.query_one(Differences)
        await until(pilot, lambda: listing.grid.rows)
        coverage = next(row.counts for row in listing.grid.rows if row.what == "coverage")
        assert "" in (coverage[0], coverage[2])
        assert coverage != ("", "", "")


async def test_a_subset_is_opened_and_shows_tasks_as_they_were_picked(tmp_path: Path) -> None:
    path = with_subsets(tmp_path / "ws")
    with Catalog.open(path / "catalog.db") as catalog:
        catalog.put("rides_ashby", Part.tasks, json.dumps(["Edited."]), author=Author(AuthorKind.person, "ada"))
    async with subsets_on(path) as (studio, pilot, _):
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(studio.screen, MembersScreen) and studio.screen.grid.rows)
        screen = studio.screen
        assert "8 environments, 8 tasks" in said(screen, "#concepts-head")
        assert screen.grid.go_to(lambda row: row.name == "rides_ashby")
        await until(pilot, lambda: "Request a car to the airport" in screen.query_one("#member", Source).text)
        await pilot.press("enter", "escape", "escape")
        assert isinstance(studio.screen, SubsetsScreen)


async def test_an_export_names_a_new_folder_and_is_started(
    seen: Path, tmp_path: Path, started: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    async with subsets_on(seen) as (studio, pilot, _):
        await pilot.press("e")
        await until(pilot, lambda: isinstance(studio.screen, ExportScreen))
        form = studio.screen
        folder = form.query_one(Input)
        assert folder.value == "mix-v1-hf"
        form.query_one(Select).value = "trl"
        await until(pilot, lambda: folder.value == "mix-v1-trl")
        for typed, problem in (("full", "is not an empty folder"), (" ", "Name a folder")):
            folder.value = typed
            await pilot.press("ctrl+s")
            assert problem in said(form, "#form-problem")
        folder.value = "out"
        await pilot.press("enter")
        await until(pilot, lambda: started)
        assert started == [("export", str(tmp_path / "out"), "--format", "trl", "--subset", "mix-v1")]


async def test_a_subset_is_forgotten_only_when_that_is_said_again(tmp_path: Path) -> None:
    path = with_subsets(tmp_path / "ws")
    async with subsets_on(path) as (studio, pilot, screen):
        await pilot.press("D")
        await until(pilot, lambda: isinstance(studio.screen, ChooseScreen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(studio.screen, SubsetsScreen))
        assert len(screen.grid.rows) == 2
        await pilot.press("D")
        await until(pilot, lambda: isinstance(studio.screen, ChooseScreen))
        await pilot.press("down", "enter")
        await until(pilot, lambda: [row.name for row in screen.grid.rows] == ["rides-only"])


async def test_in_a_narrow_terminal_the_card_is_a_key_away(seen: Path) -> None:
    async with subsets_on(seen, (80, 24)) as (_, pilot, screen):
        assert not screen.query_one("#card").display
        await pilot.press("z")
        assert screen.query_one("#card").display
        await pilot.press("escape")
        assert screen.grid.has_focus
