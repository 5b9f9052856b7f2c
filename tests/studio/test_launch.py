"""Starting, stopping and going on with work in other processes."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.records import Run
from studio import launch

NOW = datetime.now(UTC)
RUN = Run(id=7, kind="synthesis", state="running", config={}, result=None, pid=None, created_at=NOW, updated_at=NOW)


async def test_a_short_command_gives_its_answer_or_its_complaint(tmp_path: Path) -> None:
    places = json.loads(await launch.finish(tmp_path / "ws", "config", "locate", "--json"))
    assert places["workspace"] == str(tmp_path / "ws")
    with pytest.raises(UserError, match="no-such-folder"):
        await launch.finish(tmp_path / "ws", "import", str(tmp_path / "no-such-folder"))


def test_detached_work_goes_on_alone_and_leaves_its_words_in_the_log(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    (workspace / "logs").mkdir(parents=True)
    process = launch.detach(workspace, workspace / "logs", "synth", "--offline", "--count", "1")
    assert process.wait(60) == 0
    assert "1 environment, made by rules" in (workspace / "logs" / "synth.log").read_text()
    with Catalog.open(workspace / "catalog.db") as catalog:
        assert len(catalog.names()) == 1
        [run] = catalog.runs()
    assert (run.kind, run.state) == ("blueprints", "done")
    assert launch.going_on(run) == ("synth", "--offline", "--count", "1", "--seed", "0", "--size", "small")


def test_a_process_number_that_was_given_to_somebody_else_is_not_the_runs() -> None:
    ours = replace(RUN, pid=os.getpid())
    assert launch.is_alive(ours)
    long_ago = NOW - timedelta(days=400)
    assert not launch.is_alive(replace(ours, updated_at=long_ago)), "this process began after the run was last heard of"
    assert launch.is_orphaned(replace(ours, updated_at=long_ago))


def test_what_goes_on_with_a_run() -> None:
    assert launch.going_on(RUN) == ("synth", "--resume", "--run", "7")
    assert launch.going_on(replace(RUN, kind="audit")) is None
    some = replace(RUN, kind="check", config={"environments": ["shop", "zoo"]})
    assert launch.going_on(some) == ("check", "shop", "zoo", "--fail-on", "never")
    every = replace(RUN, kind="audit", config={"environments": "all", "options": ["--trajectories", "/runs"]})
    assert launch.going_on(every) == ("audit", "--all", "--trajectories", "/runs", "--fail-on", "never")


def test_stopping_what_does_not_run_says_so() -> None:
    with pytest.raises(UserError, match="not running any more"):
        launch.stop(RUN)
