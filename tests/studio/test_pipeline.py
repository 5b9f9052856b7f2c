"""The Pipeline screen: a run watched and steered."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Static, TextArea

from pipeline.engine.board import State
from pipeline.engine.lock import work_on
from pipeline.llm.profiles import Prices
from pipeline.model import STAGES, Part
from pipeline.runtime.host import Host
from pipeline.workspace import Workspace
from studio.app import Studio
from studio.pace import Pace
from studio.screens.ask import AskScreen
from studio.screens.choose import ChooseScreen
from studio.screens.edit_part import EditPartScreen
from studio.screens.new_run import NewRunScreen
from studio.screens.pipeline import PipelineScreen
from studio.screens.stage import StageScreen
from studio.widgets.board import Board
from studio.widgets.source import Source
from studio.widgets.streaming import Streaming
from tests.llm_server import Say, Server
from tests.pipeline.engine.conftest import Studio as Person
from tests.scripted_model import Model
from tests.studio.conftest import studio_on, until
from tests.studio.runs import fill_with_many, fill_with_run


@pytest.fixture(scope="module")
def run_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a run in every state, that tests only read."""
    folder = tmp_path_factory.mktemp("run") / "ws"
    fill_with_run(folder)
    return folder


@asynccontextmanager
async def pipeline_on(path: Path, **options: Any) -> AsyncIterator[tuple[Studio, Pilot[None], PipelineScreen]]:
    """A studio at its Pipeline screen, the run's board read."""
    async with studio_on(path, wait=False, **options) as (studio, pilot):
        await until(pilot, lambda: studio.workspace)
        await pilot.press("1")
        await until(pilot, lambda: isinstance(studio.screen, PipelineScreen) and studio.screen.board.rows)
        screen = studio.screen
        assert isinstance(screen, PipelineScreen)
        yield studio, pilot, screen


def lines(board: Board) -> list[str]:
    """The rows of the board as they are on the screen."""
    return [board.render_line(y).text.rstrip() for y in range(1, len(board.rows) + 1)]


def titles(board: Board) -> list[str]:
    return [row.title for row in board.rows]


def text_of(screen: Any, widget: str) -> str:
    return str(screen.query_one(widget, Static).render())


async def answer(pilot: Pilot[None], text: str) -> None:
    """Type into the question that is asked."""
    await until(pilot, lambda: isinstance(pilot.app.screen, AskScreen))
    pilot.app.screen.query_one(Input).value = text
    await pilot.press("enter")
    await until(pilot, lambda: not isinstance(pilot.app.screen, AskScreen))


async def pick(pilot: Pilot[None], key: str) -> None:
    """Choose from the list that is offered."""
    await until(pilot, lambda: isinstance(pilot.app.screen, ChooseScreen))
    asked = pilot.app.screen
    options = asked.query_one(OptionList)
    options.highlighted = options.get_option_index(key)
    await pilot.press("enter")
    await until(pilot, lambda: pilot.app.screen is not asked)


# The board


async def test_every_state_has_its_sign_with_the_attempt_and_the_totals_above(run_world: Path) -> None:
    async with pipeline_on(run_world, size=(80, 24)) as (_, _, screen):
        shown = [re.sub(r"\s+", " ", line).strip() for line in lines(screen.board)]
        assert shown[0].startswith("0001 Museum loans ✓ [✓] ✓ ✓ ✓")
        assert shown[1].startswith("0002 Lost baggage ✓ ✓ ↻·2 · ·")
        assert shown[2].startswith("0003 Escape rooms ✓ ✓ ✓ ?·2 ·")
        assert shown[3].startswith("0004 Blood bank ✓ ✓ ✗·4 · ·")
        assert shown[4].startswith("0005 Film festival ✓ ✓ ‖ · ·")
        assert shown[5].startswith("0006 陳美玲 wind farm ✓ · · · ·")
        head = text_of(screen, "#totals")
        assert "↻1 ?1 ✗1 ‖1 ✓1/8" in head
        assert "interrupted" in head  # nobody works on it
        assert "$0.07/5" in head
        assert "gate interface" in head


async def test_the_cursor_is_on_a_stage_and_g_finds_what_waits(run_world: Path) -> None:
    async with pipeline_on(run_world) as (_, pilot, screen):
        await pilot.press("down", "right", "right", "left")
        assert (screen.board.row.title, screen.board.stage) == ("Lost baggage", "database")
        await pilot.press("g")
        assert (screen.board.row.title, screen.board.stage) == ("Escape rooms", "interface")
        assert "to be approved" in screen.query_one("#brief", Source).text
        await pilot.press("g")  # the only one
        assert screen.board.row.title == "Escape rooms"


