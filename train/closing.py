"""From an episode that has ended to its record."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pipeline.errors import UserError
from pipeline.runtime.diff import diff
from pipeline.runtime.hosted import Instance
from train.episode import Episode
from train.replay import digest
from train.rules import Rules
from train.trajectory import End, Trajectory
from train.worlds import Task, Worlds


def unplayed(worlds: Worlds, task: Task, attempt: int, *, policy: str, rules: Rules) -> Trajectory:
    """The record of a rollout that begins now, as it is where its environment does not even load."""
    environment = worlds.environment(task.environment)
    return Trajectory(
        environment=task.environment,
        task=task.number,
        attempt=attempt,
        text=environment.tasks[task.number],
        policy=policy,
        rules=rules,
        contents=worlds.contents(task.environment),
        now=environment.now.isoformat(),
        head=(),
        turns=(),
        end=End.environment_error,
        started=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


async def played(blank: Trajectory, episode: Episode, instance: Instance, initial: bytes) -> tuple[Trajectory, bytes]:
    """The record of an episode that has ended, not scored yet, and its final database."""
    assert episode.end is not None
    try:
        final, changes = await asyncio.to_thread(_state, instance, initial)
        end, detail = episode.end, episode.detail
    except UserError as error:  # the environment's last state is lost with its worker
        final, changes = initial, {}
        end, detail = End.environment_error, str(error)
    record = replace(
        blank,
        head=episode.head,
        turns=tuple(episode.turns),
        end=end,
        detail=detail,
        answer=episode.answer,
        initial=digest(initial),
        final=digest(final),
        diff=changes,
    )
    return record, final


def _state(instance: Instance, initial: bytes) -> tuple[bytes, Mapping[str, Any]]:
    final = instance.snapshot()
    return final, diff(initial, final)
