"""Environments: finding them in the list, and looking into them."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import TabPane

from pipeline.catalog import Catalog
from pipeline.model import Part
from studio.screens.edit_task import EditTaskScreen
from studio.screens.environments import EnvironmentsScreen
from studio.widgets.environment.findings import place
from studio.widgets.environment.tables import Tables
from studio.widgets.environment.tools import Tools
from studio.widgets.filter_bar import FilterBar
from studio.widgets.grid import Grid
from studio.widgets.source import Source
from tests.studio.conftest import studio_on, until
from tests.studio.worlds import BY_TEST


def listed(screen: EnvironmentsScreen) -> list[str]:
    return [row.name for row in screen.grid.rows]


def screen_of(studio) -> EnvironmentsScreen:
    assert isinstance(studio.screen, EnvironmentsScreen)
    return studio.screen


ALL = ["airline_lost_baggage", "bike_fleet", "film_festival", "museum_loans"]


async def test_all_environments_are_listed_by_title_and_the_first_is_shown(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, _):
        screen = screen_of(studio)
        assert listed(screen) == ALL
        assert screen.detail.dossier.env.name == "airline_lost_baggage"


async def test_a_filter_narrows_the_list_while_it_is_typed(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        screen = screen_of(studio)
        await pilot.press("slash", *"domain", "colon", *"travel")
        assert listed(screen) == ["airline_lost_baggage", "bike_fleet"]
        await pilot.press("space", *"tables", "greater_than_sign", "4")
        assert listed(screen) == ["bike_fleet"]
        await pilot.press("enter")
        assert screen.focused is screen.grid
        await pilot.press("escape")
        assert listed(screen) == ALL


async def test_a_term_that_cannot_be_read_is_explained_and_the_others_hold(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        screen = screen_of(studio)
        await pilot.press("slash", *"bike", "space", *"tabels", "greater_than_sign", "4")
        problem = screen.query_one("#filter-problem")
        assert problem.display
        assert "tabels" in str(problem.render())
        assert "tables" in str(problem.render())
        assert listed(screen) == ["bike_fleet"]
        await pilot.press("escape")
        assert not problem.display


async def test_the_cursor_stays_on_its_environment_when_the_list_changes(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        screen = screen_of(studio)
        await pilot.press("down", "down", "down")
        assert screen.current.name == "museum_loans"
        await pilot.press("slash", *"culture", "enter")
        assert screen.current.name == "museum_loans"


async def test_any_column_sorts_and_a_second_time_turns_it_round(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        screen = screen_of(studio)
        await pilot.press("s", *["down"] * 3, "enter")
        assert screen.grid.sorted_by[0] == "tables"
        assert listed(screen) == ["museum_loans", "bike_fleet", "film_festival", "airline_lost_baggage"], (
            "numbers: most first"
        )
        await pilot.press("s", "enter")
        assert screen.grid.sorted_by == ("tables", False)
        assert listed(screen)[0] == "airline_lost_baggage"


async def test_what_is_unknown_comes_last_however_it_is_sorted(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, _):
        screen = screen_of(studio)
        for _ in range(2):
            screen._sort_by("tools")
            assert listed(screen)[0] == "airline_lost_baggage", "the only one with known tools"


async def test_a_click_on_a_heading_sorts_by_it(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        screen = screen_of(studio)
        await pilot.click("#list", offset=(4, 0))
        assert screen.grid.sorted_by == ("name", True)
        assert listed(screen) == ALL[::-1]


async def test_marks_are_counted_and_survive_a_filter(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        screen = screen_of(studio)
        await pilot.press("x", "x")
        await pilot.press("slash", *"museum", "enter", "x", "escape")
        assert screen.marks == {"airline_lost_baggage", "bike_fleet", "museum_loans"}
        assert "3 marked" in str(screen.query_one("#count").render())
        await pilot.press("X")
        assert screen.marks == set(ALL)
        await pilot.press("X")
        assert screen.marks == set()


async def test_what_others_write_to_the_catalog_appears_by_itself(workspace: Path) -> None:
    async with studio_on(workspace) as (studio, pilot):
        screen = screen_of(studio)
        with Catalog.open(workspace / "catalog.db") as elsewhere:
            elsewhere.put("zoo", Part.tasks, '["Feed the seals."]', author=BY_TEST, title="Zoo")
        await until(pilot, lambda: "zoo" in listed(screen))
        assert screen.current.name == "airline_lost_baggage"


async def test_enter_goes_into_the_details_and_escape_comes_back(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        screen = screen_of(studio)
        await pilot.press("enter")
        await until(pilot, lambda: screen.detail.has_focus_within)
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: isinstance(screen.focused, Grid))
        assert screen.focused.row.text == "Claim 250 euros for the bag of Grace Hopper."
        await pilot.press("escape")
        assert screen.focused is screen.grid


async def test_in_a_narrow_terminal_the_details_take_the_place_of_the_list(small_world: Path) -> None:
    async with studio_on(small_world, size=(80, 24)) as (studio, pilot):
        screen = screen_of(studio)
        assert not screen.detail.display
        await pilot.press("enter")
        await until(pilot, lambda: screen.detail.display)
        assert not screen.grid.display
        await pilot.press("escape")
        assert screen.grid.display
        assert not screen.detail.display


async def test_tables_show_rows_with_their_values_and_the_columns_with_their_keys(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        screen = screen_of(studio)
        tables = screen.detail.open("tables")
        assert isinstance(tables, Tables)
        grid, rows = tables.query_one("#tables", Grid), tables.query_one("#rows", Grid)
        await until(pilot, lambda: len(rows.rows) == 3)
        assert [table.name for table in grid.rows] == ["bags", "claims"]
        assert rows.rows[2] == (3, "陳美玲 🧳", "lost")
        grid.focus()
        await pilot.press("down", "t")
        columns = tables.query_one("#columns", Grid).rows
        assert [(column.name, column.type, column.key, column.refers_to) for column in columns] == [
            ("id", "INTEGER", 1, ""),
            ("bag_id", "INTEGER", 0, "bags.id"),
            ("amount", "INTEGER", 0, ""),
        ]
        await pilot.press("t")
        assert "CREATE TABLE claims" in tables.query_one("#ddl", Source).text


async def test_tools_are_those_of_the_loaded_program_and_lead_to_their_code(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        screen = screen_of(studio)
        tools = screen.detail.open("tools")
        assert isinstance(tools, Tools)
        await until(pilot, lambda: len(tools.grid.rows) == 4)
        await until(pilot, lambda: "list_bags" in tools.source.text)
        tools.grid.focus()
        await pilot.press("down")
        await until(pilot, lambda: "create_claim" in tools.source.text)
        for expected in (
            "bag_id *",
            "integer, 1 to 1000  default 100",
            "The bag that was lost",
            "What a model is told",
        ):
            assert expected in tools.source.text
        await pilot.press("f")
        await until(pilot, lambda: screen.detail.pane.id is None and isinstance(screen.focused, Source))
        line = screen.focused.text.splitlines()[screen.focused.marked - 1]
        assert "create_claim" in line


async def test_findings_say_what_to_do(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        screen = screen_of(studio)
        await pilot.press("down", "down", "down")
        await until(pilot, lambda: screen.detail.dossier.env.name == "museum_loans")
        findings = screen.detail.open("findings")
        await until(pilot, lambda: "Insert the rows" in findings.source.text)
        assert "3 rows refer" in findings.source.text


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("schema: bags", ("tables", "bags")),
        ("sample: bags row 3 (statement 7)", ("tables", "bags")),
        ("spec: list_bags", ("tools", "list_bags")),
        ("code: list_bags", ("tools", "list_bags")),
        ("code:123", ("code", "123")),
        ("code", ("code", "")),
        ("verifier: 3/code", ("verifiers", "3/code")),
        ("tasks", ("tasks", "")),
        ("elsewhere", ("", "")),
    ],
)
def test_a_finding_leads_to_a_place(where: str, expected: tuple[str, str]) -> None:
    assert place(where) == expected


async def test_enter_on_a_finding_goes_to_its_place(workspace: Path) -> None:
    async with studio_on(workspace) as (studio, pilot):
        screen = screen_of(studio)
        await pilot.press("end")
        await until(pilot, lambda: screen.detail.dossier.env.name == "museum_loans")
        findings = screen.detail.open("findings")
        await until(pilot, lambda: findings.grid.rows)
        findings.grid.focus()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(screen.detail.pane, Tables))
        tables = screen.detail.pane.query_one("#tables", Grid)
        await until(pilot, lambda: tables.row and tables.row.name == "t3")


async def test_a_late_word_that_a_tab_has_the_keyboard_does_not_turn_back_to_it(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        detail = screen_of(studio).detail
        detail.open("findings")
        left = detail.pane.parent
        assert isinstance(left, TabPane)
        detail.open("tables")
        left.post_message(TabPane.Focused(left))
        await pilot.pause()
        assert isinstance(detail.pane, Tables)


async def test_v_checks_and_the_result_appears(workspace: Path) -> None:
    async with studio_on(workspace) as (studio, pilot):
        screen = screen_of(studio)
        await pilot.press("down")
        await until(pilot, lambda: screen.detail.dossier.env.name == "bike_fleet")
        assert screen.current.check == "pass"
        await pilot.press("v")
        await until(pilot, lambda: screen.current.check == "fail", seconds=90)
        await until(pilot, lambda: screen.detail.dossier.findings)
        assert "there is no code part" in {finding.message for finding in screen.detail.dossier.findings}
        await until(pilot, lambda: studio.runs and studio.runs[0].state == "done")
        assert (studio.runs[0].kind, studio.runs[0].result) == ("check", {"pass": 0, "warn": 0, "fail": 1})


async def test_an_environment_without_code_says_so_instead_of_tools(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        screen = screen_of(studio)
        await pilot.press("down")
        await until(pilot, lambda: screen.detail.dossier.env.name == "bike_fleet")
        tools = screen.detail.open("tools")
        await until(pilot, lambda: "has no code" in tools.grid.empty)


async def test_y_copies_what_is_under_the_cursor(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        await pilot.press("y")
        assert studio.clipboard.startswith("Airline: lost baggage\t")


async def test_the_filter_bar_keeps_the_keys_of_the_list_to_itself(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        screen = screen_of(studio)
        await pilot.press("slash", "x", "y", "2")
        assert screen.query_one(FilterBar).text == "xy2"
        assert screen.marks == set()


async def test_nothing_is_said_about_rows_while_the_database_is_built(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        tables = screen_of(studio).detail.open("tables")
        rows = tables.query_one("#rows", Grid)
        assert rows.empty == ""
        await until(pilot, lambda: len(rows.rows) == 3)
        tables.query_one("#tables", Grid).focus()
        await pilot.press("down")
        await until(pilot, lambda: not len(rows.rows))
        assert rows.empty == "This table has no rows."


def is_seen(screen: EnvironmentsScreen) -> bool:
    return screen.focused is not None and all(node.display for node in screen.focused.ancestors_with_self)


async def test_after_the_filter_the_list_has_the_keyboard_and_after_a_tab_what_the_tab_shows(small_world: Path) -> None:
    async with studio_on(small_world, size=(80, 24)) as (studio, pilot):
        screen = screen_of(studio)
        await pilot.press("slash", *"travel", "enter")
        assert screen.focused is screen.grid
        await pilot.press("right_square_bracket")
        await until(
            pilot, lambda: screen.detail.display and screen.focused is screen.detail.pane.grid and is_seen(screen)
        )
        await pilot.press("down")
        assert screen.detail.pane.grid.row.number == 1
        await pilot.press("e")
        await until(pilot, lambda: isinstance(studio.screen, EditTaskScreen))


async def test_the_keyboard_is_never_in_a_pane_that_a_resize_has_hidden(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        screen = screen_of(studio)
        await pilot.press("enter", "right_square_bracket")
        await until(pilot, lambda: screen.focused is screen.detail.pane.grid)
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: screen.has_class("-narrow") and screen.focused is screen.detail.pane.grid)
        await until(pilot, lambda: is_seen(screen))
        await pilot.press("down")
        assert screen.detail.pane.grid.row.number == 1
