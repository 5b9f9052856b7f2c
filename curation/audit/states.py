"""Known solutions and the final states they lead to: from blueprints and persons, by playing their calls again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from pipeline.model import Call
from pipeline.runtime.hosted import HostedProgram

ANOTHER_TIME = timedelta(minutes=37, seconds=11)
"""How much later a solution is played again: another time of the same day, since tasks may speak of days."""


@dataclass(frozen=True)
class Known:
    """A state and an answer that solve a task.

    `source` says how that is known. `asks` tells whether the answer belongs to the solution: a trajectory always ends
    in some words. `calls` are those that led there, where they are known; `now` is the time it all happened at.
    """

    task: int
    source: str
    initial: bytes
    final: bytes
    answer: str | None
    asks: bool
    now: datetime
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True)
class Played:
    """Where some calls lead, what they came back with, and the first that was refused or failed ("": none)."""

    final: bytes
    replies: tuple[str, ...]
    refused: str


def play(program: HostedProgram, calls: Sequence[Call]) -> Played:
    """Make calls in a new instance."""
    with program.instance() as instance:
        refused, replies = "", []
        for call in calls:
            reply = instance.call(call.tool, dict(call.arguments))
            replies.append(reply.text)
            if not reply.ok and not refused:
                refused = f"{shown(call)}: {reply.error.message if reply.error else reply.text}"
        return Played(instance.snapshot(), tuple(replies), refused)


def other_orders(program: HostedProgram, calls: Sequence[Call]) -> list[tuple[Call, ...]]:
    """The same calls with two neighbours that write changed round, one pair at a time."""
    writes = {tool.name for tool in program.tools if tool.writes}
    places = [place for place, call in enumerate(calls) if call.tool in writes]
    found = []
    for first, second in pairwise(places):
        turned = list(calls)
        turned[first], turned[second] = turned[second], turned[first]
        if calls[first] != calls[second]:
            found.append(tuple(turned))
    return found


def shown(call: Call) -> str:
    """A call as people read it."""
    return f"{call.tool}({', '.join(f'{name}={json.dumps(value)}' for name, value in call.arguments.items())})"
