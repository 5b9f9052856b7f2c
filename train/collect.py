"""Rollouts of a policy that is asked for many turns at once, as a trainer's own generation is.

All episodes of a batch take their turns together: one generation, then all tool calls at once. The environments run
beside it in an event loop of their own, which also loads the next batch's programs while the trainer trains.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pipeline.runtime.hosted import Instance
from pipeline.runtime.loading import LoadFailed
from train.closing import played, unplayed
from train.episode import Episode
from train.programs import Programs, Stage
from train.protocol import Said
from train.rules import Rules
from train.tokens import Codec, TokenConversation, TokenTurn
from train.trajectory import End, Trajectory
from train.worlds import Task, Worlds

if TYPE_CHECKING:
    from train.scoring import Scorer

T = TypeVar("T")

Generate = Callable[[list[list[int]]], tuple[list[list[int]], list[list[float]] | None]]
"""From contexts, what is said in each (the end token included, if it ended), and logprobs where they are known."""


Beat = Callable[[int], None]
"""Told before each generation how many rollouts go on, for whoever watches."""


def _silent(live: int) -> None:
    """Tells nobody."""


def _alone(alive: bool) -> bool:
    """Whether any process has episodes that go on, where there is only this one."""
    return alive


class Loop:
    """An event loop in a thread of its own. A context manager."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="awm-environments", daemon=True)

    def __enter__(self) -> Loop:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What a coroutine comes to; waits for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def soon(self, call: Callable[[], None]) -> None:
        """Have something called in the loop, without waiting."""
        self._loop.call_soon_threadsafe(call)


@dataclass(frozen=True, slots=True)
class Collected:
    """A rollout that has ended: its record, scored, and its turns as ids."""

    trajectory: Trajectory
    turns: list[TokenTurn]


@dataclass
class _Seat:
    """An episode in a batch, with what its record will begin with."""

    blank: Trajectory
    stage: Stage
    instance: Instance
    episode: Episode
    conversation: TokenConversation
    turns: list[TokenTurn] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)


@dataclass
class Collector:
    """Makes rollouts. `most_tokens` is what a turn may have, `policy` how the agent is named in the records.

    `anyone` tells whether any of several processes has episodes that go on: all must generate equally often.
    """

    loop: Loop
    worlds: Worlds
    programs: Programs
    scorer: Scorer
    codec: Codec
    rules: Rules
    most_tokens: int
    policy: str
    call_timeout_s: float = 10.0
    anyone: Callable[[bool], bool] = _alone

    def prepare(self, tasks: Sequence[Task]) -> None:
        """Begin to load what tasks need, without waiting."""
        names = {task.environment for task in tasks}
        self.loop.soon(lambda: self.programs.prepare(names))

    def collect(
        self, tasks: Sequence[Task], generate: Generate, *, step: int | None = None, beat: Beat = _silent
    ) -> list[Collected]:
        """One rollout for each task, in order."""
        stack = AsyncExitStack()
        try:
            seats = self.loop.run(self._open(tasks, stack))
            playing = [seat for seat in seats if isinstance(seat, _Seat)]
            while self.anyone(bool(live := [seat for seat in playing if seat.episode.end is None])):
                beat(len(live))
                self._turn(live, generate)
            return self.loop.run(self._close(seats, step))
        finally:
            self.loop.run(stack.aclose())

    def _turn(self, seats: list[_Seat], generate: Generate) -> None:
        """One turn of all seats. Something is generated even for none: other processes wait for it."""
        asked, prompts = [], []
        for seat in seats:
            context = seat.conversation.context()
            if self.rules.max_context is not None and len(context) + self.most_tokens > self.rules.max_context:
                seat.episode.stop(End.context_limit, f"{len(context)} tokens before the turn")
            else:
                asked.append(seat)
                prompts.append(context)
        said, logprobs = generate(prompts)
        for number, seat in enumerate(asked):
            seat.turns.append(TokenTurn(prompts[number], said[number], logprobs[number] if logprobs else None))
        self.loop.run(self._take(asked))

    async def _open(self, tasks: Sequence[Task], stack: AsyncExitStack) -> list[_Seat | Trajectory]:
        """A seat for each task, or what is known of a rollout whose environment does not load."""
        self.programs.prepare({task.environment for task in tasks})
        tries: Counter[Task] = Counter()
        seats: list[_Seat | Trajectory] = []
        for task in tasks:
            blank = unplayed(self.worlds, task, tries[task], policy=self.policy, rules=self.rules)
            tries[task] += 1
            try:
                stage = await stack.enter_async_context(self.programs.use(task.environment))
            except LoadFailed as failed:
                seats.append(replace(blank, detail=failed.finding.message))
                continue
            instance = stack.enter_context(stage.program.instance())
            episode = Episode(blank.text, instance, stage.shown, self.rules, call_timeout_s=self.call_timeout_s)
            conversation = TokenConversation.begin(self.codec, self.rules, episode.head)
            seats.append(_Seat(blank, stage, instance, episode, conversation))
        return seats

    async def _take(self, seats: Sequence[_Seat]) -> None:
        await asyncio.gather(*map(self._take_one, seats))

    async def _take_one(self, seat: _Seat) -> None:
        sampled = seat.turns[-1]
        ids = sampled.completion_ids
        said = Said(
            content=self.codec.text(ids),
            cut=not ids or ids[-1] != self.codec.end,
            completion_ids=tuple(ids),
            logprobs=tuple(sampled.logprobs or ()),
            tokens_in=len(sampled.prompt_ids),
            tokens_out=len(ids),
        )
        turn = await seat.episode.take(said)
        if turn.shown is not None:
            seat.conversation.add(turn, ids)
        limit = self.rules.time_limit_s
        if limit is not None and time.perf_counter() - seat.began > limit:
            seat.episode.stop(End.time_limit, f"{limit:g} seconds")

    async def _close(self, seats: Sequence[_Seat | Trajectory], step: int | None) -> list[Collected]:
        return list(await asyncio.gather(*(self._finish(seat, step) for seat in seats)))

    async def _finish(self, seat: _Seat | Trajectory, step: int | None) -> Collected:
        if isinstance(seat, Trajectory):
            record, turns, initial, final = seat, [], b"", b""
            environment = self.worlds.environment(seat.environment)
        else:
            initial, environment, turns = seat.stage.program.template, seat.stage.environment, seat.turns
            record, final = await played(seat.blank, seat.episode, seat.instance, initial)
            record = replace(record, seconds=round(time.perf_counter() - seat.began, 3))
        reward = await self.scorer.score(record, environment, initial, final)
        return Collected(replace(record, step=step, reward=reward), turns)
