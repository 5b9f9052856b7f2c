"""Calling an environment by hand: the calls made on a private instance, and a way back to any point between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.model import Call
from pipeline.runtime.diff import diff

if TYPE_CHECKING:
    from pipeline.runtime.host import HostedProgram, Instance, Reply


@dataclass(frozen=True, slots=True)
class Step:
    """One call, its reply, the database after it, and what it changed (as `pipeline.runtime.diff` says it)."""

    call: Call
    reply: Reply
    snapshot: bytes
    changes: Mapping[str, Any]
    instance: Instance


class Session:
    """Calls on one program, in order. Point 0 is the initial state, point n the state after step n.

    Methods that call or read the program take a while and are called in a thread, one at a time.
    """

    def __init__(self, program: HostedProgram) -> None:
        self.program = program
        self.steps: list[Step] = []
        self.point = 0
        self.kept: tuple[Step, ...] = ()  # the steps that were saved as a solution last
        self._start = program.instance()

    @property
    def initial(self) -> bytes:
        """The database before any call."""
        return self.program.template

    @property
    def snapshot(self) -> bytes:
        """The database at the current point."""
        return self.steps[self.point - 1].snapshot if self.point else self.initial

    @property
    def is_kept(self) -> bool:
        """Whether nothing would be lost: no call was made, or what was is a solution now."""
        return not self.steps or self.kept == tuple(self.steps)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls that lead to the current point."""
        return tuple(step.call for step in self.steps[: self.point])

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Step:
        """Call a tool at the current point; steps that were undone before are forgotten.

        A call that is stopped (`program.interrupt`) is no step: it gives one that is not kept.
        """
        before = self.snapshot
        instance = (self.steps[self.point - 1].instance if self.point else self._start).fork()
        reply = instance.call(tool, arguments)
        if reply.error is not None and reply.error.kind == "interrupted":
            return Step(Call(tool, dict(arguments)), reply, before, {}, instance)
        after = instance.snapshot()
        changes = {} if after == before else diff(before, after)
        step = Step(Call(tool, dict(arguments)), reply, after, changes, instance)
        self.steps[self.point :] = [step]
        self.point += 1
        return step

    def go_to(self, point: int) -> None:
        """Go back (or forward again) to a point. Raises IndexError where there is none."""
        if not 0 <= point <= len(self.steps):
            raise IndexError(point)
        self.point = point

    def reset(self) -> None:
        """Forget all calls."""
        self.steps.clear()
        self.point = 0
