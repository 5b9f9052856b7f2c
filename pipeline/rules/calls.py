"""Checks by calling: every tool, with what is wrong with its replies and its effects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pipeline.findings import Finding
from pipeline.model import Environment
from pipeline.rules.blocked import tasks_reading
from pipeline.rules.called import Called, call_tools
from pipeline.rules.effects import effect_findings
from pipeline.rules.responses import response_findings
from pipeline.runtime.host import HostedProgram
from pipeline.runtime.tools import Tool

FAULTS = {
    "server_error": ("tool_server_error", "answers plausible arguments with a server error"),
    "timeout": ("tool_timeout", "does not answer within the time limit"),
    "crash": ("tool_crash", "ends the process it runs in"),
}
"""The finding for each kind of error that is the environment's fault, and its message."""


def call_findings(environment: Environment, program: HostedProgram, *, seed: int = 0) -> Iterator[Finding]:
    """Call every tool (see `called`) and judge what came of it; `seed` chooses the arguments."""
    yield from called_findings(environment, program, list(call_tools(program, seed=seed)))


def called_findings(environment: Environment, program: HostedProgram, made: Sequence[Called]) -> Iterator[Finding]:
    """What calls show: faults of tools, replies unlike those declared, effects that are missing or should not be."""
    yield from fault_findings(environment, program.tools, made)
    yield from response_findings(environment.operations, made)
    yield from effect_findings(program, made)


def fault_findings(environment: Environment, tools: Sequence[Tool], made: Iterable[Called]) -> Iterator[Finding]:
    """Server errors, hangs and crashes are faults of the environment.

    Refusals (4xx) are none: sampled arguments can break a rule of the scenario.
    """
    for called in made:
        if called.fault is None or called.reply.error is None:
            continue
        error = called.reply.error
        code, message = FAULTS[called.fault]
        remedy = "correct the handler so that it succeeds, or refuses with a 4xx and a reason"
        detail = error.detail if isinstance(error.detail, dict) else {}
        if detail.get("cause") == "response":
            code, message = "response_invalid", "answers what its own response model forbids, so a server answers 500"
            remedy = "return what the response model declares, or let the model allow what the rows hold"
        line = f": {detail['code_line'].strip()}" if detail.get("code_line") else ""
        yield Finding(
            code,
            "error",
            f"code: {called.tool.name}",
            f"{called.tool.name} {message}",
            evidence=f"{called.asked} → {error.message}{line}",
            remedy=remedy,
            tasks=tasks_only_this_tool_serves(environment, tools, called.tool),
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
