"""Calling an environment's tools by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Select, TabbedContent
from textual.widgets._footer import FooterKey

from pipeline.catalog import Catalog
from pipeline.model import AuthorKind, Call
from pipeline.settings import Settings
from studio.app import Studio
from studio.screens.call import CallScreen
from studio.screens.choose import ChooseScreen
from studio.screens.environments import EnvironmentsScreen
from studio.screens.finish import FinishScreen
from studio.widgets.changes import Changes
from studio.widgets.form import ArgumentForm
from studio.widgets.grid import Grid
from studio.widgets.source import Source
from tests.studio.conftest import studio_on, until


@asynccontextmanager
async def calling(
    path: Path, tool: str, *, size: tuple[int, int] = (120, 36)
) -> AsyncIterator[tuple[Studio, Pilot[None], CallScreen]]:
    """The call screen of the airline with a tool chosen."""
    async with studio_on(path, size=size) as (studio, pilot):
        await pilot.press("c")
        await until(pilot, lambda: isinstance(studio.screen, CallScreen))
        screen = studio.screen
        await until(pilot, lambda: screen.query_one("#tool", Select).value == "list_bags")
        await choose(pilot, screen, tool)
        yield studio, pilot, screen


async def choose(pilot: Pilot[None], screen: CallScreen, tool: str) -> None:
    names = {"list_bags": ["status"], "create_claim": ["bag_id", "amount"]}.get(tool, [])
    screen.query_one("#tool", Select).value = tool
    form = screen.query_one(ArgumentForm)
    await until(pilot, lambda: [row.field.name for row in form.rows] == names)
    await until(pilot, lambda: screen.focused is not None and (not names or screen.focused is form.rows[0].editor))


async def call(pilot: Pilot[None], screen: CallScreen, calls: int) -> None:
    """Make the call in the form; it is call number `calls`."""
    await pilot.press("f5")
    await until(pilot, lambda: screen.session and len(screen.session.steps) == calls and not screen.busy)


def reply(screen: CallScreen) -> str:
    return str(screen.query_one("#reply").render())


def fill_in(screen: CallScreen, **values: str) -> None:
    for row in screen.query_one(ArgumentForm).rows:
        if row.field.name in values:
            row.text = values[row.field.name]


async def test_a_call_shows_its_result_and_what_it_changed_cell_by_cell(small_world: Path) -> None:
    async with calling(small_world, "create_claim") as (_, pilot, screen):
        await pilot.press("2", "tab", *"250", "enter")
        await until(pilot, lambda: screen.session.steps)
        await until(pilot, lambda: "✓ 200" in reply(screen))
        assert '"amount": 250' in screen.query_one("#result Source", Source).text
        rows = screen.query_one(Changes).rows
        assert [(row.table, row.what, row.key, row.column, row.before, row.after) for row in rows] == [
            ("bags", "changed", "id=2", "status", "lost", "claimed"),
            ("claims", "added", "new row", "id", "", "1"),
            ("claims", "added", "", "bag_id", "", "2"),
            ("claims", "added", "", "amount", "", "250"),
        ]


async def test_values_come_from_the_rows_of_the_database(small_world: Path) -> None:
    async with calling(small_world, "create_claim") as (studio, pilot, screen):
        bag, amount = screen.query_one(ArgumentForm).rows
        assert bag.editor.placeholder == "1 Ada Lovelace · 2 Grace Hopper · 3 陳美玲 🧳"
        assert amount.editor.placeholder == "default 100"
        await pilot.press("f2")
        await until(pilot, lambda: studio.screen is not screen)
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: studio.screen is screen)
        assert bag.text == "3"


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({}, "bag_id is needed"),
        ({"bag_id": "two"}, "bag_id must be a whole number; 'two' is not"),
        ({"bag_id": "2", "amount": "1.5"}, "amount must be a whole number"),
    ],
)
async def test_a_wrong_field_is_named_and_nothing_is_called(
    small_world: Path, values: dict[str, str], problem: str
) -> None:
    async with calling(small_world, "create_claim") as (_, pilot, screen):
        fill_in(screen, **values)
        await pilot.press("f5")
        await pilot.pause()
        said = [str(widget.render()) for widget in screen.query(".field-problem") if widget.display]
        assert len(said) == 1
        assert problem in said[0]
        assert screen.session.steps == []


async def test_a_failing_tool_shows_what_an_agent_is_told_and_what_happened(small_world: Path) -> None:
    async with calling(small_world, "break_down") as (_, pilot, screen):
        await call(pilot, screen, 1)
        text = screen.query_one("#result Source", Source).text
        assert "✗ 500 server_error" in reply(screen)
        assert "Internal Server Error" in text
        assert "the conveyor is stuck" in text
        assert screen.query_one(Changes).rows == []


async def test_a_tool_that_hangs_is_given_up_and_the_studio_goes_on(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        studio.live._workspace = studio.workspace.__class__(
            studio.workspace.path, studio.workspace.catalog, Settings(call_timeout_s=0.5)
        )
        await pilot.press("c")
        await until(pilot, lambda: isinstance(studio.screen, CallScreen))
        screen = studio.screen
        await until(pilot, lambda: screen.query_one("#tool", Select).value == "list_bags")
        await choose(pilot, screen, "wait_forever")
        await pilot.press("f5")
        await until(pilot, lambda: "calling wait_forever" in reply(screen))
        await pilot.press("f1")
        await until(pilot, lambda: studio.screen is not screen)
        await pilot.press("escape")
        await until(pilot, lambda: "timeout" in reply(screen))
        await choose(pilot, screen, "list_bags")
        await call(pilot, screen, 2)
        assert "✓ 200" in reply(screen)


async def test_a_call_that_takes_too_long_is_stopped_with_f4_and_leaves_no_step(small_world: Path) -> None:
    async with calling(small_world, "create_claim") as (_, pilot, screen):
        await pilot.press("f4")
        assert screen.session is not None
        assert screen.session.steps == []
        await choose(pilot, screen, "wait_forever")
        await pilot.press("f5")
        await until(pilot, lambda: "F4 stops it" in reply(screen))
        while "interrupted" not in reply(screen):
            await pilot.press("f4")
        assert "✗ 499 interrupted" in reply(screen)
        assert screen.session.steps == []
        await choose(pilot, screen, "list_bags")
        await call(pilot, screen, 1)
        assert "✓ 200" in reply(screen)


async def test_history_goes_back_to_any_point_and_on_from_there(small_world: Path) -> None:
    async with calling(small_world, "create_claim") as (_, pilot, screen):
        fill_in(screen, bag_id="2")
        await call(pilot, screen, 1)
        fill_in(screen, bag_id="3")
        await call(pilot, screen, 2)
        both = screen.session.snapshot
        await pilot.press("f6")
        assert screen.session.point == 1
        assert screen.session.snapshot != both
        screen.query_one("#answers", TabbedContent).active = "history"
        await pilot.pause()
        steps = screen.query_one("#steps", Grid)
        steps.focus()
        await pilot.press("end", "enter")
        assert screen.session.point == 2
        form = screen.query_one(ArgumentForm)
        await until(pilot, lambda: [row.text for row in form.rows] == ["3", ""])
        assert screen.focused is steps
        assert screen.session.snapshot == both
        await pilot.press("home", "enter")
        assert screen.session.snapshot == screen.session.initial
        await choose(pilot, screen, "list_bags")
        await call(pilot, screen, 1)
        assert screen.session.calls == (Call("list_bags", {}),), "what was undone is forgotten"
        assert '"lost"' in screen.query_one("#result Source", Source).text
        await pilot.press("f7")
        assert screen.session.steps == []


async def test_a_task_is_verified_with_what_the_verifier_looked_at_and_saved(workspace: Path) -> None:
    async with calling(workspace, "create_claim") as (studio, pilot, screen):
        await pilot.press("f8")
        await until(pilot, lambda: isinstance(studio.screen, FinishScreen))
        dialog = studio.screen
        dialog.query_one("#task", Select).value = 0
        await pilot.press("f8")
        verdict = dialog.query_one("#verdict", Source)
        await until(pilot, lambda: verdict.text.startswith("✗ others: not done as the verifier sees it"))
        assert "SELECT amount FROM claims" in verdict.text
        assert "final" in verdict.text
        await pilot.press("escape")
        await until(pilot, lambda: studio.screen is screen)

        fill_in(screen, bag_id="2", amount="250")
        await call(pilot, screen, 1)
        await pilot.press("f8")
        await until(pilot, lambda: isinstance(studio.screen, FinishScreen))
        dialog = studio.screen
        dialog.query_one("#task", Select).value = 0
        dialog.query_one("#answer", Input).value = "done"
        await pilot.press("f8")
        verdict = dialog.query_one("#verdict", Source)
        await until(pilot, lambda: "✓ complete" in verdict.text)
        await pilot.press("ctrl+s")
        with Catalog.open(workspace / "catalog.db") as catalog:
            await until(pilot, lambda: catalog.environment("airline_lost_baggage").solution(0))
            solution = catalog.environment("airline_lost_baggage").solution(0)
            [version] = catalog.versions("airline_lost_baggage", "solution", "0")
        assert solution.calls == (Call("create_claim", {"bag_id": 2, "amount": 250}),)
        assert solution.answer == "done"
        assert version.author.kind == AuthorKind.person


async def test_calls_that_the_verifier_rejects_are_saved_as_a_solution_only_when_that_is_meant(workspace: Path) -> None:
    async with calling(workspace, "list_bags") as (studio, pilot, screen):
        await call(pilot, screen, 1)
        await pilot.press("f8")
        await until(pilot, lambda: isinstance(studio.screen, FinishScreen))
        dialog = studio.screen
        dialog.query_one("#task", Select).value = 0
        with Catalog.open(workspace / "catalog.db") as catalog:
            for choice, kept in (("enter", 0), ("down", 1)):
                await pilot.press("ctrl+s")
                await until(pilot, lambda: isinstance(studio.screen, ChooseScreen))
                await pilot.press(choice, *(["enter"] if choice == "down" else []))
                await until(pilot, lambda: studio.screen is dialog)
                await until(pilot, lambda: not studio.workers)
                assert len(catalog.versions("airline_lost_baggage", "solution", "0")) == kept
                assert screen.session.is_kept == bool(kept)


async def test_the_form_and_the_results_share_a_narrow_screen(small_world: Path) -> None:
    async with calling(small_world, "create_claim", size=(80, 24)) as (_, _pilot, screen):
        asked, answered = screen.query_one("#asked").region, screen.query_one("#answered").region
        assert asked.width == answered.width == 80
        assert answered.y >= asked.bottom


async def test_the_catalog_is_untouched_by_calls(workspace: Path) -> None:
    with Catalog.open(workspace / "catalog.db") as catalog:
        before = catalog.current("airline_lost_baggage")
        async with calling(workspace, "create_claim") as (_, pilot, screen):
            fill_in(screen, bag_id="2")
            await call(pilot, screen, 1)
        assert catalog.current("airline_lost_baggage") == before


async def test_c_calls_the_tool_under_the_cursor_of_the_tools_tab(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        tools = studio.screen.detail.open("tools")
        await until(pilot, lambda: len(tools.grid.rows) == 4)
        tools.grid.focus()
        await pilot.press("down", "c")
        await until(pilot, lambda: isinstance(studio.screen, CallScreen))
        await until(pilot, lambda: studio.screen.query_one("#tool", Select).value == "create_claim")


async def test_digits_typed_beside_the_fields_do_not_leave_the_form(small_world: Path) -> None:
    async with calling(small_world, "create_claim") as (studio, pilot, screen):
        fill_in(screen, bag_id="2")
        screen.query_one("#steps", Grid).focus()
        await pilot.press(*"2026")
        assert studio.screen is screen
        assert [row.text for row in screen.query_one(ArgumentForm).rows] == ["2", ""]


async def test_escape_asks_before_it_forgets_calls(small_world: Path) -> None:
    async with calling(small_world, "list_bags") as (studio, pilot, screen):
        await call(pilot, screen, 1)
        for answer, left in ((("enter",), False), (("down", "enter"), True)):
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(studio.screen, ChooseScreen))
            await pilot.press(*answer)
            await until(pilot, lambda: not isinstance(studio.screen, ChooseScreen))
            assert (studio.screen is not screen) == left


async def test_escape_does_not_ask_where_the_calls_are_a_solution_now(workspace: Path) -> None:
    async with calling(workspace, "list_bags") as (studio, pilot, screen):
        await call(pilot, screen, 1)
        screen.session.kept = tuple(screen.session.steps)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(studio.screen, EnvironmentsScreen))


async def test_after_undo_the_first_field_has_the_keyboard_and_its_values(small_world: Path) -> None:
    async with calling(small_world, "create_claim") as (studio, pilot, screen):
        fill_in(screen, bag_id="2")
        await call(pilot, screen, 1)
        await choose(pilot, screen, "list_bags")
        await call(pilot, screen, 2)
        await pilot.press("f6")
        form = screen.query_one(ArgumentForm)
        await until(pilot, lambda: [row.text for row in form.rows] == ["2", ""])
        await until(pilot, lambda: screen.focused is form.rows[0].editor)
        await pilot.press("f2")
        await until(pilot, lambda: isinstance(studio.screen, ChooseScreen))
        assert studio.screen.query_one(OptionList).option_count == 3


@pytest.mark.parametrize("width", [80, 60, 120])
async def test_the_keys_for_help_and_for_everything_are_always_shown(small_world: Path, width: int) -> None:
    async with calling(small_world, "create_claim", size=(120, 24)) as (_, pilot, screen):
        await pilot.resize_terminal(width, 24)

        def shown() -> list[str]:
            return [key.action for key in screen.query(FooterKey) if key.region.right <= width]

        await until(pilot, lambda: shown()[-2:] == ["help", "command_palette"])
        await until(pilot, lambda: len(shown()) == len(screen.query(FooterKey)))
