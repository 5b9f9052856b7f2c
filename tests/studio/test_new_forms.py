"""The forms for something new: whatever is typed is answered in a sentence, and what is started is started once."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input, Static

from studio.app import Studio
from studio.screens.new import NewScreen
from studio.screens.new_run import NewRunScreen
from tests.studio.conftest import studio_on, until


class Held(NewScreen[int]):
    """A form that takes as long to start something as a test wants; what was started is counted."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.started = 0

    def compose(self) -> Any:
        yield Input(id="new-steps")
        yield from self.ending()

    def taken(self) -> str:
        return "Little."

    def answer(self) -> int:
        self.started += 1
        before = self.typed("steps")
        assert self.go.wait(30)
        assert self.typed("steps") == before
        return self.started


class Unwritable(Held):
    """A form that starts something where nothing can be written."""

    def answer(self) -> int:
        raise PermissionError(13, "Permission denied", "/somewhere/runs")


def problem(studio: Studio) -> str:
    return str(studio.screen.query_one("#new-problem", Static).content)


async def test_what_is_typed_is_refused_in_a_sentence(small_world: Path) -> None:
    typed = {
        "count": ("²", "9" * 5000, "0", "-1", "1.5"),
        "budget": ("1²", ".", "nan"),
        "seeds": ("~nobody-of-this-name/seeds.jsonl", "x" * 5000, "/nowhere/seeds.jsonl"),
        "gate": ("[bold]", "database:[/]"),
    }
    async with studio_on(small_world) as (studio, pilot):
        await studio.push_screen(NewRunScreen())
        for name, values in typed.items():
            line = studio.screen.query_one(f"#new-{name}", Input)
            usual = line.value
            for value in values:
                line.value = value
                await pilot.press("ctrl+s")
                await until(pilot, lambda: problem(studio))
                studio.screen.query_one("#new-problem", Static).update("")
            line.value = usual


@pytest.mark.parametrize("keys", [("enter", "enter", "enter"), ("ctrl+s", "ctrl+s"), ("enter", "escape"), ("enter",)])
async def test_what_is_started_is_started_once_and_answered(small_world: Path, keys: tuple[str, ...]) -> None:
    answers: list[int | None] = []
    async with studio_on(small_world) as (studio, pilot):
        form = Held()
        await studio.push_screen(form, answers.append)
        await pilot.press("3", *keys)
        await until(pilot, lambda: form.started)
        form._look()  # as when what was typed has settled meanwhile
        await pilot.press("4")
        form.go.set()
        await until(pilot, lambda: answers)
        assert (answers, form.started) == ([1], 1)
        assert studio.screen is not form


async def test_a_folder_that_cannot_be_written_to_is_said_in_the_form(small_world: Path) -> None:
    async with studio_on(small_world) as (studio, pilot):
        await studio.push_screen(Unwritable())
        await pilot.press("ctrl+s")
        await until(pilot, lambda: "Permission denied" in problem(studio))


async def test_a_file_that_cannot_be_used_is_told_and_ends_nothing(small_world: Path) -> None:
    def full() -> None:
        raise OSError(28, "No space left on device", "/somewhere/report.csv")

    async with studio_on(small_world) as (studio, pilot):
        assert await studio.ask(full) is None
        said = "/somewhere/report.csv cannot be used: No space left on device."
        await until(pilot, lambda: said in [note.message for note in studio._notifications])
