"""The shell: modes, help, palette, keymap, themes, workspaces that cannot be used."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from textual.command import CommandPalette

from pipeline.catalog import Catalog
from pipeline.model import Part
from studio import themes
from studio.actions import ACTIONS, SCOPES, KeymapError, bindings, read_keymap
from studio.app import Studio
from studio.screens import MODES
from studio.screens.environments import EnvironmentsScreen
from studio.screens.help import HelpScreen
from studio.screens.problem import ProblemScreen
from studio.widgets.masthead import Masthead
from tests.studio.conftest import studio_on, until
from tests.studio.worlds import BY_TEST


async def test_every_mode_is_one_key_away_and_one_click(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        for mode in reversed(MODES):
            await pilot.press(mode.key)
            assert studio.current_mode == mode.name
            assert studio.screen.query_one(Masthead).here == mode.name
        before = [f" {mode.key} {mode.title} " for mode in MODES[: [mode.name for mode in MODES].index("activity")]]
        await pilot.click(Masthead, offset=(len("".join(before)) + 2, 0))
        assert studio.current_mode == "activity"


async def test_help_names_every_action_of_the_screen(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        await pilot.press("question_mark")
        await until(pilot, lambda: isinstance(studio.screen, HelpScreen))
        shown = studio.export_screenshot()
        await pilot.press("end")
        await pilot.pause()
        shown += studio.export_screenshot()
        text = re.sub(r"<[^>]+>|&#160;", " ", shown)
        for action in ACTIONS:
            if action.scope == "environments":
                assert action.label.split()[0] in text, action.id
        await pilot.press("escape")
        assert isinstance(studio.screen, EnvironmentsScreen)


async def test_the_palette_runs_any_action_by_name(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        commands = {command.title: command for command in studio.get_system_commands(studio.screen)}
        wanted = {action.label for action in ACTIONS if action.scope in ("app", "environments") and action.palette}
        assert {title.partition("  (")[0] for title in commands} == wanted
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(studio.screen, CommandPalette))
        await pilot.press(*"mark", "space", *"all")
        await until(pilot, lambda: studio.screen.query_one("CommandList").option_count)
        await pilot.press("enter", "enter")
        await until(pilot, lambda: isinstance(studio.screen, EnvironmentsScreen) and len(studio.screen.marks) == 4)


async def test_quitting_works_while_typing(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        await pilot.press("slash", "a", "ctrl+q")
        await until(pilot, lambda: studio._exit)


async def test_a_keymap_moves_an_action_to_another_key(small_world: Path) -> None:
    async with studio_on(small_world, keymap={"environments.mark": "m"}) as (studio, pilot):
        await pilot.press("m")
        assert studio.screen.marks == {"airline_lost_baggage"}
        await pilot.press("x")
        assert studio.screen.marks == {"airline_lost_baggage"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('"environments.mrk" = "m"', ["environments.mrk", "environments.mark"]),
        ('"environments.mark" = 3', ["environments.mark", "quotes"]),
        ("environments.mark", ["cannot be read", "Expected '='"]),
    ],
)
def test_a_keymap_that_cannot_be_used_says_where_and_why(tmp_path: Path, text: str, words: list[str]) -> None:
    (tmp_path / "keymap.toml").write_text(text)
    with pytest.raises(KeymapError) as caught:
        read_keymap(tmp_path / "keymap.toml")
    for word in words:
        assert word in str(caught.value)


def test_a_keymap_need_not_exist(tmp_path: Path) -> None:
    assert read_keymap(tmp_path / "keymap.toml") == {}


def test_every_action_is_carried_out_by_somebody() -> None:
    """Each scope is listed by a class that has a method for each of its actions."""
    import importlib
    import pkgutil

    import studio

    classes = [Studio]
    for module in pkgutil.walk_packages(studio.__path__, "studio."):
        if module.name.startswith(("studio.screens.", "studio.widgets.")):
            classes += [
                thing for thing in vars(importlib.import_module(module.name)).values() if isinstance(thing, type)
            ]
    for scope in SCOPES:
        ids = {binding.id for binding in bindings(scope)}
        owners = [
            owner
            for owner in classes
            if ids <= {getattr(binding, "id", None) for binding in owner.__dict__.get("BINDINGS", ())}
        ]
        assert owners, f"nobody has the keys of {scope}"
        for action in ACTIONS:
            if action.scope == scope and not action.call:
                assert hasattr(owners[0], f"action_{action.name}"), f"{owners[0].__name__} cannot {action.id}"


def test_no_key_does_two_things_at_once() -> None:
    """Within a scope, and between a screen's scope and what works everywhere."""
    for scope in SCOPES:
        keys = [key for action in ACTIONS if action.scope == scope for key in action.keys.split(",")]
        assert len(keys) == len(set(keys)), scope
    everywhere = {key for action in ACTIONS if action.scope == "app" for key in action.keys.split(",")}
    for action in ACTIONS:
        if action.scope not in ("app", "page"):
            assert not everywhere & set(action.keys.split(",")), action.id


@pytest.mark.parametrize("key", ["ctrl+h", "ctrl+i", "ctrl+j", "ctrl+m", "ctrl+c", "ctrl+z"])
def test_keys_that_terminals_use_for_something_else_are_left_alone(key: str) -> None:
    assert not [action.id for action in ACTIONS if key in action.keys.split(",")]


