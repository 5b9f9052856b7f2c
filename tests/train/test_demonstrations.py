"""What a warm start learns from: reference solutions that are right, and bad habits where they are asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.catalog import Catalog
from pipeline.runtime.host import Host
from tests.train.pantry import broken, fill, pantry
from train.demonstrations import demonstrate, is_complete
from train.programs import Programs
from train.reward import Rewards
from train.rules import Rules
from train.scoring import Scorer
from train.trajectory import Trajectory
from train.worlds import Task, Worlds

TASKS = [Task("ruin", 0), Task("pantry", 0), Task("pantry", 1), Task("pantry", 2)]


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator[Worlds]:
    with Catalog.open(fill(tmp_path, pantry(), broken("ruin")) / "catalog.db") as catalog:
        yield Worlds(catalog)


def made(worlds: Worlds, host: Host, tasks: list[Task], *, spoilt: float = 0.0) -> list[Trajectory]:
    async def make() -> list[Trajectory]:
        async with Programs(host, worlds.environment, Rules(), limit=2) as programs:
            scorer = Scorer(host, Rewards())
            return await demonstrate(tasks, worlds, programs, scorer, Rules(), nested=False, spoilt=spoilt)

    return asyncio.run(make())


def test_solutions_that_are_right_are_demonstrated_and_no_others(worlds: Worlds, host: Host) -> None:
    records = made(worlds, host, TASKS)
    assert [(record.environment, record.task) for record in records] == [("pantry", 0), ("pantry", 1)]
    assert all(map(is_complete, records))


def test_a_bad_habit_is_to_claim_to_be_done_before_the_last_call(worlds: Worlds, host: Host) -> None:
    right, wrong = made(worlds, host, [Task("pantry", 0)], spoilt=0.5)
    assert [turn.move for turn in right.turns] == ["list", "call", "call", "answer"]
    assert [turn.move for turn in wrong.turns] == ["list", "call", "answer"]
    assert wrong.reward is not None
    assert (is_complete(right), wrong.reward.outcome) == (True, "agent_error")


def test_a_solution_of_one_call_has_nothing_to_leave_out(worlds: Worlds, host: Host) -> None:
    (right,) = made(worlds, host, [Task("pantry", 1)], spoilt=0.5)
    assert is_complete(right)