async def test_filters_narrow_the_board_and_escape_shows_all(run_world: Path) -> None:
    async with pipeline_on(run_world) as (_, pilot, screen):
        for key, shown in (("w", ["Escape rooms"]), ("f", ["Lost baggage", "Blood bank"]), ("d", ["Museum loans"])):
            await pilot.press(key)
            assert titles(screen.board) == shown
            await pilot.press(key)
            assert len(screen.board.rows) == 6
        await pilot.press("slash")
        await answer(pilot, "culture film")
        await until(pilot, lambda: titles(screen.board) == ["Film festival"])
        await pilot.press("escape")
        assert len(screen.board.rows) == 6


async def test_in_a_narrow_terminal_the_details_are_a_key_away(run_world: Path) -> None:
    async with pipeline_on(run_world, size=(80, 24)) as (_, pilot, screen):
        assert not screen.query_one("#beside").size.width
        await pilot.press("down", "right", "z")
        await until(pilot, lambda: "A bag has an owner" in screen.query_one("#stream", Streaming).text)
        assert screen.query_one("#beside").size.width == 80
        await pilot.press("escape")
        assert screen.board.has_focus


async def test_with_five_hundred_scenarios_only_rows_on_screen_are_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_with_many(tmp_path / "ws", 500)
    async with pipeline_on(tmp_path / "ws") as (studio, pilot, screen):
        assert len(screen.board.rows) == 500
        assert studio.workspace is not None
        drawn: list[int] = []
        monkeypatch.setattr(screen, "_tick", lambda: None)
        monkeypatch.setattr(screen.board, "refresh_rows", lambda rows, below=0: drawn.extend(rows))
        data = {"stage": "database", "state": "done", "why": "", "fault": ""}
        for number in range(500):
            studio.workspace.catalog.add_event(1, "stage", data, f"scenario_{number:03}")
        await until(pilot, lambda: all(row.cells["database"].state is State.done for row in screen.board.rows))
        assert drawn
        assert max(drawn) < screen.board.size.height


# A stage


async def test_a_stage_shows_its_attempts_beside_each_other_what_changed_and_what_was_asked(run_world: Path) -> None:
    async with pipeline_on(run_world) as (studio, pilot, _):
        await pilot.press("g", "enter")
        await until(pilot, lambda: isinstance(studio.screen, StageScreen))
        screen = studio.screen
        assert "0003 Escape rooms › interface" in text_of(screen, "#stage-head")
        assert "$0.01" in text_of(screen, "#stage-head")
        before, after = screen.query_one("#before", Source), screen.query_one("#after", Source)
        await until(pilot, lambda: "found nothing" in after.text)
        assert "answers plausible arguments with a server error" in before.text
        assert "has no 'nothing'" in before.text
        await pilot.press("d")
        await until(pilot, lambda: "-        return session.get(Item, 1).nothing" in after.text)
        assert "+        return shown(mine(session, id))" in after.text
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: "escape_rooms, try 2" in screen.query_one("#sent", Source).text)
        await pilot.press("right_square_bracket")
        content = screen.query_one("#content", Source)
        await until(pilot, lambda: "api_groups" in content.text)
        await pilot.press("less_than_sign")
        await until(pilot, lambda: "CREATE TABLE users" in content.text)
        await pilot.press("escape")
        assert isinstance(studio.screen, PipelineScreen)


async def test_what_is_being_written_is_followed_while_it_is_looked_at(tmp_path: Path) -> None:
    fill_with_run(tmp_path / "ws")
    async with pipeline_on(tmp_path / "ws") as (studio, pilot, _):
        await pilot.press("down", "right", "enter")
        await until(pilot, lambda: isinstance(studio.screen, StageScreen))
        stream = studio.screen.query_one("#streaming", Streaming)
        await until(pilot, lambda: "id INTEGER PRIMARY KEY," in stream.text)
        file = tmp_path / "ws" / "runs" / "1" / "live" / "lost_baggage" / "schema.txt"
        with file.open("a") as more:
            more.write("\n  owner TEXT")
        await until(pilot, lambda: "owner TEXT" in stream.text)
        await pilot.press("right_square_bracket")
        with file.open("a") as more:
            more.write("\n  unseen")
        await pilot.pause(0.6)
        assert "unseen" not in stream.text
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: "unseen" in stream.text)


