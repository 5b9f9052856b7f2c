"""Known solutions from a model: it solves a task several times, and what most of its tries agree on is kept.

Agreement is about what happened, not about how or in which words: the same rows changed in the same way and, where
nothing changed, the same numbers, dates or words in the answer. One try that nothing confirms proves nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from curation.audit.states import play
from curation.audit.subject import Diff, differences, meaning
from curation.audit.tables import read_tables
from curation.audit.wording import DATE_TIME, dates, numbers, plain
from curation.solutions import save_solution
from pipeline.catalog import Catalog
from pipeline.llm.client import Client
from pipeline.llm.faults import ANSWERED, ModelFault
from pipeline.llm.profiles import Profile
from pipeline.llm.request import Message, Request
from pipeline.llm.text import split_thinking
from pipeline.model import Author, AuthorKind, Call, Environment
from pipeline.runtime.host import Host, HostedProgram

MOST_STEPS = 30
"""Replies of the model in one try, as many as AWM's own agent may use."""

TRIES = 3
"""Tries at one task."""

LONGEST_RESULT = 8000
"""Characters of a tool's result that the model is shown."""

SYSTEM = """\
You carry out one task for the signed-in user, whose id is 1, by calling tools. Look up what you need; invent nothing.
Change exactly what the task asks for and nothing else, then stop calling tools. If the task asks to be told something,
your last message is the answer and nothing but the answer; otherwise it is the single word DONE.
If a rule stands against the task, change nothing, and say why."""

DONE = "DONE"


@dataclass(frozen=True)
class Try:
    """What one try came to: its calls that worked, its answer (None: it said that there is none to give), its end."""

    calls: tuple[Call, ...]
    answer: str | None
    result: str


@dataclass(frozen=True)
class Agreement:
    """How often a task was tried, and what most tries agree on (None where they do not)."""

    task: int
    tries: int
    agreeing: int
    calls: tuple[Call, ...] | None
    answer: str | None


async def solve(
    environment: Environment, program: HostedProgram, task: int, client: Client, profile: Profile, *, tries: int = TRIES
) -> Agreement:
    """Have a model solve a task `tries` times. Kept is what at least two tries, and more than half, agree on.

    Raises ModelFault where the model cannot be asked; a try in which it gives no usable reply counts as none.
    """
    ended = await asyncio.gather(
        *(_attempt(environment.tasks[task], program, client, profile, number) for number in range(tries))
    )
    groups: dict[str, list[Try]] = {}
    for one in ended:
        if one is not None:
            groups.setdefault(one.result, []).append(one)
    best = max(groups.values(), key=len, default=[])
    if len(best) < 2 or 2 * len(best) <= tries:
        return Agreement(task, tries, len(best), None, None)
    shortest = min(best, key=lambda one: len(one.calls))
    return Agreement(task, tries, len(best), shortest.calls, shortest.answer)


async def solve_environment(
    catalog: Catalog, name: str, host: Host, client: Client, profile: Profile, *, tries: int = TRIES
) -> list[Agreement]:
    """Have a model solve the tasks of an environment that have no known solution; what it agrees on is kept.

    The solutions become parts of the environment, by the model, with the agreement beside them. Raises ModelFault, and
    LoadFailed where the environment does not run.
    """
    environment = catalog.environment(name)
    open_tasks = [task for task in range(len(environment.tasks)) if environment.solution(task) is None]
    if not open_tasks or environment.code is None:
        return []
    with host.program(environment) as program:
        found = await asyncio.gather(
            *(solve(environment, program, task, client, profile, tries=tries) for task in open_tasks)
        )
    for one in found:
        if one.calls is not None:
            agreement = {"tries": one.tries, "agreeing": one.agreeing}
            model = Author(AuthorKind.model, profile.model)
            save_solution(catalog, name, one.task, one.calls, one.answer, model, extra={"agreement": agreement})
    return list(found)


async def _attempt(task: str, program: HostedProgram, client: Client, profile: Profile, number: int) -> Try | None:
    """One try; None where the model gave no usable reply or did not come to an end."""
    tools = tuple(_as_function(tool) for tool in program.tools)
    messages = [Message("system", SYSTEM), Message("user", task)]
    calls: list[Call] = []
    with program.instance() as instance:
        for _ in range(MOST_STEPS):
            try:
                reply = await client.ask(Request(tuple(messages), tools=tools, raw=True, sample=number), profile)
            except ModelFault as fault:
                if fault.kind in ANSWERED:
                    return None
                raise
            if not reply.calls:
                _, said = split_thinking(reply.text)
                return _ended(program, calls, said.strip()) if said.strip() else None
            messages.append(Message("assistant", reply.text, reply.calls))
            for call in reply.calls:
                arguments = _arguments(call.arguments)
                if arguments is None:
                    shown = "The arguments are not a JSON object."
                else:
                    answered = await instance.acall(call.name, arguments)
                    shown = answered.text[:LONGEST_RESULT]
                    if answered.ok:
                        calls.append(Call(call.name, arguments))
                messages.append(Message("tool", shown, call_id=call.id))
    return None


def _ended(program: HostedProgram, calls: Sequence[Call], said: str) -> Try | None:
    """The end of a try: its calls are played again, without those that failed, so that they are a solution."""
    played = play(program, calls)
    if played.refused:
        return None
    changed = differences(program.template, played.final)
    answer = None if said.rstrip(".").upper() == DONE else said
    told = "" if changed or answer is None else _told(answer)
    volatile = _unasked_moments(changed, calls)
    return Try(tuple(calls), answer, f"{meaning(changed, read_tables(played.final), volatile)}\n{told}")


def _told(answer: str) -> str:
    """What an answer says, whatever its wording: its dates and numbers, else its words."""
    facts = sorted({*dates(answer), *(f"{number:g}" for number in numbers(answer))})
    return " ".join(facts) or plain(answer).strip(".! ")


def _unasked_moments(changed: Diff, calls: Sequence[Call]) -> frozenset[tuple[str, str]]:
    """The (table, column) with times of day that no call gave: they only say when it was done."""
    given = json.dumps([call.arguments for call in calls]).replace("T", " ")
    found = set()
    for table, kinds in changed.items():
        for row in (*kinds["added"], *(row["after"] for row in kinds["changed"])):
            for column, value in row.items():
                moment = DATE_TIME.fullmatch(value) if isinstance(value, str) else None
                if moment and moment["time"] and f"{moment['day']} {moment['time'][:5]}" not in given:
                    found.add((table, column))
    return frozenset(found)


def _as_function(tool: Any) -> dict[str, Any]:
    """A tool as the chat API has functions."""
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.input_schema)}
    return {"type": "function", "function": function}


def _arguments(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
