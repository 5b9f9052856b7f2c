"""Can an LLM stand in for the environment? The same calls, done by the code on a database and imagined by a model."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from curation.estimates import rate
from pipeline.llm.client import Client
from pipeline.llm.faults import ModelFault
from pipeline.llm.replies import FILE_NAME, Replies
from pipeline.llm.request import Message, Request, Usage
from pipeline.llm.text import Unreadable, read_json
from pipeline.model import Call, Environment
from pipeline.runtime.diff import SCHEMA, diff
from pipeline.runtime.host import Host
from train.ablate import Answer, Table, with_interval
from train.pass_rates import mean_of_tasks
from train.rollout import HOPELESS

if TYPE_CHECKING:
    from pipeline.llm.profiles import Profile
    from pipeline.runtime.hosted import HostedProgram
    from pipeline.runtime.replies import Reply
    from pipeline.runtime.tools import Tool
    from pipeline.workspace import Workspace

LONGEST_STATE = 60_000
"""Characters of a database that are put into a prompt (about 15,000 tokens); tasks on larger ones are left out."""

Rows = dict[str, list[dict[str, Any]]]
"""A database as rows by table."""

SHAPE: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "status": {"type": "integer"},
        "body": {},
        "changes": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "table": {"type": "string"},
                    "before": {"type": ["object", "null"]},
                    "after": {"type": ["object", "null"]},
                },
                "required": ["table", "before", "after"],
            },
        },
    },
    "required": ["status", "body", "changes"],
}

INSTRUCTION = """\
You are the backend of the service below. You are given its tables with all their rows, and one call of its API. Reply \
with what the backend would do, as one JSON document:

- "status": the HTTP status
- "body": the JSON body of the response
- "changes": the rows that change, each as {"table": …, "before": the whole row or null if it is added, "after": the \
whole row or null if it is removed}; empty where nothing changes

You are signed in as user 1. The time is {now}."""


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a case (see `Case`): whether the model's result and state were those of the code, and what each took.

    `case` and `number` are places, counted from 0. `status` and `body` say whether they are equal. In `rows_wrong`
    rows the model's state differs from the real one after the call.
    """

    case: int
    environment: str
    task: int
    number: int
    tool: str
    writes: bool
    status: bool
    body: bool
    rows_wrong: int
    real_ms: float
    model_s: float
    usage: Usage


@dataclass(frozen=True, slots=True)
class Case:
    """A task's calls, as a reference solution or an agent made them."""

    environment: str
    task: int
    calls: tuple[Call, ...]


