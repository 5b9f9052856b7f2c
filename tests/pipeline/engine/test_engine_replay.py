"""A recorded run gives the same catalog again, byte for byte, without a server."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from pipeline.engine.board import State
from pipeline.llm.replies import FILE_NAME
from pipeline.runtime.host import Host
from pipeline.workspace import Workspace
from tests.llm_server import Drop, Say, Server, Status
from tests.scripted_model import Model

from .conftest import Studio, contents


def troubled(step: str, about: str, before: int) -> Any:
    """A model that needs a correction, on a server that drops and refuses now and then, and cuts a reply."""
    if step == "code" and before == 0:
        return Say("```python\nfrom fastapi import FastAPI\napp = FastAPI()\n```")
    if step == "schema" and before == 0:
        return Drop()
    if step == "spec" and before == 0:
        return Status(429, headers={"Retry-After": "1"})
    if step == "sample" and before == 0:
        return Say('{"tables": [', finish="length")
    return None


async def test_a_recorded_run_is_replayed_byte_for_byte(studio: Studio, host: Host, tmp_path: Path):
    with Server(Model(troubled)) as server:
        studio.start(server, count=3, seed=5)
        assert (await studio.work()).state == "done"
    with Workspace.open(tmp_path / "again", create=True) as workspace:
        shutil.copy(studio.workspace.path / FILE_NAME, workspace.path)
        again = Studio(workspace, host)
        again.start(server, count=3, seed=5, replay=True)  # the server has gone
        board = await again.work()
        assert (board.state, board.spent) == ("done", 0.0)
        assert contents(workspace) == contents(studio.workspace)
        assert len(contents(workspace)) == 3 * (6 + 6)


async def test_what_was_never_recorded_fails_under_replay_and_is_named(studio: Studio, host: Host, tmp_path: Path):
    with Server(Model()) as server:
        studio.start(server, seed=5)
        await studio.work()
    with Workspace.open(tmp_path / "again", create=True) as workspace:
        shutil.copy(studio.workspace.path / FILE_NAME, workspace.path)
        again = Studio(workspace, host)
        again.start(server, seed=5, models={"interface": {"model": "another"}}, replay=True)
        board = await again.work()
    (row,) = board.wanted
    assert row.cells["interface"].state is State.failed
    assert "another has no recorded reply" in row.cells["interface"].why


async def test_a_run_that_is_asked_for_again_pays_for_nothing_twice(studio: Studio, host: Host, tmp_path: Path):
    with Server(Model()) as server:
        studio.start(server, count=2, seed=5)
        await studio.work()
        asked = len(server.requests)
        with Workspace.open(tmp_path / "again", create=True) as workspace:
            shutil.copy(studio.workspace.path / FILE_NAME, workspace.path)
            again = Studio(workspace, host)
            again.start(server, count=2, seed=5)
            await again.work()
        assert len(server.requests) == asked
