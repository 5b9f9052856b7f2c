"""Doing a rollout's calls again: the same calls in the same environment give the same bytes, or something is wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pipeline.errors import UserError
from pipeline.model import Environment, Part
from pipeline.parts import read_view
from pipeline.runtime.diff import diff
from pipeline.runtime.host import Host, LoadFailed
from train.protocol import shown_reply
from train.trajectory import Trajectory, Turn

if TYPE_CHECKING:
    from pipeline.catalog import Catalog
    from pipeline.runtime.host import HostedProgram, Reply
    from pipeline.workspace import Workspace

RUNS_ON = (Part.schema, Part.sample, Part.code)
"""The parts that decide what calls come to."""


@dataclass(frozen=True, slots=True)
class Step:
    """A turn done again: whether the agent would be shown the same, and what the call changed."""

    number: int
    turn: Turn
    same: bool
    diff: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Replay:
    """A rollout done again. `same` is whether every result and both databases are what the record says."""

    steps: tuple[Step, ...]
    initial_same: bool
    final_same: bool
    initial: bytes
    final: bytes

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return self.initial_same and self.final_same and all(step.same for step in self.steps)


def replay(trajectory: Trajectory, program: HostedProgram) -> Replay:
    """Do a rollout's calls again, in a program of its environment."""
    with program.instance() as instance:
        state = program.template
        initial_same = digest(state) == trajectory.initial
        steps = []
        for number, turn in enumerate(trajectory.turns):
            if turn.status is None:
                steps.append(Step(number, turn, True, {}))
                continue
            reply = instance.call(turn.tool, turn.arguments)
            after = instance.snapshot()
            steps.append(Step(number, turn, _same(turn, reply), diff(state, after)))
            state = after
    return Replay(tuple(steps), initial_same, digest(state) == trajectory.final, program.template, state)


def _same(turn: Turn, reply: Reply) -> bool:
    """Whether a call came to the same; how long a call may take is not the environment's business."""
    if turn.fault == "timeout":
        return reply.error is not None and reply.error.kind == "timeout"
    return shown_reply(turn.tool, reply, timeout_s=0) == turn.shown


def replays(workspace: Workspace, trajectories: Iterable[Trajectory]) -> Iterator[tuple[Trajectory, Replay | str]]:
    """Rollouts done again, each with why it cannot be where it cannot; those of an environment come together."""

    def same_environment(trajectory: Trajectory) -> tuple[str, list[tuple[str, str]]]:
        return trajectory.environment, sorted(trajectory.contents.items())

    with Host.from_settings(workspace.settings) as host:
        for _, together in groupby(sorted(trajectories, key=same_environment), key=same_environment):
            several = list(together)
            try:
                program = host.program(environment_of(workspace.catalog, several[0]))
            except (UserError, LoadFailed) as error:
                yield from ((trajectory, str(error)) for trajectory in several)
                continue
            with program:
                for trajectory in several:
                    yield trajectory, _replayed(trajectory, program)


def _replayed(trajectory: Trajectory, program: HostedProgram) -> Replay | str:
    """A rollout done again, or why its databases cannot be had: its calls may take too long to be made twice."""
    try:
        return replay(trajectory, program)
    except UserError as error:
        return str(error)


def digest(snapshot: bytes) -> str:
    """The sha256 of a snapshot, by which records name it."""
    return hashlib.sha256(snapshot).hexdigest()


def environment_of(catalog: Catalog, trajectory: Trajectory) -> Environment:
    """The environment as it was in a rollout, whatever has changed since.

    Raises UserError where this catalog never had it.
    """
    contents = {}
    for key, sha in trajectory.contents.items():
        part, _, slot = key.partition("/")
        try:
            contents[Part(part), slot] = catalog.content(sha)
        except KeyError:
            raise UserError(
                f"{trajectory.environment} cannot be run again as it was: this workspace never had its {part} "
                f"({sha[:12]}…). Import the environment that the rollout was made in."
            ) from None
    if not contents:
        return catalog.environment(trajectory.environment)  # an AWM run says only its name
    return Environment(name=trajectory.environment, now=datetime.fromisoformat(trajectory.now), **read_view(contents))


def contents_of(shas: Mapping[str, str]) -> dict[str, str]:
    """Of the digests of an environment's parts by "part/slot", those that a replay needs."""
    return {key: sha for key, sha in shas.items() if key.partition("/")[0] in RUNS_ON}