@pytest.mark.parametrize(
    ("choice", "is_light", "colours", "expected"),
    [
        ("auto", None, "truecolor", "dark"),
        ("auto", False, "256", "dark"),
        ("auto", True, "truecolor", "light"),
        ("auto", True, "standard", "ansi-light"),
        ("auto", None, "standard", "ansi-dark"),
        ("terminal", True, "truecolor", "ansi-light"),
        ("high-contrast", True, "truecolor", "high-contrast"),
    ],
)
def test_a_theme_follows_the_choice_and_the_terminal(
    choice: str, is_light: bool | None, colours: str, expected: str
) -> None:
    assert themes.resolve(choice, is_light=is_light, colours=colours) == expected


@pytest.mark.parametrize(
    ("answer", "is_light"),
    [
        (b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?1;2c", True),
        (b"\x1b]11;rgb:1e/1e/2e\x07", False),
        (b"\x1b[?1;2c", None),
        (b"", None),
    ],
)
def test_the_answer_of_a_terminal_is_read(answer: bytes, is_light: bool | None) -> None:
    assert themes.brightness(answer) is is_light


@pytest.mark.parametrize(("colorfgbg", "is_light"), [("0;15", True), ("15;0", False), ("15;default;0", False)])
def test_colorfgbg_is_believed(monkeypatch: pytest.MonkeyPatch, colorfgbg: str, is_light: bool) -> None:
    monkeypatch.setenv("COLORFGBG", colorfgbg)
    assert themes.background_is_light() is is_light


@pytest.mark.parametrize("theme", [*(theme.name for theme in themes.THEMES), "ansi-dark", "ansi-light"])
async def test_every_theme_can_be_worn(small_world: Path, theme: str) -> None:
    async with studio_on(small_world) as (studio, pilot):
        studio.theme = theme
        await pilot.pause()
        assert "Airline" in studio.export_screenshot()


# Workspaces that cannot be used


async def test_a_folder_that_is_no_workspace_says_what_to_do_and_waits(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "cat.jpg").write_bytes(b"")
    async with studio_on(folder, wait=False) as (studio, pilot):
        await until(pilot, lambda: isinstance(studio.screen, ProblemScreen))
        text = str(studio.screen.query_one("#problem-text").render())
        assert "photos is not a workspace" in text
        assert "--workspace" in text
        (folder / "cat.jpg").unlink()
        await until(pilot, lambda: studio.workspace and not isinstance(studio.screen, ProblemScreen))


async def test_a_catalog_of_a_newer_version_says_what_to_do(workspace: Path) -> None:
    with sqlite3.connect(workspace / "catalog.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    async with studio_on(workspace, wait=False) as (studio, pilot):
        await until(pilot, lambda: isinstance(studio.screen, ProblemScreen))
        assert "newer awm-studio" in str(studio.screen.query_one("#problem-text").render())


async def test_a_catalog_deleted_meanwhile_is_told_and_the_list_stays(workspace: Path) -> None:
    async with studio_on(workspace) as (studio, pilot):
        for path in workspace.glob("catalog.db*"):
            path.rename(path.with_name(f"kept-{path.name}"))
        await until(pilot, lambda: "cannot be read" in studio.note)
        screen = studio.screen
        await pilot.press("slash", *"bike", "enter")
        assert [row.name for row in screen.grid.rows] == ["bike_fleet"]
        for path in workspace.glob("kept-*"):
            path.rename(workspace / path.name.removeprefix("kept-"))
        await until(pilot, lambda: studio.note == workspace.name)
        with Catalog.open(workspace / "catalog.db") as elsewhere:
            elsewhere.put("bike_shop", Part.tasks, '["Mend it."]', author=BY_TEST, title="Bike shop")
        await until(pilot, lambda: len(screen.grid.rows) == 2)


@pytest.mark.parametrize("size", [(40, 10), (20, 5), (80, 24), (200, 50)])
async def test_any_size_of_terminal_will_do(small_world: Path, size: tuple[int, int]) -> None:
    async with studio_on(small_world, size=size) as (studio, pilot):
        for key in (
            "enter",
            "right_square_bracket",
            "right_square_bracket",
            "escape",
            "question_mark",
            "escape",
            "7",
            "8",
            "2",
        ):
            await pilot.press(key)
        await pilot.resize_terminal(50, 12)
        await pilot.pause()
        assert studio.current_mode == "environments"


# What is imported when


def modules_after(code: str) -> set[str]:
    report = f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"
    return set(
        subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True).stdout.split()
    )


def test_the_first_paint_waits_for_nothing_heavy() -> None:
    loaded = modules_after("import studio.app, studio.screens.environments; studio.app.Studio()")
    for heavy in ("sqlalchemy", "fastapi", "datasette", "mcp", "openai", "torch", "numpy"):
        assert heavy not in loaded, heavy


def test_help_of_the_command_line_loads_no_interface() -> None:
    loaded = modules_after("import studio.cli; studio.cli.awm_studio.main(['--help'], standalone_mode=False)")
    for heavy in ("textual", "sqlalchemy", "pydantic"):
        assert heavy not in loaded, heavy


def test_no_domain_code_imports_the_interface() -> None:
    loaded = modules_after(
        "import pkgutil, importlib, pipeline.catalog, pipeline.workspace, curation.filters, curation.importers"
    )
    assert not [name for name in loaded if name == "textual" or name.startswith(("studio", "textual."))]
