"""Starting a run, going on with one, and handing it to a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from pipeline.engine.board import Board, read
from pipeline.engine.commands import find_run
from pipeline.engine.config import KIND, Config
from pipeline.engine.lock import work_on, worker
from pipeline.errors import UserError
from pipeline.llm.budget import Budget
from pipeline.llm.client import Client
from pipeline.llm.replies import FILE_NAME, Replies
from pipeline.model import Part
from pipeline.nearness import Nearness
from pipeline.records import Run
from pipeline.stages.scenario import Scenario

if TYPE_CHECKING:
    from pipeline.catalog import Catalog
    from pipeline.engine.engine import Engine
    from pipeline.workspace import Workspace

KNOWN = "known.jsonl"
"""The file in a run's folder with the scenarios that stage 1 starts from: the seeds, and what the workspace held."""

ENDED = frozenset({"done"})
"""States in which there is nothing to go on with."""


def create(workspace: Workspace, config: Config, seeds: Iterable[Scenario]) -> Run:
    """Record a run with everything it needs to be worked on by any process. It is not started by this."""
    known = [*seeds, *scenarios_of(workspace.catalog)]
    number = workspace.catalog.add_run(KIND, config.model_dump(mode="json"))
    folder = workspace.runs / str(number)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [orjson.dumps({"name": s.name, "category": s.category, "description": s.description}) for s in known]
    (folder / KNOWN).write_bytes(b"\n".join(lines) + b"\n")
    changed = {
        "count": config.count,
        "budget": config.budget,
        "gates": config.gates,
        "models": {stage: profile.model_dump(mode="json") for stage, profile in config.models.items()},
    }
    workspace.catalog.add_event(number, "changed", changed)
    return find_run(workspace.catalog, number)


def scenarios_of(catalog: Catalog) -> list[Scenario]:
    """The scenarios of the environments there are, as stage 1 compares them."""
    found = catalog.environments(parts=(Part.scenario,))
    return [Scenario(e.title or e.name, e.domain or "other", e.description) for e in found if e.description]


def work(
    workspace: Workspace,
    run: Run,
    nearness: Callable[[Client], Nearness],
    *,
    watch: Callable[[Engine], None] | None = None,
) -> Board:
    """Work on a run in this process until nothing goes on without a person; see `Engine.work`.

    `watch` is given the engine before it starts. Raises UserError where another process works on the run, and
    KeyboardInterrupt when it is interrupted, after that was written down.
    """
    from pipeline.engine.engine import Engine
    from pipeline.runtime.host import Host

    folder = workspace.runs / str(run.id)
    with work_on(folder, run.id), Host.from_settings(workspace.settings) as host:
        replies = Replies(workspace.path / FILE_NAME)

        async def working() -> Board:
            _end_on_sigterm()
            client = Client(replies, budget=Budget(), replay=Config.model_validate(run.config).replay)
            try:
                engine = Engine(
                    workspace,
                    run,
                    client=client,
                    host=host,
                    nearness=nearness(client),
                    known=read_known(folder / KNOWN),
                )
                if watch is not None:
                    watch(engine)
                return await engine.work()
            finally:
                await client.close()

        try:
            return asyncio.run(working())
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
        finally:
            replies.close()


def _end_on_sigterm() -> None:
    """Let SIGTERM end the engine in order, as Ctrl-C does; only possible in a process's main thread."""
    task = asyncio.current_task()
    if task is not None and threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def read_known(path: Path) -> tuple[Scenario, ...]:
    """The scenarios a run started from. Raises UserError where its file is gone."""
    try:
        return tuple(Scenario(**orjson.loads(line)) for line in path.read_bytes().splitlines() if line)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): the run cannot go on without it.") from None


def unfinished(workspace: Workspace, number: int | None) -> Run:
    """The run to go on with: the numbered one, or the newest that is not done. Raises UserError where there is none."""
    if number is not None:
        return find_run(workspace.catalog, number)
    for run in workspace.catalog.runs():
        if run.kind == KIND and run.state not in ENDED:
            return run
    raise UserError("There is no unfinished synthesis to go on with: awm-studio synth --count N starts one.")


def detach(workspace: Workspace, run: Run, arguments: Sequence[str] = ()) -> int:
    """Work on a run in a process of its own, in its own session, its words in the workspace's logs. Returns its pid."""
    log = workspace.logs / f"run-{run.id}.log"
    command = [sys.executable, "-m", "studio.cli", "synth", "--resume", "--run", str(run.id), *arguments]
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            env=os.environ | {"AWM_WORKSPACE": str(workspace.path)},
        )
    return process.pid


def is_worked_on(workspace: Workspace, run: int) -> bool:
    """Whether an engine works on a run right now."""
    return worker(workspace.runs / str(run)) is not None


def board_of(workspace: Workspace, run: int) -> Board:
    """The state of a run."""
    return read(workspace.catalog, run)
