"""Rollouts that are right, to learn from: reference solutions, and records that were judged complete."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.runtime.loading import LoadFailed
from train.closing import played, unplayed
from train.episode import Episode
from train.policies import reference
from train.programs import Programs
from train.protocol import Form
from train.records import read_records
from train.reward import Outcome
from train.rollout import drive
from train.rules import Rules
from train.trajectory import Trajectory
from train.worlds import Task, Worlds

if TYPE_CHECKING:
    from train.scoring import Scorer

AT_ONCE = 16
"""Demonstrations that are made at once."""


async def demonstrate(
    tasks: Sequence[Task],
    worlds: Worlds,
    programs: Programs,
    scorer: Scorer,
    rules: Rules,
    *,
    nested: bool,
    spoilt: float = 0.0,
) -> list[Trajectory]:
    """The rollouts of the tasks' reference solutions that are complete, in the order of the tasks.

    Then come some that claim to be done before the last call of the solution, of the first tasks: so many that they are
    the share `spoilt` of all (fewer where solutions have a single call).
    """
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(task: Task, *, whole: bool = True) -> Trajectory | None:
        environment = worlds.environment(task.environment)
        solution = environment.solution(task.number)
        if solution is None or (not whole and len(solution.calls) < 2):
            return None
        if not whole:
            solution = replace(solution, calls=solution.calls[:-1])
        blank = unplayed(worlds, task, 0, policy="reference", rules=rules)
        async with turn:
            try:
                async with programs.use(task.environment) as stage:
                    with stage.program.instance() as instance:
                        episode = Episode(blank.text, instance, stage.shown, rules)
                        await drive(episode, reference(solution, nested=nested))
                        record, final = await played(blank, episode, instance, stage.program.template)
                    reward = await scorer.score(record, environment, stage.program.template, final)
                    return replace(record, reward=reward)
            except LoadFailed:
                return None

    made = await asyncio.gather(*map(one, tasks))
    right = [record for record in made if record is not None and is_complete(record)]
    some = tasks[: round(len(tasks) * spoilt / (1 - spoilt))]
    wrong = await asyncio.gather(*(one(task, whole=False) for task in some))
    return [*right, *(record for record in wrong if record is not None and not is_complete(record))]


def complete_records(folders: Iterable[Path], tasks: Collection[Task]) -> Iterator[Trajectory]:
    """The records in runs' folders that were judged complete, of these tasks, in the text protocol.

    Raises UserError where a folder has no records.
    """
    wanted = set(tasks)
    for folder in folders:
        for record in read_records(folder):
            if (
                is_complete(record)
                and record.rules.form is Form.text
                and Task(record.environment, record.task) in wanted
            ):
                yield record


def is_complete(record: Trajectory) -> bool:
    """Whether a record was judged complete."""
    return record.reward is not None and record.reward.outcome == Outcome.complete


def corpus(records: Iterable[Trajectory]) -> Iterator[str]:
    """The texts of records, for a tokenizer that is made for them."""
    for record in records:
        for message in record.messages():
            yield message.content
