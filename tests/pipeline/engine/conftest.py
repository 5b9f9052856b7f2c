"""A run against a scripted server, in this process or another, small enough to be quick: three tasks a scenario."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.engine.board import Board, read
from pipeline.engine.commands import send
from pipeline.engine.config import Config
from pipeline.engine.engine import Engine
from pipeline.engine.start import KNOWN, create, read_known
from pipeline.llm.budget import Budget
from pipeline.llm.client import Client
from pipeline.llm.profiles import Profile
from pipeline.llm.replies import FILE_NAME, Replies
from pipeline.model import STAGES
from pipeline.nearness import by_ngrams
from pipeline.records import Run
from pipeline.runtime.host import Host
from pipeline.stages.scenario import Scenario
from pipeline.workspace import Workspace
from tests.llm_server import Server

SEEDS = (
    Scenario("Rose Garden Shop", "gardens", "Sells roses, pots and soil to people who keep gardens at home."),
    Scenario("Port Office", "harbours", "Gives berths to ships and writes bills for the days they stay."),
    Scenario("Town Archive", "archives", "Lends deeds, maps and letters to readers who have a card."),
    Scenario("School Kitchen", "kitchens", "Plans meals, orders food and counts who eats what on which day."),
)


@pytest.fixture(autouse=True)
def three_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.stages.tasks.TASKS", 3)


@pytest.fixture(scope="session")
def host() -> Iterator[Host]:
    with Host() as opened:
        yield opened


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(tmp_path / "workspace", create=True) as opened:
        yield opened


class Studio:
    """Starts runs in this process, and does to them what a person would do from another one."""

    def __init__(self, workspace: Workspace, host: Host) -> None:
        self.workspace, self.host = workspace, host
        self.run: Run

    def start(
        self, server: Server, *, count: int = 1, models: dict[str, dict[str, Any]] | None = None, **config: Any
    ) -> None:
        usual = Profile(model="m", base_url=server.url, api_key_env="", concurrency=16, retries=1)
        profiles = {stage: usual.model_copy(update=(models or {}).get(stage, {})) for stage in STAGES}
        self._seen = Board()
        self.run = create(self.workspace, Config(count=count, models=profiles, **config), SEEDS)

    async def work(self, *deeds: Callable[[Studio], Awaitable[None]], timeout_s: float = 60) -> Board:
        """Let an engine work until it ends of itself, while a person does these things one after the other."""
        replies = Replies(self.workspace.path / FILE_NAME)

        async def no_wait(seconds: float) -> None:
            await asyncio.sleep(0)

        client = Client(replies, budget=Budget(), replay=bool(self.run.config["replay"]), sleep=no_wait)
        engine = Engine(
            self.workspace,
            self.run,
            client=client,
            host=self.host,
            nearness=by_ngrams(),
            known=read_known(self.workspace.runs / str(self.run.id) / KNOWN),
            poll_s=0.02,
        )
        try:
            async with asyncio.timeout(timeout_s), asyncio.TaskGroup() as group:
                working = group.create_task(engine.work())
                for deed in deeds:
                    await deed(self)
            return working.result()
        finally:
            await client.close()
            replies.close()

    @property
    def board(self) -> Board:
        """What another process sees, which reads only what has come since it last looked."""
        self._seen = read(self.workspace.catalog, self.run.id, self._seen)
        return self._seen

    async def until(self, true_of: Callable[[Board], bool]) -> Board:
        """Wait for something to be seen from outside."""
        while not true_of(board := self.board):
            await asyncio.sleep(0.02)
        return board

    async def tell(self, do: str, scenario: str | None = None, **data: Any) -> tuple[bool, str]:
        """Send a command and wait for the answer."""
        command = send(self.workspace.catalog, self.run.id, do, scenario=scenario, by="ada", **data)
        board = await self.until(lambda board: command in board.answers)
        return board.answers[command]

    def versions(self, name: str, part: str, slot: str = "") -> list[tuple[str, str]]:
        """(kind of author, author) of each version of a part."""
        return [(v.author.kind.value, v.author.name) for v in self.workspace.catalog.versions(name, part, slot)]

    def only_name(self) -> str:
        """The name of the run's only scenario."""
        (name,) = self.board.rows
        return name


@pytest.fixture
def studio(workspace: Workspace, host: Host) -> Studio:
    return Studio(workspace, host)


def contents(workspace: Workspace) -> list[tuple[Any, ...]]:
    """Everything the catalog holds of environments but when it was written: equal for equal runs, byte for byte."""
    catalog, found = workspace.catalog, []
    for name in catalog.names():
        places = {v.id: (v.part, v.slot, v.number) for current in catalog.current(name)
                  for v in catalog.versions(name, current.part, current.slot)}  # fmt: skip
        for current in catalog.current(name):
            for v in catalog.versions(name, current.part, current.slot):
                parents = sorted(places[parent] for parent in v.parents)
                found.append((name, *places[v.id], catalog.content(v.sha), catalog.extra(v), v.author, parents, v.cost))
    return found
