"""Asking until it is right: attempt, check, correct, and keep the best where that is allowed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pipeline.findings import Finding
from pipeline.llm.faults import ANSWERED, ModelFault
from pipeline.llm.request import Reply, Request
from pipeline.llm.text import Unreadable
from pipeline.stages.step import ATTEMPTS, UNREADABLE, Attempt, Step, best, open_faults, request_for, steady

Ask = Callable[[Request], Awaitable[Reply]]
Check = Callable[[Step, str], Awaitable[Sequence[Finding]]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a step: the attempt that stands, if any, and whether it is right or only the best."""

    attempt: Attempt | None
    right: bool
    attempts: tuple[Attempt, ...]


async def make(
    step: Step,
    ask: Ask,
    check: Check,
    *,
    earlier: Sequence[Attempt] = (),
    allowed: int = ATTEMPTS,
    hint: str = "",
    sample: int = 0,
    tell: Callable[[Attempt, bool], None],
) -> Outcome:
    """Ask for a step until an attempt is right, at most `allowed` times, counting the `earlier` attempts.

    An earlier attempt number 0 is what to start from (a version that a person sent back), and does not count.

    `check` runs a step's check on a content. `tell` hears each new attempt and whether it is right.
    `sample` tells this making of the step from others of the same. Raises ModelFault where no reply can be had; a
    reply that is empty, refused or cut counts as an attempt.
    """
    attempts = list(earlier)
    while True:
        if attempts and attempts[-1].content is not None and not open_faults(step, attempts[-1], attempts[:-1]):
            return Outcome(attempts[-1], True, tuple(attempts))
        if attempts and attempts[-1].number >= allowed:
            return Outcome(best(step, attempts), False, tuple(attempts))
        number = attempts[-1].number + 1 if attempts else 1
        try:
            reply = await ask(request_for(step, attempts, hint=hint, sample=sample + number))
        except ModelFault as fault:
            if fault.kind not in ANSWERED:
                raise
            attempts.append(Attempt(number, None, (_unreadable(step, str(fault)),)))
            tell(attempts[-1], False)
            continue
        try:
            content = step.read(reply.text)
            findings = steady(await check(step, content))
            attempts.append(Attempt(number, content, findings, reply.keys))
        except Unreadable as unreadable:
            attempts.append(Attempt(number, None, (_unreadable(step, str(unreadable)),), reply.keys))
        last = attempts[-1]
        tell(last, last.content is not None and not open_faults(step, last, attempts[:-1]))


def _unreadable(step: Step, message: str) -> Finding:
    return Finding(UNREADABLE, "error", f"your reply ({step.name})", message)
