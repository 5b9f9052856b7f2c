"""Stage 1 of a run: rounds of requests for new scenarios until there are enough, or nothing new comes."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from pipeline.engine.board import Row, State
from pipeline.engine.flow import FINAL, earlier_attempts
from pipeline.llm.faults import ModelFault
from pipeline.llm.request import Reply, Request
from pipeline.model import normalise
from pipeline.stages import scenario as stage
from pipeline.stages.making import make
from pipeline.stages.scenario import Scenario
from pipeline.stages.step import Attempt, Step

if TYPE_CHECKING:
    from pipeline.engine.engine import Engine


async def find_scenarios(engine: Engine) -> None:
    """Ask for scenarios, round by round. Ends when there are enough, when ten rounds brought nothing, or on a fault."""
    board = engine.board
    while (missing := board.count - len(board.wanted)) > 0:
        if board.dry_rounds >= stage.DRY_ROUNDS:
            engine.set_stage(
                None,
                "scenario",
                State.failed,
                why=f"{stage.DRY_ROUNDS} rounds brought nothing new: {len(board.wanted)} of {board.count} scenarios "
                "were found. Give other seeds with --seeds, or another model.",
            )
            return
        await engine.ready(None)
        engine.set_stage(None, "scenario", State.running)
        try:
            await play_round(engine, missing)
        except ModelFault as fault:
            state = State.failed if fault.kind in FINAL else State.waiting
            engine.set_stage(None, "scenario", state, why=str(fault), fault=fault.kind)
            return
    engine.set_stage(None, "scenario", State.done)


async def play_round(engine: Engine, missing: int) -> None:
    """One round: several requests at once, and then everything that came of them judged together, in order.

    What is asked depends only on the rounds before, so a round that was interrupted asks the same again.
    """
    board = engine.board
    number = next((n for n, each in board.rounds.items() if not each.ended), len(board.rounds) + 1)
    if number not in board.rounds:
        requests = stage.requests_in_round(missing)
        engine.emit("round", {"number": number, "requests": requests, "room": missing})
    before = [_scenario(row) for row in board.rows.values() if row.round < number]
    batches = [batch(engine, before, number, at) for at in range(board.rounds[number].requests)]
    candidates: list[Scenario] = []
    for result in await asyncio.gather(*batches, return_exceptions=True):  # the others' replies are kept in any case
        if isinstance(result, BaseException):
            raise result
        candidates += result
    accepted, refused = await stage.admit(
        candidates,
        engine.known,
        before,
        taken=engine.taken,
        nearness=engine.nearness,
        cap=stage.category_cap(board.count, len({known.category for known in engine.known})),
        room=board.rounds[number].room,
    )
    for candidate in accepted:
        engine.admit(candidate, number)
    names = [normalise(candidate.name) for candidate in accepted]
    told = [{"name": each.name, "why": each.why} for each in refused]
    engine.emit("round", {"number": number, "admitted": names, "refused": told})


async def batch(engine: Engine, before: list[Scenario], number: int, at: int) -> list[Scenario]:
    """The scenarios of one request of a round, scored; none where none came in the form that was asked for."""
    slot, sample = f"{number}.{at}", 1000 * number + 10 * at  # apart even where two rounds show the same examples
    rng = random.Random(f"{engine.config.seed}/{slot}")  # noqa: S311 - it chooses examples
    content = await _made(engine, stage.invent_step(engine.known, before, slot, rng, hint=engine.config.hint), sample)
    if content is None:
        return []
    candidates = stage.candidates_in(content)
    scores = await _made(engine, stage.score_step(candidates, f"{slot} scores"), sample)
    return [] if scores is None else stage.scored(candidates, scores)


async def _made(engine: Engine, step: Step, sample: int) -> str | None:
    async def ask(request: Request) -> Reply:
        return await engine.ask(request, step, None)

    def tell(attempt: Attempt, right: bool) -> None:
        engine.record(None, step, attempt, right=right)

    earlier = await earlier_attempts(engine, None, step, engine.board.source.step(step.name))
    outcome = await make(
        step, ask, engine.check, earlier=earlier, allowed=engine.config.attempts, sample=sample, tell=tell
    )
    return outcome.attempt.content if outcome.attempt else None


def _scenario(row: Row) -> Scenario:
    return Scenario(row.title, row.category, row.description, row.score)
