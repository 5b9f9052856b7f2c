"""Makes the README's pictures from the real app: `make pictures`.

The workspace is made here by rules, checked and audited by nobody but `awm-studio check`, and its times are set to
one moment, so that the pictures change only when the studio does.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Input, Select, TabbedContent

from pipeline.model import Call
from pipeline.settings import Settings
from studio.app import Studio
from studio.schema_fields import written
from studio.screens.call import CallScreen
from studio.screens.concepts import ConceptsScreen
from studio.screens.environments import EnvironmentsScreen
from studio.screens.finish import FinishScreen
from studio.widgets.form import ArgumentForm
from studio.widgets.source import Source
from tests.studio import run_pictures, train_pictures
from tests.studio.conftest import until

COUNT = 24
MANY = 120
"""Environments on the picture of concepts: enough that every domain has several."""
SIZE = (120, 34)
MOMENT = "2026-01-05T09:30:00+00:00"


def make_workspace(folder: Path) -> None:
    """Environments made by rules, with the results of their checks."""
    for arguments in (["synth", "--offline", "--count", str(COUNT)], ["check", "--all"]):
        command = [sys.executable, "-m", "studio.cli", *arguments, "--workspace", str(folder)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    with sqlite3.connect(folder / "catalog.db") as connection:
        for table in ("versions", "checks", "events", "runs"):
            connection.execute(f"UPDATE {table} SET created_at = ?", (MOMENT,))
        connection.execute("UPDATE runs SET updated_at = ?", (MOMENT.replace("09:30:00", "09:30:41"),))
    connection.close()


def make_landscape(folder: Path) -> None:
    """Environments made by rules, whose concepts are measured."""
    for arguments in (["synth", "--offline", "--count", str(MANY), "--seed", "7"], ["diversity", "--keep"]):
        command = [sys.executable, "-m", "studio.cli", *arguments, "--workspace", str(folder)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def environments(pilot: Pilot[None]) -> EnvironmentsScreen:
    assert isinstance(pilot.app.screen, EnvironmentsScreen)
    return pilot.app.screen


async def the_list(pilot: Pilot[None]) -> None:
    await pilot.press("x", "down", "down", "x", "down")
    await settled(pilot)


async def the_tables(pilot: Pilot[None]) -> None:
    await pilot.press("slash", *"blood", "enter")
    await settled(pilot)
    pane = environments(pilot).detail.open("tables")
    await until(pilot, lambda: len(pane.query_one("#rows").rows))
    environments(pilot).detail.enter()
    await pilot.press("down", "down")


async def the_tools(pilot: Pilot[None]) -> None:
    await pilot.press("slash", *"farm", "enter")
    await settled(pilot)
    pane = environments(pilot).detail.open("tools")
    await until(pilot, lambda: len(pane.grid.rows))
    environments(pilot).detail.enter()
    await pilot.press(*["down"] * 6)


async def a_solution(pilot: Pilot[None]) -> tuple[CallScreen, int]:
    """Do the first task whose reference solution changes something, call by call; and which task that is."""
    await pilot.press("slash", *"court", "enter")
    await settled(pilot)
    dossier = environments(pilot).detail.dossier
    assert dossier is not None
    await pilot.press("c")
    await until(pilot, lambda: isinstance(pilot.app.screen, CallScreen) and pilot.app.screen.session)
    screen = pilot.app.screen
    assert isinstance(screen, CallScreen)
    assert screen.session is not None
    writing = {tool.name for tool in screen.session.program.tools if tool.writes}
    solution = next(s for s in dossier.env.solutions if any(call.tool in writing for call in s.calls))
    for call in solution.calls:
        await make(pilot, screen, call)
    return screen, solution.task


async def make(pilot: Pilot[None], screen: CallScreen, call: Call) -> None:
    session, form = screen.session, screen.query_one(ArgumentForm)
    assert session is not None
    screen.query_one("#tool", Select).value = call.tool
    await until(pilot, lambda: form.rows and form.rows[0].has_focus_within and session)
    await until(pilot, lambda: set(call.arguments) <= {row.field.name for row in form.rows})
    for row in form.rows:
        if row.field.name in call.arguments:
            row.text = written(row.field, call.arguments[row.field.name])
    made = len(session.steps) + 1
    await pilot.press("f5")
    await until(pilot, lambda: len(session.steps) == made and not screen.busy)


async def a_call(pilot: Pilot[None]) -> None:
    screen, _ = await a_solution(pilot)
    screen.query_one("#answers", TabbedContent).active = "changes"
    await pilot.pause()


async def a_verdict(pilot: Pilot[None]) -> None:
    _, task = await a_solution(pilot)
    await pilot.press("f8")
    await until(pilot, lambda: isinstance(pilot.app.screen, FinishScreen))
    dialog = pilot.app.screen
    dialog.query_one("#task", Select).value = task
    await pilot.press("f8")
    await until(pilot, lambda: "What it looked at" in dialog.query_one("#verdict", Source).text)


async def the_concepts(pilot: Pilot[None]) -> None:
    await pilot.press("3")
    screen = pilot.app.screen
    assert isinstance(screen, ConceptsScreen)
    await until(pilot, lambda: screen.cut and screen.grid.rows)
    await until(pilot, lambda: screen.cut.threshold == screen.slider.value)


async def settled(pilot: Pilot[None]) -> None:
    """The details are those of the environment under the cursor."""
    screen = environments(pilot)
    await until(pilot, lambda: screen.detail.dossier and screen.detail.dossier.summary == screen.current)


PICTURES: dict[str, tuple[str, Callable[[Pilot[None]], Awaitable[object]]]] = {
    "environments": ("dark", the_list),
    "tables": ("light", the_tables),
    "tools": ("dark", the_tools),
    "call": ("dark", a_call),
    "verdict": ("light", a_verdict),
}
LANDSCAPES: dict[str, tuple[str, Callable[[Pilot[None]], Awaitable[object]]]] = {"concepts": ("dark", the_concepts)}


async def take(name: str, workspace: Path, folder: Path) -> None:
    theme, steps = (PICTURES | LANDSCAPES)[name]
    studio = Studio(workspace, settings=Settings(theme=theme))
    async with studio.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: studio.workspace and studio.screen.query_one("#detail").dossier)
        await steps(pilot)
        await pilot.pause(0.5)
        studio.save_screenshot(f"{name}.svg", str(folder))


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["TZ"] = "UTC"
    time.tzset()
    Input.cursor_blink = False
    with tempfile.TemporaryDirectory() as temporary:
        workspace = Path(temporary) / "workspace"
        make_workspace(workspace)
        for name in PICTURES:
            asyncio.run(take(name, workspace, folder))
        make_landscape(Path(temporary) / "landscape")
        for name in LANDSCAPES:
            asyncio.run(take(name, Path(temporary) / "landscape", folder))
        asyncio.run(run_pictures.take(folder, Path(temporary)))
        asyncio.run(train_pictures.take(folder, Path(temporary)))


if __name__ == "__main__":
    main()
