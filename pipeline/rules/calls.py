"""Checks by calling: every tool once, with arguments made from its schema and real rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from pipeline.findings import Finding
from pipeline.model import Call, Environment
from pipeline.rules.blocked import tasks_reading
from pipeline.runtime.arguments import sample_arguments
from pipeline.runtime.host import HostedProgram, Reply
from pipeline.runtime.tools import Tool

TRIES = 3
"""Argument samples tried for a tool until one is accepted; a refusal (4xx) may be the sample's fault."""

FAULTS = {
    "server_error": ("tool_server_error", "answers plausible arguments with a server error"),
    "timeout": ("tool_timeout", "does not answer within the time limit"),
    "crash": ("tool_crash", "ends the process it runs in"),
}


def call_findings(environment: Environment, program: HostedProgram, *, seed: int = 0) -> Iterator[Finding]:
    """Call every tool on a fresh instance; server errors, hangs and crashes are faults of the environment.

    A tool is called with up to `TRIES` samples until one is accepted, and the first fault met is reported.
    Refusals (4xx) are no fault: sampled arguments can break a rule of the scenario.
    """
    for tool in program.tools:
        for attempt in range(TRIES):
            call = Call(tool.name, sample_arguments(tool.input_schema, program.template, seed=seed + attempt))
            with program.instance() as instance:
                reply = instance.call(call.tool, dict(call.arguments))
            if reply.error is not None and reply.error.kind in FAULTS:
                yield faulty_tool(environment, program.tools, tool, call, reply)
                break
            if reply.ok:
                break


def faulty_tool(environment: Environment, tools: Sequence[Tool], tool: Tool, call: Call, reply: Reply) -> Finding:
    """The finding for a tool whose call failed by the environment's fault."""
    assert reply.error is not None
    code, message = FAULTS[reply.error.kind]
    detail = reply.error.detail if isinstance(reply.error.detail, dict) else {}
    line = f": {detail['code_line'].strip()}" if detail.get("code_line") else ""
    return Finding(
        code,
        "error",
        f"code: {tool.name}",
        f"{tool.name} {message}",
        evidence=f"{json.dumps(dict(call.arguments), ensure_ascii=False)} → {reply.error.message}{line}",
        remedy="correct the handler so that it succeeds, or refuses with a 4xx and a reason",
        tasks=tasks_only_this_tool_serves(environment, tools, tool),
    )


def tasks_only_this_tool_serves(environment: Environment, tools: Sequence[Tool], tool: Tool) -> tuple[int, ...]:
    """The tasks that read a table which no other tool of the same kind (reading or writing) works on.

    The spec says which tables an operation needs; its first one is taken as the one it is about.
    """
    about = {op.operation_id: op.tables[0].lower() for op in environment.operations if op.tables}
    table = about.get(tool.operation_id)
    if table is None or any(
        other.operation_id != tool.operation_id
        and other.writes == tool.writes
        and about.get(other.operation_id) == table
        for other in tools
    ):
        return ()
    return tasks_reading(environment, [table])
