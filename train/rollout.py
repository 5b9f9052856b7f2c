"""Rollouts: agents in instances, many at once, each written down as it ends.

Instances cost microseconds and their transitions no model call, so the agents' server is what limits a batch. A batch
is a run: it can be interrupted at any moment, and going on does only what is missing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pipeline.errors import UserError
from pipeline.llm.faults import CLOSING, FaultKind, ModelFault
from pipeline.llm.profiles import Profile
from pipeline.runtime.loading import LoadFailed
from train.closing import played, unplayed
from train.episode import Episode
from train.policies import ModelPolicy, Policy, at_random, noop, reference
from train.programs import Programs, Stage
from train.reward import Rewards
from train.rules import Rules
from train.trajectory import End, Trajectory, rollout_key
from train.worlds import Task, Worlds

if TYPE_CHECKING:
    from pipeline.llm.client import Client
    from train.records import Records
    from train.scoring import Scorer

HOPELESS = CLOSING | {FaultKind.no_key, FaultKind.budget, FaultKind.disk_full, FaultKind.not_recorded}
"""Faults of a model's server that every other rollout would meet too: they end the batch, which can be gone on with."""

Actor = Literal["model", "reference", "noop", "random"]


class Plan(BaseModel):
    """What a batch does, as it is kept with its run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    actor: Actor
    """Who acts: a model, or a script whose result is known."""
    model: Profile | None = None
    """The model, where that is who acts; sampling parameters are in its `params`."""
    tasks: list[tuple[str, int]]
    """Environments and their tasks' numbers."""
    subset: str | None = None
    """The subset that the environments are taken from as they were; None: as they are."""
    tries: int = Field(default=1, ge=1)
    """Rollouts a task."""
    rules: Rules = Rules()
    rewards: Rewards = Rewards()
    judge: Profile | None = None
    """The model that judges, where `rewards` goes by one."""
    audit: dict[str, str] = {}
    """What an audit calls verifiers, by "environment/task/mode"."""
    concurrency: int = Field(default=8, ge=1, le=4096)
    """Rollouts at once."""
    most_tokens: int = Field(default=2048, ge=1)
    """Tokens a turn may have (arXiv 2602.10090, table 8: 2,048)."""
    seed: int = 0
    """Chooses what random agents do."""
    programs: int = Field(default=32, ge=1)
    """Programs kept loaded, 30 to 75 MB each."""

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.model.model if self.model is not None else self.actor

    def jobs(self) -> Iterator[tuple[Task, int]]:
        """The rollouts, those of an environment together."""
        for environment, number in self.tasks:
            for attempt in range(self.tries):
                yield Task(environment, number), attempt


@dataclass
class Progress:
    """What a batch is doing now, for whoever watches: rollouts that go on, by key, and since when."""

    total: int
    done: int = 0
    live: dict[str, tuple[Episode | None, float]] = field(default_factory=dict)

    def stuck(self) -> list[dict[str, Any]]:
        """The rollouts that go on, the longest first."""
        now = time.monotonic()
        return [
            {
                "key": key,
                "seconds": round(now - since, 1),
                "turn": len(episode.turns) if episode else 0,
                "doing": episode.doing if episode else "loading",
            }
            for key, (episode, since) in sorted(self.live.items(), key=lambda item: item[1][1])
        ]