async def test_what_was_sent_back_is_compared_with_what_came_instead(
    tmp_path: Path, kept_host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.stages.tasks.TASKS", 1)
    first, second = (Say(json.dumps({"tasks": [f'Mark the item "Item {n}" as done.']})) for n in (2, 4))
    model = Model(lambda step, about, before: (second if before else first) if step == "tasks" else None)
    with Server(model) as server, Workspace.open(tmp_path / "ws", create=True) as workspace:
        person = Person(workspace, kept_host)
        person.start(server, count=1, gates={"tasks": "all"})
        with work_on(workspace.runs / "1", 1):
            working = asyncio.create_task(person.work())
            async with pipeline_on(tmp_path / "ws") as (studio, pilot, screen):
                row = screen.board.row
                await until(pilot, lambda: row.cells["tasks"].state is State.waiting)
                await pilot.press("x")
                await answer(pilot, "rather the fourth")
                await until(pilot, lambda: row.cells["tasks"].generation and row.state is State.waiting)
                await pilot.press("enter")
                await until(pilot, lambda: isinstance(studio.screen, StageScreen))
                assert "a person said: rather the fourth" in text_of(studio.screen, "#stage-asked")
                await pilot.press("d")
                after = studio.screen.query_one("#after", Source)
                await until(pilot, lambda: "+" in after.text)
                assert "--- tasks, version 1 by m" in after.text
                assert [line for line in after.text.splitlines() if "Item" in line] == [
                    '-  "Mark the item \\"Item 2\\" as done."',
                    '+  "Mark the item \\"Item 4\\" as done."',
                ]
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


# Editing


async def test_an_edit_is_checked_beside_the_text_and_kept_as_a_draft(tmp_path: Path) -> None:
    fill_with_run(tmp_path / "ws")
    async with pipeline_on(tmp_path / "ws") as (studio, pilot, screen):
        await pilot.press("down", "down", "right", "e")
        await pick(pilot, "schema")
        await until(pilot, lambda: isinstance(studio.screen, EditPartScreen))
        editor = studio.screen
        area, checks = editor.query_one(TextArea), editor.query_one("#part-checks", Source)
        await until(pilot, lambda: area.text.startswith("CREATE TABLE users"))
        assert area.language == "sql"
        good = area.text
        area.load_text(good.replace("REFERENCES users(id)", "REFERENCES people(id)"))
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "people" in checks.text)
        assert "✗ 1 to put right" in text_of(editor, "#part-head")
        await pilot.press("f6")
        assert "+CREATE TABLE items" in checks.text
        area.load_text("CREATE TABLE bags (id INTEGER)\n")
        await pilot.press("f5")
        await until(pilot, lambda: "Line 1: the statement that begins here has no end" in checks.text)
        await pilot.press("escape")
        await pick(pilot, "leave")
        assert studio.screen is screen
        await pilot.press("e")
        await pick(pilot, "schema")
        await until(pilot, lambda: "people" in studio.screen.query_one(TextArea).text)  # the draft


# Commands


async def test_a_command_is_kept_where_nobody_works_on_the_run(tmp_path: Path) -> None:
    fill_with_run(tmp_path / "ws")
    async with pipeline_on(tmp_path / "ws") as (studio, pilot, screen):
        await pilot.press("g", "a")
        watch = screen.watch_of_run
        assert watch is not None
        await until(pilot, lambda: watch.board.pending)
        (command,) = watch.board.pending.values()
        assert command.scenario == "escape_rooms"
        assert (command.data["do"], command.data["stage"]) == ("approve", "interface")
        await until(pilot, lambda: any("Kept for later" in each.message for each in studio._notifications))