def ablate_simulator(
    workspace: Workspace,
    cases: Sequence[Case],
    model: Profile,
    *,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Answer:
    """Do the calls for real and let a model imagine them, from its own state of before, comparing after each call.

    `tell` is called with the tasks done and all. A model whose server fails for good stops it; replies are kept.
    """
    replies = Replies(workspace.path / FILE_NAME)
    steps: list[Step] = []
    left_out: Counter[str] = Counter()
    why = ""
    try:
        with Host.from_settings(workspace.settings) as host:
            why = asyncio.run(_all(workspace, host, cases, model, replies, steps, left_out, tell))
    finally:
        replies.close()
    return _answer(steps, cases, left_out, model, why)


async def _all(
    workspace: Workspace,
    host: Host,
    cases: Sequence[Case],
    model: Profile,
    replies: Replies,
    steps: list[Step],
    left_out: Counter[str],
    tell: Callable[[int, int], None],
) -> str:
    """Do all tasks; returns why it stopped, if it did."""
    client = Client(replies)
    try:
        for number, case in enumerate(cases):
            environment = workspace.catalog.environment(case.environment)
            with host.program(environment) as program:
                try:
                    found = await _case(number, case, environment, program, client, model)
                except ModelFault as fault:
                    if fault.kind in HOPELESS:
                        return str(fault)
                    left_out[f"no reply ({fault.kind})"] += 1
                    continue
            if isinstance(found, str):
                left_out[found] += 1
            else:
                steps += found
            tell(number + 1, len(cases))
    finally:
        await client.close()
    return ""


async def _case(
    place: int, case: Case, environment: Environment, program: HostedProgram, client: Client, model: Profile
) -> list[Step] | str:
    """The steps of a task, or why it is left out."""
    tools = {tool.name: tool for tool in program.tools}
    believed = rows_of(program.template)
    if len(json.dumps(believed)) > LONGEST_STATE:
        return "the database does not fit into a prompt"
    steps = []
    with program.instance() as instance:
        for number, call in enumerate(case.calls):
            if call.tool not in tools:
                return "a call of a tool that is not there"
            began = time.perf_counter()
            reply = await instance.acall(call.tool, dict(call.arguments))
            real_ms = (time.perf_counter() - began) * 1000
            imagined, usage = await _imagine(environment, tools[call.tool], call, believed, client, model)
            believed = apply_changes(believed, imagined.get("changes"))
            steps.append(
                Step(
                    case=place,
                    environment=case.environment,
                    task=case.task,
                    number=number,
                    tool=call.tool,
                    writes=tools[call.tool].writes,
                    status=imagined.get("status") == reply.status,
                    body=_same_body(imagined.get("body"), reply),
                    rows_wrong=rows_wrong(believed, rows_of(instance.snapshot())),
                    real_ms=real_ms,
                    model_s=usage.seconds,
                    usage=usage,
                )
            )
    return steps


async def _imagine(
    environment: Environment, tool: Tool, call: Call, believed: Rows, client: Client, model: Profile
) -> tuple[dict[str, Any], Usage]:
    """What the model says the call comes to; nothing where it cannot be read."""
    told = {
        "service": environment.description,
        "schema": [table.ddl for table in environment.schema],
        "rows": believed,
        "operation": {"name": tool.name, "description": tool.description, "parameters": tool.input_schema},
        "call": {"operation": call.tool, "arguments": dict(call.arguments)},
    }
    instruction = INSTRUCTION.replace("{now}", environment.now.isoformat())
    text = json.dumps(told, ensure_ascii=False, default=str)
    reply = await client.ask(Request((Message("system", instruction), Message("user", text)), schema=SHAPE), model)
    try:
        value = read_json(reply.text).value
    except Unreadable:
        value = None
    return value if isinstance(value, dict) else {}, reply.usage


def _same_body(imagined: Any, reply: Reply) -> bool:
    return _text(imagined) == _text(reply.body)


def rows_of(snapshot: bytes) -> Rows:
    """All rows of a database, by table."""
    changes = diff(_empty(), snapshot)
    return {name: found["added"] for name, found in changes.items() if name != SCHEMA}


@cache
def _empty() -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("PRAGMA user_version = 1")
        return connection.serialize()


def apply_changes(rows: Rows, changes: Any) -> Rows:
    """The rows after changes as a model gives them; what makes no sense changes nothing."""
    after = {name: list(found) for name, found in rows.items()}
    for change in changes if isinstance(changes, list) else ():
        if not isinstance(change, dict) or not isinstance(change.get("table"), str):
            continue
        table = after.setdefault(change["table"], [])
        old, new = change.get("before"), change.get("after")
        place = _place(table, old) if isinstance(old, dict) else None
        row = {**(table[place] if place is not None else {}), **new} if isinstance(new, dict) else None
        if place is not None:
            del table[place]
        if row is not None:
            table.append(row)
    return after


def _place(table: Sequence[Mapping[str, Any]], old: Mapping[str, Any]) -> int | None:
    """Where the row is that has these values; else where its first column (the key, as a rule) has this one."""
    for number, row in enumerate(table):
        if all(_text(row.get(name)) == _text(value) for name, value in old.items()):
            return number
    key = next(iter(table[0]), "") if table else ""
    return next((number for number, row in enumerate(table) if key in old and row.get(key) == old[key]), None)


def rows_wrong(believed: Rows, real: Rows) -> int:
    """In how many rows two states differ; a row that is wrong counts once."""
    wrong = 0
    for name in believed.keys() | real.keys():
        one, other = (Counter(map(_text, rows.get(name, ()))) for rows in (believed, real))
        wrong += max((one - other).total(), (other - one).total())
    return wrong


def _text(value: Any) -> str:
    """A value as text that is equal for equal JSON; 1 and 1.0 are the same number to JSON."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(str(name))}:{_text(value[name])}" for name in sorted(value, key=str)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False, default=str)


def _answer(
    steps: Sequence[Step], cases: Sequence[Case], left_out: Mapping[str, int], model: Profile, why: str
) -> Answer:
    tasks: dict[int, list[Step]] = {}
    for step in steps:
        tasks.setdefault(step.case, []).append(step)

    def share(of: Callable[[Step], bool], among: Sequence[Step] = steps) -> str | None:
        chosen = set(map(id, among))
        groups = [[step for step in found if id(step) in chosen] for found in tasks.values()]
        return with_interval(mean_of_tasks([statistics.fmean(map(of, group)) for group in groups if group]))

    writes = [step for step in steps if step.writes]
    usd = [step.usage.usd for step in steps if step.usage.usd is not None]
    whole = sum(not any(step.rows_wrong for step in found) for found in tasks.values())

    def mean(values: Sequence[float]) -> float | None:
        return round(statistics.fmean(values), 4) if values else None

    rows = [
        ["state right after a call", "all, by definition", share(lambda step: not step.rows_wrong)],
        ["state right after a call that writes", "all, by definition", share(lambda s: not s.rows_wrong, writes)],
        ["tasks whose state is right throughout", "all, by definition", with_interval(rate(whole, len(tasks)))],
        ["status right", "all, by definition", share(lambda step: step.status)],
        ["body right", "all, by definition", share(lambda step: step.body)],
        ["rows wrong after the last call, mean", 0, mean([found[-1].rows_wrong for found in tasks.values()])],
        ["milliseconds a step, median", mean([statistics.median(s.real_ms for s in steps)] if steps else []),
         mean([statistics.median(1000 * s.model_s for s in steps)] if steps else [])],
        ["tokens a step, mean", 0, mean([step.usage.tokens_in + step.usage.tokens_out for step in steps])],
        ["usd a step, mean", 0, mean(usd)],
    ]  # fmt: skip
    by_number = [
        [number + 1, len(found), share(lambda step: not step.rows_wrong, found)]
        for number in range(max((step.number + 1 for step in steps), default=0))
        if (found := [step for step in steps if step.number == number])
    ]
    return Answer(
        question="How often does a model that imagines the environment keep its state right, and what does it take?",
        n={
            "tasks": len(tasks),
            "calls": len(steps),
            "calls that write": len(writes),
            "tasks left out": sum(left_out.values()),
        },
        tables=[
            Table("Side by side", ["", "code and database", f"{model.model} as the environment"], rows),
            Table("State right, by step", ["step", "calls", "share, 95 % interval"], by_number),
        ],
        notes=[
            "Both are given the same calls, those of reference solutions or of recorded rollouts. After each call the "
            "model's state, which goes on from its own, is compared row by row with the database.",
            "Shares are means over tasks with 95 % intervals over tasks.",
            *(f"Left out, {reason}: {count} tasks." for reason, count in left_out.items()),
        ],
        state="stopped" if why or not steps else "done",
        why=why or ("" if steps else "No task could be tried."),
        data={"steps": [asdict(step) for step in steps], "planned": len(cases)},
    )