@dataclass
class Batch:
    """Does the rollouts of a plan.

    `run` tells its requests to models from those of other runs. `done` are the keys of rollouts that need not be done.
    `tell` is called with each record after it was written.
    """

    plan: Plan
    run: int
    worlds: Worlds
    programs: Programs
    scorer: Scorer
    records: Records
    client: Client | None = None
    done: frozenset[str] = frozenset()
    call_timeout_s: float = 10.0
    tell: Callable[[Trajectory], None] = lambda _: None
    progress: Progress = field(init=False)

    def __post_init__(self) -> None:
        self._missing = [
            (task, attempt)
            for task, attempt in self.plan.jobs()
            if rollout_key(task.environment, task.number, attempt) not in self.done
        ]
        self.progress = Progress(len(self._missing) + len(self.done), len(self.done))

    async def work(self) -> None:
        """Do what is missing. Raises UserError where the model's server or the disk makes going on senseless."""
        jobs = iter(self._missing)

        async def one_after_another() -> None:
            for task, attempt in jobs:
                await self._one(task, attempt)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.plan.concurrency, len(self._missing))):
                    group.create_task(one_after_another())
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _one(self, task: Task, attempt: int) -> None:
        key = rollout_key(task.environment, task.number, attempt)
        self.progress.live[key] = (None, time.monotonic())
        try:
            trajectory = await self._roll(task, attempt, key)
        finally:
            del self.progress.live[key]
        self.records.add(trajectory)
        self.progress.done += 1
        self.tell(trajectory)

    async def _roll(self, task: Task, attempt: int, key: str) -> Trajectory:
        began = time.perf_counter()
        rules = self.plan.rules
        blank = unplayed(self.worlds, task, attempt, policy=self.plan.name, rules=rules)
        environment = self.worlds.environment(task.environment)
        try:
            async with self.programs.use(task.environment) as stage:
                initial = stage.program.template
                with stage.program.instance() as instance:
                    limit = self.call_timeout_s
                    episode = Episode(blank.text, instance, stage.shown, rules, call_timeout_s=limit)
                    self.progress.live[key] = (episode, self.progress.live[key][1])
                    await drive(episode, self._policy(stage, blank, key))
                    trajectory, final = await played(blank, episode, instance, initial)
        except LoadFailed as failed:
            trajectory, initial, final = replace(blank, detail=failed.finding.message), b"", b""
        else:
            for snapshot in (initial, final):
                self.records.keep(snapshot)
        trajectory = replace(trajectory, seconds=round(time.perf_counter() - began, 3))
        return replace(trajectory, reward=await self.scorer.score(trajectory, environment, initial, final))

    def _policy(self, stage: Stage, blank: Trajectory, key: str) -> Policy:
        match self.plan.actor:
            case "reference":
                solution = stage.environment.solution(blank.task)
                if solution is None:
                    raise UserError(f"{blank.environment} has no reference solution for task {blank.task}.")
                return reference(solution)
            case "noop":
                return noop(stage.shown.tools)
            case "random":
                return at_random(stage.shown.tools, stage.program.template, seed=f"{self.plan.seed}/{key}")
        assert self.client is not None and self.plan.model is not None
        return ModelPolicy(self.client, self.plan.model, key=f"{self.run}/{key}", most_tokens=self.plan.most_tokens)


async def drive(episode: Episode, policy: Policy) -> None:
    """Let an agent act until its episode ends. Raises UserError for a fault that every other episode would meet too.

    The time limit may end the agent's turn, but never a call: what the environment did is always in the record.
    """
    limit, began = episode.rules.time_limit_s, time.monotonic()
    while episode.end is None:
        left = None if limit is None else limit - (time.monotonic() - began)
        if left is not None and left <= 0:
            episode.stop(End.time_limit, f"{limit:g} seconds")
            return
        asked = time.monotonic()
        episode.doing = "thinking"
        try:
            async with asyncio.timeout(left):
                said = await policy.say(episode)
        except TimeoutError:
            episode.stop(End.time_limit, f"{limit:g} seconds")
        except ModelFault as fault:
            if fault.kind in HOPELESS:
                raise UserError(f"The rollouts cannot go on: {fault}") from fault
            end = End.context_limit if fault.kind is FaultKind.context_overflow else End.model_error
            episode.stop(end, f"{fault.kind}: {fault.message}")
        else:
            await episode.take(said, model_s=time.monotonic() - asked)


def audit_of(plan: Plan) -> dict[tuple[str, int, str], str]:
    """What the audit calls verifiers, as scoring wants it."""
    found = {}
    for name, called in plan.audit.items():
        environment, task, mode = name.split("/")
        found[environment, int(task), mode] = called
    return found