async def test_a_run_is_steered_to_its_end_from_the_board(
    tmp_path: Path, kept_host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command a person gives here reaches a real engine, and the board shows what it did."""
    monkeypatch.setattr("pipeline.stages.tasks.TASKS", 1)
    model = Model()
    with Server(model) as server, Workspace.open(tmp_path / "ws", create=True) as workspace:
        person = Person(workspace, kept_host)
        priced = {stage: {"prices": Prices(input=1, output=8)} for stage in STAGES}
        person.start(server, count=1, gates={"tasks": "all", "database": "all"}, models=priced)
        with work_on(workspace.runs / "1", 1):
            working = asyncio.create_task(person.work())
            async with pipeline_on(tmp_path / "ws") as (studio, pilot, screen):
                watch = screen.watch_of_run
                assert watch is not None
                row = screen.board.row
                await until(pilot, lambda: row.cells["tasks"].state is State.waiting)
                await pilot.press("r")
                await answer(pilot, "speak of roses")
                await until(pilot, lambda: row.cells["tasks"].generation and row.state is State.waiting)
                assert "speak of roses" in json.dumps(server.requests[-1])
                await until(pilot, lambda: "speak of roses" in screen.query_one("#brief", Source).text)
                await pilot.press("space")
                await until(pilot, lambda: row.paused)
                await pilot.press("space")
                await until(pilot, lambda: not row.paused)
                await pilot.press("t")
                await pick(pilot, "database")
                await pick(pilot, "warn")
                await until(pilot, lambda: watch.board.gates == {"tasks": "all", "database": "warn"})
                await pilot.press("b")
                await answer(pilot, "12.5")
                await until(pilot, lambda: watch.board.budget == 12.5)
                await pilot.press("e")
                await until(pilot, lambda: isinstance(studio.screen, EditPartScreen))
                area = studio.screen.query_one(TextArea)
                await until(pilot, lambda: area.text)
                area.load_text(json.dumps(['Mark the item "Item 2" as done.']))
                await pilot.press("f8")
                await pick(pilot, "again")
                await until(pilot, lambda: studio.screen is screen)
                await until(pilot, lambda: row.state is State.done, seconds=120)
                await asyncio.wait_for(working, 60)
        tasks = workspace.catalog.versions(row.name, Part.tasks)
        assert [version.author.kind.value for version in tasks] == ["model", "model", "person"][-len(tasks) :]
        assert workspace.catalog.environment(row.name).tasks == ('Mark the item "Item 2" as done.',)


# Starting


async def test_the_form_says_what_is_wrong_and_answers_with_a_command_line(
    run_world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, ...]] = []
    monkeypatch.setattr(Studio, "start_run", lambda self, *arguments: started.append(arguments))
    seeds = tmp_path / "seeds.jsonl"
    seeds.touch()
    async with pipeline_on(run_world, size=(80, 24)) as (studio, pilot, _):
        await pilot.press("n")
        await until(pilot, lambda: isinstance(studio.screen, NewRunScreen))
        form = studio.screen

        async def submit(said: str, **values: str) -> None:
            for name, value in values.items():
                form.query_one(f"#new-{name.replace('_', '-')}", Input).value = value
            await pilot.press("ctrl+s")
            await until(pilot, lambda: said in str(form.query_one("#new-problem", Static).render()))

        await submit("'many' is no number", count="many")
        await submit("no gate", count="3", gate="basement")
        await submit("There is no file", gate="database:warn, tasks", seeds=str(tmp_path / "none"))
        await submit("no amount", seeds=str(seeds), budget="lots")
        for name, value in (("budget", "2.5"), ("model", "scribe"), ("base-url", "http://localhost:1/v1")):
            form.query_one(f"#new-{name}", Input).value = value
        await pilot.press("ctrl+s")
        await until(pilot, lambda: started)
        assert started == [
            ("synth", "--count", "3", "--model", "scribe", "--base-url", "http://localhost:1/v1",
             "--seeds", str(seeds), "--gate", "database:warn", "--gate", "tasks", "--budget", "2.5",
             "--yes", "--detach")
        ]  # fmt: skip


# Pace


def test_the_pace_counts_from_when_the_engine_began() -> None:
    from datetime import UTC, datetime, timedelta

    from pipeline.records import Event

    start, pace = datetime(2026, 1, 1, tzinfo=UTC), Pace()

    def hear(seconds: float, kind: str, scenario: str | None = None, **data: Any) -> None:
        pace.hear(Event(1, 1, kind, scenario, data, start + timedelta(seconds=seconds)))

    hear(0, "run", state="running")
    assert pace.left_s(10, start) is None
    hear(30, "replied", "a", tokens_in=500, tokens_out=100, replayed=False)
    hear(40, "replied", "a", tokens_in=500, tokens_out=100, replayed=True)
    hear(100, "stage", "a", stage="verification", state="done")
    assert pace.tokens_a_second(start + timedelta(seconds=60)) == 10
    assert pace.tokens_a_second(start + timedelta(seconds=91)) == 0
    assert pace.left_s(4, start + timedelta(seconds=100)) == 400
    hear(200, "run", state="paused")
    assert pace.left_s(4, start + timedelta(seconds=201)) is None
