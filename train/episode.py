"""One agent in one instance, turn by turn. Who the agent is, and when it is asked, is the caller's business."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pipeline.llm.request import Message
from pipeline.runtime.replies import Reply
from pipeline.runtime.tools import Tool
from train.protocol import Form, Move, Said, Slip, native_tools, read_move, shown_reply, thinks, tool_listing
from train.protocol import unknown_function as unknown_function_text
from train.rules import Rules
from train.trajectory import End, Turn, exchange
from train.window import context

FAULTS = frozenset({"server_error", "timeout", "crash"})
"""Kinds of error that are the environment's, not the agent's."""

_SLIPS = {"tool_not_found": Slip.unknown_tool, "invalid_arguments": Slip.bad_arguments}


class RunningInstance(Protocol):
    """What an episode needs of an instance (`pipeline.runtime.host.Instance`)."""

    async def acall(self, tool: str, arguments: dict[str, Any] | None = None) -> Reply:
        """Call a tool."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What the tools of one environment look like; the same for all its episodes, and not small."""

    tools: tuple[Tool, ...]
    listing: str
    functions: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, tools: Sequence[Tool], rules: Rules) -> Shown:
        """What an agent is shown of these tools."""
        listing = tool_listing(tools, short=rules.listing == "short") if rules.form is Form.text else ""
        return cls(tuple(tools), listing, native_tools(tools) if rules.form is Form.native else ())


class Episode:
    """A rollout while it goes on. `take` what the agent says until there is an `end`.

    `call_timeout_s` is how long a call may take, as the agent is told when one took longer.
    """

    def __init__(
        self,
        text: str,
        instance: RunningInstance,
        shown: Shown,
        rules: Rules,
        *,
        call_timeout_s: float = 10.0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.text = text
        self.instance = instance
        self.shown = shown
        self.rules = rules
        self.head = (Message("system", rules.system_prompt), Message("user", text))
        self.turns: list[Turn] = []
        self.end: End | None = None
        self.detail = ""
        self.answer: str | None = None
        self.doing = "waiting"
        self._exchanges: list[list[Message]] = []
        self._call_timeout_s = call_timeout_s
        self._clock = clock
        self._listed = self._called = False

    def context(self) -> list[Message]:
        """The messages the agent sees now."""
        return context(self.head, self._exchanges, window=self.rules.window, pinned=self.rules.pinned)

    def stop(self, end: End, detail: str = "") -> None:
        """End it for a reason that is not in a turn. The first reason stays."""
        if self.end is None:
            self.end, self.detail = end, detail

    async def take(self, said: Said, *, model_s: float = 0.0) -> Turn:
        """Do what a turn asks for, and keep it with what came of it. The end, if it is one, is in `end`."""
        move = read_move(said, self.rules.form)
        slip = self._slip(said, move)
        reply, began = None, self._clock()
        if slip is Slip.cut_off and self.rules.stop_on_slip:
            shown = None  # nothing that may have been cut short is done
        elif move.kind == "call":
            self.doing = f"calling {move.tool}"
            reply = await self.instance.acall(move.tool, dict(move.arguments))
            shown = shown_reply(move.tool, reply, timeout_s=self._call_timeout_s)
            slip = slip or (_SLIPS.get(reply.error.kind) if reply.error else None)
        else:
            shown = {"list": self.shown.listing, "other": unknown_function_text(move.tool), "answer": None}[move.kind]
        turn = self._keep(said, move, slip, reply, shown, model_s=model_s, tool_s=self._clock() - began)
        self._decide(turn, move, reply)
        return turn

    def _slip(self, said: Said, move: Move) -> Slip | None:
        if said.cut:
            return Slip.cut_off
        if self.rules.require_thinking and not thinks(said):
            return Slip.no_thinking
        if move.slip is not None or self.rules.form is Form.native:
            return move.slip
        return self._order_slip(move)

    def _order_slip(self, move: Move) -> Slip | None:
        if move.kind == "list":
            return Slip.listed_again if self._listed else None
        if not self._listed:
            return Slip.not_listed
        return Slip.only_listed if move.kind == "answer" and not self._called else None

    def _keep(
        self,
        said: Said,
        move: Move,
        slip: Slip | None,
        reply: Reply | None,
        shown: str | None,
        *,
        model_s: float,
        tool_s: float,
    ) -> Turn:
        turn = Turn(
            content=said.content,
            thinking=said.thinking,
            calls=said.calls,
            cut=said.cut,
            prompt_ids=said.prompt_ids,
            completion_ids=said.completion_ids,
            logprobs=said.logprobs,
            tokens_in=said.tokens_in,
            tokens_out=said.tokens_out,
            move=move.kind,
            tool=move.tool,
            arguments=dict(move.arguments),
            dropped=move.dropped,
            slip=slip and slip.value,
            status=reply.status if reply else None,
            fault=reply.error.kind if reply and reply.error else None,
            shown=shown,
            model_s=round(model_s, 6),
            tool_s=round(tool_s, 6) if reply else 0.0,
        )
        self._exchanges.append(exchange(turn, len(self.turns), self.rules))
        self.turns.append(turn)
        self._listed |= move.kind == "list"
        self._called |= move.kind == "call"
        return turn

    def _decide(self, turn: Turn, move: Move, reply: Reply | None) -> None:
        self.doing = "waiting"
        if turn.slip is not None and self.rules.stop_on_slip:
            self.stop(End.format_error, turn.slip)
        elif turn.fault in FAULTS and self.rules.stop_on_fault:
            assert reply is not None and reply.error is not None
            self.stop(End.environment_error, f"{move.tool}: {reply.error.message}")
        elif move.kind == "answer":
            self.answer = move.answer
            self.stop(End.answered)
        elif len(self.turns) >= self.rules.max_turns:
            self.stop(End.turn_limit, f"{self.rules.max_turns} turns")
        elif self.rules.max_context is not None and turn.tokens_in + turn.tokens_out >= self.rules.max_context:
            self.stop(End.context_limit, f"{turn.tokens_in + turn.tokens_out} of {self.rules.max_context} tokens")
