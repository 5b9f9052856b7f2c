"""The one process that works on a run: it starts the scenarios' flows, takes commands, and writes down what happens."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from pipeline.engine import board as boards
from pipeline.engine.board import ACTIVE, Row, State
from pipeline.engine.config import Config
from pipeline.engine.flow import finding_documents, flow
from pipeline.engine.live import LiveText, live_file
from pipeline.engine.orders import Stopped, take
from pipeline.engine.report import summary
from pipeline.engine.source import find_scenarios
from pipeline.findings import Finding
from pipeline.llm.client import Client, Watch
from pipeline.llm.profiles import Profile
from pipeline.llm.request import Reply, Request
from pipeline.model import Author, AuthorKind, Environment, Part, normalise
from pipeline.nearness import Nearness
from pipeline.records import Event, Run
from pipeline.runtime.host import Host, LoadFailed
from pipeline.stages.scenario import Scenario
from pipeline.stages.step import Attempt, Step
from pipeline.workspace import Workspace

POLL_S = 0.25
"""Seconds between two looks for commands."""


class Engine:
    """Works on one run until nothing is left that goes on without a person.

    `known` are the scenarios that stage 1 may not repeat. `poll_s` is how often commands are looked for.
    """

    def __init__(
        self,
        workspace: Workspace,
        run: Run,
        *,
        client: Client,
        host: Host,
        nearness: Nearness,
        known: Sequence[Scenario],
        poll_s: float = POLL_S,
    ) -> None:
        self.workspace = workspace
        self.catalog = workspace.catalog
        self.run = run
        self.config = Config.model_validate(run.config)
        self.client = client
        self.host = host
        self.nearness = nearness
        self.known = known
        self.board = boards.read(self.catalog, run.id)
        self.listeners: list[Callable[[Event], None]] = []  # told of every event, in this process
        self.taken = frozenset(set(self.catalog.names()) - set(self.board.rows))
        self._poll_s = poll_s
        self._seen = self.board.last_event
        self._tasks: dict[str | None, asyncio.Task[None]] = {}  # a scenario's flow by its name, stage 1 under None
        self._changed = asyncio.Condition()
        self._threads = ThreadPoolExecutor(workspace.settings.workers, thread_name_prefix="check")

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.workspace.runs / str(self.run.id)

    async def work(self) -> boards.Board:
        """Work until all scenarios are done or failed, or every one that is left waits for something to be put right.

        While a scenario waits for a person's decision, or the run is paused, it stays and takes commands.
        """
        end: tuple[str, str] | None = None
        self._begin()
        try:
            while True:
                await self._take_commands()
                self._reap()
                if not self._tasks and not self.board.pending and not self._somebody_may_decide():
                    break
                await self._pause_for_news()
            end = self._outcome()
        except Stopped:
            end = "stopped", "stopped by a person"
        except asyncio.CancelledError:
            end = "interrupted", "interrupted"
            raise
        finally:
            await self._cancel(list(self._tasks))
            self._threads.shutdown(wait=False, cancel_futures=True)  # closing the host ends what they wait for
            if end is not None:
                self._end(*end)
        return self.board

    # What flows need

    def emit(self, kind: str, data: dict[str, Any], scenario: str | None = None) -> int:
        """Write down that something happened, and take it in."""
        number = self.catalog.add_event(self.run.id, kind, data, scenario)
        event = Event(number, self.run.id, kind, scenario, data, datetime.now(UTC))
        self.board.apply(event)
        for listener in self.listeners:
            listener(event)
        return number

    def set_stage(self, row: Row | None, stage: str, state: State, *, why: str = "", fault: str = "") -> None:
        """Move a stage of a scenario, or stage 1 as a whole, to a state."""
        self.emit("stage", {"stage": stage, "state": state, "why": why, "fault": fault}, row.name if row else None)

    def record(self, row: Row | None, step: Step, attempt: Attempt, *, right: bool) -> None:
        """Write down an attempt."""
        content = None if attempt.content is None else self.client.replies.keep(attempt.content)
        data = {
            "stage": step.stage,
            "step": step.name,
            "number": attempt.number,
            "right": right,
            "findings": finding_documents(attempt.findings),
            "keys": list(attempt.keys),
            "content": content,
        }
        self.emit("attempt", data, row.name if row else None)

    def profile(self, stage: str) -> Profile:
        """Who is asked for a stage at present."""
        return Profile.model_validate(self.board.models[stage])

    def is_gated(self, row: Row, stage: str) -> bool:
        """Whether a stage that has just been made waits for approval; what a person wrote last does not."""
        cell, gate = row.cells[stage], self.board.gates.get(stage)
        last = next(reversed(cell.steps.values()), None)
        if last is not None and last.by:
            return False
        return gate == "all" or (gate == "warn" and any(f["severity"] != "info" for f in cell.findings))

    async def ready(self, row: Row | None) -> None:
        """Wait while the run or the scenario is paused."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self.board.paused and not (row is not None and row.paused))

    async def ask(self, request: Request, step: Step, row: Row | None) -> Reply:
        """Ask the stage's model, with everything that happens written down. Raises ModelFault."""
        await self.ready(row)
        profile, scenario = self.profile(step.stage), row.name if row else None
        live = LiveText(live_file(self.folder, scenario, step.name))

        def notify(kind: str, data: dict[str, Any]) -> None:
            self.emit(kind, {"stage": step.stage, "step": step.name, **data}, scenario)

        try:
            return await self.client.ask(request, profile, Watch(live.write, notify))
        finally:
            live.close()

    async def check(self, step: Step, content: str) -> Sequence[Finding]:
        """Run a step's check on a content, beside the event loop. What ends or hangs its worker is a finding too."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, step.check, content, self.host)
        except LoadFailed as failed:
            return [failed.finding]

    def environment(self, row: Row) -> Environment:
        """What the scenario has so far."""
        return self.catalog.environment(row.name)

    def current_content(self, row: Row, step: Step) -> str | None:
        """The current content of a step's part and slot, if there is one."""
        for version in self.catalog.current(row.name):
            if (version.part, version.slot) == (step.part, step.slot):
                return self.catalog.content(version.sha)
        return None

    def version_content(self, row: Row, step: Step, version: int) -> str:
        """The content of one of a step's versions, by its id."""
        found = next(v for v in self.catalog.versions(row.name, step.part, step.slot) if v.id == version)
        return self.catalog.content(found.sha)

    # What stage 1 and commands need

    def log_mistake(self) -> Path:
        """Keep the traceback of an exception nobody expected. Returns the file."""
        path = self.workspace.logs / f"run-{self.run.id}-mistakes.log"
        with path.open("a", encoding="utf-8") as log:
            log.write(f"{datetime.now(UTC).isoformat()}\n{traceback.format_exc()}\n")
        return path

    def admit(self, scenario: Scenario, number: int) -> None:
        """Take in a scenario of round `number`, and start its flow unless it waits for approval."""
        name = normalise(scenario.name)
        if name in self.board.rows:  # the round was interrupted after it
            return
        data = {
            "title": scenario.name,
            "category": scenario.category,
            "description": scenario.description,
            "score": scenario.score,
            "round": number,
        }
        self.emit("scenario", data, name)
        row = self.board.rows[name]
        if self.board.gates.get("scenario") == "all":
            self.set_stage(row, "scenario", State.waiting, why="to be approved")
        else:
            self.set_stage(row, "scenario", State.done)
        self.start_flow(row)

    def start_flow(self, row: Row) -> None:
        """Let a scenario go on, if it can."""
        self._reap()
        if row.dropped or row.name in self._tasks or row.cells["scenario"].state is not State.done:
            return
        if not self.catalog.versions(row.name, Part.scenario):
            self._describe(row)
        self._start(row.name, flow(self, row))

    def start_source(self) -> None:
        """Look for more scenarios, if some are missing."""
        self._reap()
        if None not in self._tasks and len(self.board.wanted) < self.board.count:
            self._start(None, find_scenarios(self))

    async def stop_flow(self, row: Row) -> None:
        """End a scenario's flow; a call in flight is given up."""
        await self._cancel([row.name])

    async def news(self) -> None:
        """Wake up what waits for a change."""
        async with self._changed:
            self._changed.notify_all()

    # The engine's own

    def _begin(self) -> None:
        for scenario, step, key, usd in self.board.in_flight:
            stage = self.board.rows[scenario].stage if scenario else "scenario"
            self.emit("lost", {"stage": stage, "step": step, "key": key, "usd": usd, "why": "interrupted"}, scenario)
        self.client.budget.limit, self.client.budget.spent = self.board.budget, self.board.spent
        self.catalog.update_run(self.run.id, state="running", pid=os.getpid())
        self.emit("run", {"state": "running", "why": ""})
        for row in self.board.wanted:
            for stage, cell in row.cells.items():
                if cell.state is State.waiting and cell.fault:  # being started again is the trying again
                    self.set_stage(row, stage, State.queued)
            if row.state in ACTIVE:
                self.start_flow(row)
        self.start_source()

    def _describe(self, row: Row) -> None:
        content = orjson.dumps({"name": row.title, "description": row.description}).decode()
        self.catalog.put(
            row.name,
            Part.scenario,
            content,
            author=Author(AuthorKind.model, self.profile("scenario").model),
            title=row.title,
            origin=AuthorKind.model.value,
            now=self.config.now,
            extra={"category": row.category, "score": row.score},
        )

    def _start(self, name: str | None, work: Coroutine[Any, Any, None]) -> None:
        self._tasks[name] = asyncio.create_task(work)

    def _reap(self) -> None:
        """Forget the tasks that have ended."""
        for name, task in list(self._tasks.items()):
            if task.done():
                del self._tasks[name]
                task.result()  # a mistake of ours, or of the disk's, ends the engine

    async def _cancel(self, names: Sequence[str | None]) -> None:
        tasks = [self._tasks.pop(name) for name in names if name in self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _somebody_may_decide(self) -> bool:
        return any(not cell.fault for _, _, cell in self.board.waiting())

    async def _pause_for_news(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=self._poll_s, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(self._poll_s)

    async def _take_commands(self) -> None:
        while events := self.catalog.events(self._seen, run=self.run.id):
            self._seen = events[-1].id
            for event in events:
                if event.kind == "command":
                    self.board.apply(event)
        for event in list(self.board.pending.values()):
            await take(self, event)

    def _outcome(self) -> tuple[str, str]:
        counts = self.board.counts()
        faults = {cell.why for _, _, cell in self.board.waiting()}
        if self.board.source.state in (State.waiting, State.failed):
            faults.add(self.board.source.why)
        if counts[State.waiting] or self.board.source.state is State.waiting:
            return "waiting", "; ".join(sorted(faults))
        if counts[State.failed] or faults:
            return "incomplete", "; ".join(sorted(faults))
        return "done", ""

    def _end(self, state: str, why: str) -> None:
        self.emit("run", {"state": state, "why": why})
        result = summary(self.board, self.catalog, self.run.id)
        self.catalog.update_run(self.run.id, state=state, pid=None, result=result)
