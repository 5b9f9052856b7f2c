"""Proves an environment by running it: its rows build, its tools are those specified, and its tasks are what they say.

A blueprint knows more than its environment: what is right for every task, and ways of getting it wrong. So each task
is played: the reference solution must be accepted, doing nothing must not be, and neither must any of the wrong ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

from pipeline.blueprints.make import Blueprint
from pipeline.blueprints.tasks.planning import Task
from pipeline.findings import Finding
from pipeline.model import Call, Mode, Verifier


class RunningInstance(Protocol):
    """An isolated copy of an environment (`runtime.Instance`)."""

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Any:
        """Call a tool."""

    def snapshot(self) -> bytes:
        """The current state."""


class Runner(Protocol):
    """Runs one environment: how, is its own business (`HostRunner` does it in sandboxed workers)."""

    template: bytes
    tools: tuple[str, ...]
    problems: tuple[str, ...]

    def instance(self) -> RunningInstance:
        """A new instance in the initial state."""

    def verify(self, verifier: Verifier, final: bytes, answer: str | None) -> tuple[bool, str]:
        """Whether a verifier takes a final state and answer for the task done, and what it says."""


def prove(blueprint: Blueprint, runner: Runner, *, wrong_ways: bool = True) -> list[Finding]:
    """Everything that is not as it should be; nothing for a sound environment.

    Without `wrong_ways` only the reference solutions are played, which is quicker.
    """
    environment = blueprint.environment
    findings = [_finding("does_not_run", "environment", problem) for problem in runner.problems]
    specified = tuple(operation.operation_id for operation in environment.operations)
    if sorted(runner.tools) != sorted(specified):
        findings.append(_finding("tools_differ", "code", f"the tools are {runner.tools}, the spec has {specified}"))
    for number, task in enumerate(blueprint.tasks):
        verifiers = [verifier for mode in Mode if (verifier := environment.verifier(number, mode))]
        findings += _prove_task(number, task if wrong_ways else replace(task, wrongs=()), verifiers, runner)
    return findings


def _prove_task(number: int, task: Task, verifiers: Iterable[Verifier], runner: Runner) -> Iterator[Finding]:
    final, refused = play(task.calls, runner)
    where = f"task {number}"
    if refused:
        yield _finding("solution_refused", where, f"{task.text} → {refused}", (number,))
    ways = [("reference", final, task.answer, True), ("untouched", runner.template, None, False)]
    for wrong in task.wrongs:
        ways.append((wrong.how, play(wrong.calls, runner)[0], wrong.answer, False))
    for verifier in verifiers:
        for how, state, answer, right in ways:
            accepted, said = runner.verify(verifier, state, answer)
            if accepted != right:
                message = f"{verifier.mode} mode {'accepts' if accepted else 'rejects'} {how}: {task.text} → {said}"
                yield _finding("wrong_verdict", where, message, (number,))


def play(calls: Iterable[Call], runner: Runner) -> tuple[bytes, str]:
    """The state after some calls, and the first refusal ("" where there is none)."""
    instance = runner.instance()
    refused = ""
    for call in calls:
        reply = instance.call(call.tool, dict(call.arguments))
        if reply.error is not None and not refused:
            refused = f"{call.tool}{dict(call.arguments)}: {reply.error.message}"
    return instance.snapshot(), refused


def _finding(code: str, where: str, message: str, tasks: tuple[int, ...] = ()) -> Finding:
    return Finding(code, "error", where, message, tasks=tasks, remedy="correct the domain file")
