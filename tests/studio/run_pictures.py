"""The pictures of a synthesis that a person steps into: a real run of the engine against a scripted server.

The first program of the museum lets anybody see anybody's loans. Its checks cannot know that; the person who reads it
does, sends it back with a reason, and the second one is right.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from pipeline.engine.board import Row, State
from pipeline.engine.lock import work_on
from pipeline.llm.profiles import Prices
from pipeline.model import STAGES
from pipeline.runtime.host import Host
from pipeline.settings import Settings
from pipeline.workspace import Workspace
from studio.app import Studio
from studio.screens.ask import AskScreen
from studio.screens.choose import ChooseScreen
from studio.screens.pipeline import PipelineScreen
from studio.screens.stage import StageScreen
from studio.widgets.source import Source
from tests.llm_server import Answer, Say, Server
from tests.pipeline.engine.conftest import Studio as Person
from tests.scripted_model import CODE, Model
from tests.studio.conftest import until

SERVICES = {
    "Museum Loans": ("culture", "Curators lend works to other houses, follow the crates and chase late returns."),
    "Seed Exchange": ("gardens", "Growers offer packets of saved seed, ask for others, and rate what came up."),
    "Tide Berths": ("harbours", "Skippers book a berth by draught and tide and settle their dues before leaving."),
    "Night Pharmacy": ("health", "Chemists on duty hand out stock against prescriptions and log every package."),
    "Choir Library": ("music", "Singers borrow scores; the librarian counts copies before each concert."),
}
REASON = "Anybody can open anybody's loans: show and change only what belongs to the user."
OPEN_TO_ALL = CODE.replace("if item is None or item.user_id != current_user_id:", "if item is None:")


class Scribe(Model):
    """The scripted model with these services, whose first program for the museum forgets whose loans they are."""

    def __call__(self, body: dict[str, Any]) -> Answer:
        opening, prompt = (message["content"] for message in body["messages"][:2])
        if opening.startswith("You invent scenarios"):
            made = [{"name": n, "category": c, "description": d} for n, (c, d) in SERVICES.items()]
            return Say(json.dumps({"scenarios": made}), tokens=(900, 400))
        if opening.startswith("You judge whether a service"):
            scores = [{"name": name, "score": 9, "reason": "all of it is records"} for name in SERVICES]
            return Say(json.dumps({"scores": scores}), tokens=(700, 200))
        if opening.startswith("You write the FastAPI") and "Museum Loans" in prompt and REASON not in str(body):
            return Say(f"```python\n{OPEN_TO_ALL}```", tokens=(len(prompt) // 4, 2400))
        return super().__call__(body)


async def take(folder: Path, temporary: Path) -> None:
    """Write `pipeline.svg` (a result waits for a person) and `steered.svg` (what the person's reason changed)."""
    with Host() as host, Server(Scribe()) as server, Workspace.open(temporary / "run", create=True) as workspace:
        person = Person(workspace, host)
        priced = {stage: {"prices": Prices(input=1, output=8), "model": "scribe-1"} for stage in STAGES}
        person.start(server, count=len(SERVICES), gates={"interface": "all"}, models=priced, budget=5.0)
        with work_on(workspace.runs / "1", 1):
            working = asyncio.create_task(person.work(timeout_s=600))
            studio = Studio(temporary / "run", settings=Settings(theme="dark"))
            async with studio.run_test(size=(120, 34)) as pilot:
                await steer(studio, pilot, folder)
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


async def steer(studio: Studio, pilot: Pilot[None], folder: Path) -> None:
    await until(pilot, lambda: studio.workspace)
    await pilot.press("1")
    await until(pilot, lambda: isinstance(studio.screen, PipelineScreen) and studio.screen.board.rows, seconds=60)
    screen = studio.screen
    assert isinstance(screen, PipelineScreen)
    board = screen.board

    def waiting() -> list[Row]:
        return [row for row in board.rows if row.cells["interface"].state is State.waiting]

    await until(pilot, lambda: len(waiting()) == len(SERVICES), seconds=300)
    museum = next(row for row in board.rows if row.title == "Museum Loans")
    for row in [each for each in board.rows if each is not museum][:3]:
        board.cursor = board.rows.index(row)
        await pilot.press("a")
        await until(pilot, lambda row=row: row.cells["interface"].state is State.done, seconds=60)
    await until(pilot, lambda: sum(row.state is State.done for row in board.rows) == 3, seconds=300)
    board.cursor = board.rows.index(museum)
    await pilot.press("g")
    await pilot.pause(6)  # what was said of the approvals is read by now
    studio.save_screenshot("pipeline.svg", str(folder))
    await pilot.press("x")
    await until(pilot, lambda: isinstance(studio.screen, ChooseScreen))
    options = studio.screen.query_one(OptionList)
    options.highlighted = options.get_option_index("code")
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(studio.screen, AskScreen))
    studio.screen.query_one(Input).value = REASON
    await pilot.press("enter")
    cell = museum.cells["interface"]
    await until(pilot, lambda: museum in waiting() and cell.tries > 2, seconds=60)
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(studio.screen, StageScreen))
    await pilot.press("d")
    after = studio.screen.query_one("#after", Source)

    await until(pilot, lambda: "current_user_id" in after.text, seconds=30)
    await pilot.pause(6)
    studio.save_screenshot("steered.svg", str(folder))
