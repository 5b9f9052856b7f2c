"""Each key that steers a run says what it should: a command in the run's log, for whoever works on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import TextArea

from studio.app import Studio
from studio.screens.edit_part import EditPartScreen
from studio.screens.settings import SettingsScreen
from tests.studio.conftest import studio_on, until
from tests.studio.runs import fill_with_run
from tests.studio.test_pipeline import answer, pick, pipeline_on

WAITING = {"scenario": "escape_rooms", "stage": "interface"}


async def reject(pilot: Pilot[None]) -> None:
    await pilot.press("g", "x")
    await pick(pilot, "code")
    await answer(pilot, "a room can be booked twice")


async def drop(pilot: Pilot[None]) -> None:
    await pilot.press("g", "D")
    await pick(pilot, "drop")


async def again(pilot: Pilot[None]) -> None:
    await pilot.press("g", "R")
    await pick(pilot, "plain")


async def again_what_failed(pilot: Pilot[None]) -> None:
    await pilot.press("R")
    await pick(pilot, "failed")


async def from_version(pilot: Pilot[None]) -> None:
    await pilot.press("g", "R")
    await pick(pilot, "version")
    await pick(pilot, "code")
    await pick(pilot, "1")
    await answer(pilot, "with a price")


async def approve_all(pilot: Pilot[None]) -> None:
    await pilot.press("A")
    await pick(pilot, "yes")


async def stop(pilot: Pilot[None]) -> None:
    await pilot.press("S")
    await pick(pilot, "stop")


async def count(pilot: Pilot[None]) -> None:
    await pilot.press("c")
    await answer(pilot, "12")


async def model(pilot: Pilot[None]) -> None:
    await pilot.press("m")
    await pick(pilot, "verification")
    await pick(pilot, "other")
    await answer(pilot, "careful-one")


GIVEN: dict[str, tuple[Callable[[Pilot[None]], Awaitable[None]], dict[str, Any]]] = {
    "reject": (reject, WAITING | {"do": "reject", "part": "code", "reason": "a room can be booked twice"}),
    "drop": (drop, {"scenario": "escape_rooms", "do": "drop"}),
    "again": (again, WAITING | {"do": "retry"}),
    "again, all that failed": (again_what_failed, {"scenario": None, "do": "retry"}),
    "from a version": (from_version, WAITING | {"do": "retry", "part": "code", "version": 1, "hint": "with a price"}),
    "approve all": (approve_all, {"scenario": None, "do": "approve"}),
    "stop": (stop, {"scenario": None, "do": "stop"}),
    "count": (count, {"scenario": None, "do": "set", "count": 12}),
}


@pytest.fixture(scope="module")
def steered_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in every state on which nobody works: commands are kept, in the order they were given."""
    folder = tmp_path_factory.mktemp("steered") / "ws"
    fill_with_run(folder)
    return folder


async def given(path: Path, steps: Callable[[Pilot[None]], Awaitable[None]]) -> dict[str, Any]:
    """The command that some keys send."""
    async with pipeline_on(path) as (_, pilot, screen):
        watch = screen.watch_of_run
        assert watch is not None
        before = set(watch.board.pending)
        await steps(pilot)
        await until(pilot, lambda: set(watch.board.pending) - before)
        (number,) = set(watch.board.pending) - before
        command = watch.board.pending[number]
        return {"scenario": command.scenario, **command.data}


@pytest.mark.parametrize("what", GIVEN)
async def test_a_key_and_its_questions_become_a_command(steered_world: Path, what: str) -> None:
    steps, expected = GIVEN[what]
    command = await given(steered_world, steps)
    assert {key: command.get(key) for key in expected} == expected


async def test_another_model_is_taken_for_one_stage_from_now_on(steered_world: Path) -> None:
    command = await given(steered_world, model)
    assert list(command["models"]) == ["verification"]
    assert command["models"]["verification"]["model"] == "careful-one"


async def test_what_is_no_number_is_said_and_nothing_is_sent(steered_world: Path) -> None:
    async with pipeline_on(steered_world) as (studio, pilot, screen):
        assert screen.watch_of_run is not None
        before = dict(screen.watch_of_run.board.pending)
        await pilot.press("c")
        await answer(pilot, "many")
        await until(pilot, lambda: "'many' is not a whole number" in said(studio))
        assert screen.watch_of_run.board.pending == before


# The person's own editor


@asynccontextmanager
async def settings_on(path: Path) -> AsyncIterator[tuple[Studio, Pilot[None]]]:
    async with studio_on(path) as (studio, pilot):
        await pilot.press("8")
        await until(pilot, lambda: isinstance(studio.screen, SettingsScreen))
        yield studio, pilot


def said(studio: Studio) -> str:
    return " ".join(each.message for each in studio._notifications)


@pytest.fixture
def suspendable(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A terminal that can be left and comes back; what was done with it."""
    from textual.drivers.headless_driver import HeadlessDriver

    done: list[str] = []
    monkeypatch.setattr(HeadlessDriver, "can_suspend", property(lambda self: True))
    monkeypatch.setattr(HeadlessDriver, "suspend_application_mode", lambda self: done.append("left"))
    monkeypatch.setattr(HeadlessDriver, "resume_application_mode", lambda self: done.append("back"))
    return done


def editor_that(does: str, folder: Path) -> str:
    script = folder / "my editor.sh"
    script.write_text(f'#!/bin/sh\nfor file; do :; done\n{does} "$file"\n')
    script.chmod(0o755)
    return f"'{script}' --wait"


async def test_f4_opens_a_draft_in_the_persons_editor_and_checks_what_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suspendable: list[str]
) -> None:
    fill_with_run(tmp_path / "ws")
    monkeypatch.setenv("VISUAL", editor_that("sed -i 's/users(id)/people(id)/'", tmp_path))
    async with pipeline_on(tmp_path / "ws") as (studio, pilot, _):
        await pilot.press("down", "down", "right", "e")
        await pick(pilot, "schema")
        await until(pilot, lambda: isinstance(studio.screen, EditPartScreen))
        area = studio.screen.query_one(TextArea)
        await until(pilot, lambda: "REFERENCES users(id)" in area.text)
        await pilot.press("f4")
        await until(pilot, lambda: "REFERENCES people(id)" in area.text)
        assert suspendable == ["left", "back"]


@pytest.mark.parametrize(
    ("editor", "words"),
    [("no-such-editor-here", "no-such-editor-here cannot be started"), ("vi 'unended", "is no command line")],
)
async def test_an_editor_that_cannot_be_started_is_told_and_the_terminal_comes_back(
    small_world: Path, monkeypatch: pytest.MonkeyPatch, suspendable: list[str], editor: str, words: str
) -> None:
    monkeypatch.setenv("VISUAL", editor)
    async with settings_on(small_world) as (studio, pilot):
        await pilot.press("f4")
        await until(pilot, lambda: words in said(studio))
        assert suspendable in ([], ["left", "back"])
        assert studio.is_running


async def test_in_a_browser_there_is_no_terminal_for_an_editor(small_world: Path) -> None:
    async with settings_on(small_world) as (studio, pilot):
        await pilot.press("f4")
        await until(pilot, lambda: "There is no terminal for an editor here" in said(studio))
