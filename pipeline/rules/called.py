"""Calls of every tool, with arguments made from its schema and real rows: what other rules judge."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from pipeline.model import Call
from pipeline.runtime.arguments import sample_arguments
from pipeline.runtime.diff import diff
from pipeline.runtime.host import HostedProgram, Reply
from pipeline.runtime.tools import Tool
from pipeline.words import cut

TRIES = 3
"""Argument samples tried for a tool until one is accepted; a refusal (4xx) may be the sample's fault."""

WRITES = 6
"""Argument samples tried for a tool that writes until one has an effect: a sample may ask for what is there already."""

FAULTS = frozenset({"server_error", "timeout", "crash"})
"""Kinds of errors that are the environment's fault, whatever it was asked."""

SHOWN = 300
"""Characters of a reply that are shown as evidence."""


@dataclass(frozen=True, slots=True)
class Called:
    """One call of a tool in an instance of its own: its reply, and the digest of the state it leaves.

    `changed` tells whether rows differ from the initial ones. `state` is "" where there is none to look at: the call
    ran out of time, or ended its process.
    """

    tool: Tool
    call: Call
    reply: Reply
    state: str
    changed: bool

    @property
    def fault(self) -> str | None:
        """The kind of error, where it is the environment's fault."""
        return self.reply.error.kind if self.reply.error is not None and self.reply.error.kind in FAULTS else None

    @property
    def asked(self) -> str:
        """The arguments, as evidence shows them."""
        return json.dumps(dict(self.call.arguments), ensure_ascii=False)

    @property
    def shown(self) -> str:
        """The arguments and what was answered, as evidence shows them."""
        return f"{self.asked} → {cut(self.reply.text, SHOWN)}"


def call_tools(program: HostedProgram, *, seed: int = 0) -> Iterator[Called]:
    """Call every tool, each time in a new instance, with other arguments until it did what it is there for.

    A tool that reads has done so when it accepts them, one that writes when rows differ. The first fault ends it too.
    """
    for tool in program.tools:
        for attempt in range(WRITES if tool.writes else TRIES):
            called = make(program, tool, sample_arguments(tool.input_schema, program.template, seed=seed + attempt))
            yield called
            if called.fault or (called.reply.ok and (called.changed or not tool.writes)):
                break
            if attempt + 1 >= TRIES and not called.reply.ok:
                break


def make(program: HostedProgram, tool: Tool, arguments: dict) -> Called:
    """Make one call in a new instance."""
    with program.instance() as instance:
        reply = instance.call(tool.name, arguments)
        if reply.error is not None and reply.error.kind in ("timeout", "crash"):
            return Called(tool, Call(tool.name, arguments), reply, "", False)
        after = instance.snapshot()
    changed = after != program.template and bool(diff(program.template, after))
    return Called(tool, Call(tool.name, arguments), reply, sha256(after).hexdigest(), changed)
