"""The programs that rollouts run in: loaded when they are needed or beforehand, and closed when others need room."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pipeline.model import Environment
from pipeline.runtime.host import Host, HostedProgram
from train.episode import Shown
from train.rules import Rules

LOADERS = 4
"""Programs that are loaded at once. Loading takes 0.3 s of one processor, most of it the program's own start."""


@dataclass(frozen=True, slots=True)
class Stage:
    """An environment that is ready for rollouts: its program, and what agents are shown of it."""

    environment: Environment
    program: HostedProgram
    shown: Shown


class Programs:
    """Loaded programs by environment, at most `limit` of them unless more are in use at once.

    For one event loop. `environment` gives an environment by its name. What did not load once is not tried again. An
    async context manager; leaving it closes the programs.
    """

    def __init__(self, host: Host, environment: Callable[[str], Environment], rules: Rules, *, limit: int) -> None:
        self._host = host
        self._environment = environment
        self._rules = rules
        self._limit = limit
        self._stages: OrderedDict[str, asyncio.Future[Stage]] = OrderedDict()  # least recently used first
        self._uses: dict[str, int] = {}
        self._threads = ThreadPoolExecutor(LOADERS, thread_name_prefix="awm-load")

    async def __aenter__(self) -> Programs:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        await asyncio.gather(*self._stages.values(), return_exceptions=True)
        for name in list(self._stages):
            self._close(name)

    @asynccontextmanager
    async def use(self, name: str) -> AsyncGenerator[Stage]:
        """An environment's stage, which stays loaded meanwhile. Raises LoadFailed where its code does not load."""
        self._uses[name] = self._uses.get(name, 0) + 1
        try:
            yield await asyncio.shield(self._stage(name))
        finally:
            self._uses[name] -= 1
            self._make_room()

    def prepare(self, names: Iterable[str]) -> None:
        """Begin to load what will soon be needed; what cannot be loaded is said when it is used."""
        for name in names:
            self._stage(name)

    def _stage(self, name: str) -> asyncio.Future[Stage]:
        found = self._stages.get(name)
        if found is None:
            found = asyncio.get_running_loop().run_in_executor(self._threads, self._load, name)
            found.add_done_callback(_look_at)
            self._stages[name] = found
        self._stages.move_to_end(name)
        return found

    def _load(self, name: str) -> Stage:
        environment = self._environment(name)
        program = self._host.program(environment)
        return Stage(environment, program, Shown.of(program.tools, self._rules))

    def _make_room(self) -> None:
        for name in list(self._stages):
            if len(self._stages) <= self._limit:
                return
            if not self._uses.get(name) and self._stages[name].done():
                self._close(name)

    def _close(self, name: str) -> None:
        stage = self._stages.pop(name)
        if stage.done() and not stage.cancelled() and stage.exception() is None:
            stage.result().program.close()


def _look_at(future: asyncio.Future[Stage]) -> None:
    """Keep asyncio from warning that nobody looked at a failure: a prepared stage may never be used."""
    if not future.cancelled():
        future.exception()
