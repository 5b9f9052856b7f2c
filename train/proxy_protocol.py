"""Between a harness that sends native tools and a model that knows `list_tools` and `call_tool`, both ways.

A harness keeps the conversation and sends all of it each time, with its own idea of what the model said. What the
model really wrote, and what the proxy answered by itself in between, is remembered here and put back.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pipeline.llm.text import split_thinking
from pipeline.runtime.tools import Tool
from train.protocol import (
    CALL,
    SYSTEM,
    Form,
    Move,
    Said,
    call_text,
    list_text,
    plain_name,
    read_json,
    read_move,
    tool_listing,
    unknown_function,
)
from train.window import kept_exchanges

REMEMBERED = 100_000
"""Turns that are remembered: those of the longest benchmark runs, at about a kilobyte each."""

Parallel = Literal["first", "all"]
"""Which calls of a turn are made: the first, as AWM's agent does, or all."""

Chat = dict[str, Any]
"""A message as the chat API has it."""


class NotText(ValueError):
    """A message with something other than text in it, which this protocol has no form for."""


@dataclass(frozen=True, slots=True)
class Inner:
    """What the model said and the proxy answered by itself. `lists` says that it is the listing of tools."""

    raw: str
    shown: str
    lists: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model really did for one turn of the harness: its own text, and what went before it out of sight."""

    raw: str
    inner: tuple[Inner, ...] = ()


@dataclass
class Memory:
    """Turns by the ids of the calls in them, or else by the conversation they ended."""

    _turns: OrderedDict[str, Turn] = field(default_factory=OrderedDict)

    def keep(self, turn: Turn, before: Sequence[Chat], said: Chat) -> None:
        """Remember the turn that a harness sees as `said`, after the messages `before`."""
        for key in _keys(before, said):
            self._turns[key] = turn
        while len(self._turns) > REMEMBERED:
            self._turns.popitem(last=False)

    def find(self, before: Sequence[Chat], said: Chat) -> Turn | None:
        """The turn behind a message of a harness, if it came from here."""
        return next((self._turns[key] for key in _keys(before, said) if key in self._turns), None)


def _keys(before: Sequence[Chat], said: Chat) -> list[str]:
    calls = said.get("tool_calls") or ()
    if calls:
        return [str(call.get("id")) for call in calls]
    texts = [[message.get("role"), text_of(message)] for message in before]
    return [hashlib.sha256(json.dumps([texts, text_of(said)]).encode()).hexdigest()]


@dataclass
class _Exchange:
    """What the model said and what came of it; `user` are those of its messages that a person wrote."""

    messages: list[Chat]
    lists: bool = False
    user: list[Chat] = field(default_factory=list)


def tools_of(body: Mapping[str, Any]) -> tuple[Tool, ...]:
    """The functions a request offers, as tools."""
    functions = [tool["function"] for tool in body.get("tools") or () if tool.get("type", "function") == "function"]
    return tuple(map(_tool, functions))


def _tool(function: Mapping[str, Any]) -> Tool:
    name, schema = function["name"], function.get("parameters") or {}
    return Tool(name, function.get("description") or "", schema, "POST", "", name, (), 0)


def context_of(
    body: Mapping[str, Any],
    memory: Memory,
    inner: Sequence[Inner] = (),
    *,
    window: int | None,
    results_as: Literal["tool", "user"] = "tool",
) -> list[Chat]:
    """What the model is sent for a request: head, listing, the last `window` exchanges, every user message.

    `inner` is what has happened out of sight since. Raises NotText where a message is not text.
    """
    messages = [*body["messages"]]
    told = [text_of(message) for message in messages if message["role"] in ("system", "developer")]
    head: list[Chat] = [{"role": "system", "content": "\n\n".join(filter(None, [SYSTEM, *told, _wish(body)]))}]
    exchanges: list[_Exchange] = []
    foreign = False
    for number, message in enumerate(messages):
        match message["role"]:
            case "system" | "developer":
                continue
            case "assistant":
                turn = memory.find(messages[:number], message)
                foreign |= turn is None and bool(message.get("tool_calls"))
                exchanges += [_inner(each, results_as) for each in turn.inner] if turn else []
                exchanges.append(_Exchange([_said(turn.raw if turn else _written(message))]))
            case "tool" | "function":
                where = exchanges[-1].messages if exchanges else head
                where.append(_result(text_of(message), message.get("tool_call_id") or "", results_as))
            case _:
                wish = {"role": "user", "content": text_of(message)}
                (exchanges[-1].messages if exchanges else head).append(wish)
                if exchanges:
                    exchanges[-1].user.append(wish)
    exchanges += [_inner(each, results_as) for each in inner]
    if foreign and not any(exchange.lists for exchange in exchanges):
        listing = Inner(list_text(), tool_listing(tools_of(body)), lists=True)
        exchanges.insert(0, _inner(listing, results_as))
    return _joined([*head, *_kept(exchanges, window)])


def _kept(exchanges: Sequence[_Exchange], window: int | None) -> list[Chat]:
    """The messages of the first listing and of the last exchanges, and of the others what the user said."""
    count = len(exchanges)
    kept = set(range(count) if window is None else kept_exchanges(count, window, 0))
    kept |= {next((number for number, exchange in enumerate(exchanges) if exchange.lists), 0)} & {*range(count)}
    return [
        message
        for number, exchange in enumerate(exchanges)
        for message in (exchange.messages if number in kept else exchange.user)
    ]


def _wish(body: Mapping[str, Any]) -> str:
    """What `tool_choice` asks for, in words."""
    choice = body.get("tool_choice")
    if choice == "required":
        return f"In this turn you must call a tool with {CALL}; do not answer yet."
    if isinstance(choice, Mapping):
        name = (choice.get("function") or choice).get("name")
        return f"In this turn you must call the tool {name}; do not answer yet."
    return ""


def _inner(inner: Inner, results_as: Literal["tool", "user"]) -> _Exchange:
    return _Exchange([_said(inner.raw), _result(inner.shown, "call_0", results_as)], inner.lists)


def _said(text: str) -> Chat:
    return {"role": "assistant", "content": text}


def _result(text: str, call_id: str, results_as: Literal["tool", "user"]) -> Chat:
    if results_as == "user":
        return {"role": "user", "content": f"Tool response:\n{text}"}
    return {"role": "tool", "content": text, "tool_call_id": call_id}


def _written(message: Chat) -> str:
    """A message of the assistant that did not come from here, as the model would have written it."""
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    texts = [call_text(call["name"], _arguments(call.get("arguments"))) for call in calls]
    return "\n".join(filter(None, [text_of(message), *texts]))


def _arguments(given: Any) -> dict[str, Any]:
    value = read_json(given) if isinstance(given, str) else given
    return value if isinstance(value, dict) else {}


def text_of(message: Mapping[str, Any]) -> str:
    """A message's text, also where it comes in parts. Raises NotText for anything else in it."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    parts = []
    for part in content if isinstance(content, list) else [content]:
        if not isinstance(part, Mapping) or part.get("type") not in ("text", "input_text", "output_text"):
            raise NotText("A message holds something other than text, which AWM's protocol has no form for.")
        parts.append(str(part["text"]))
    return "\n".join(parts)


def _joined(messages: Sequence[Chat]) -> list[Chat]:
    """The messages, neighbouring ones of the user joined: chat templates insist on roles that take turns."""
    joined: list[Chat] = []
    for message in messages:
        if joined and message["role"] == joined[-1]["role"] == "user":
            joined[-1] = {"role": "user", "content": f"{joined[-1]['content']}\n\n{message['content']}"}
        else:
            joined.append(message)
    return joined


def answered_here(raw: str, tools: Sequence[Tool]) -> Inner | None:
    """What the proxy answers by itself to what the model said; None where the harness is to have it."""
    move = read_move(Said(raw), Form.text)
    if move.kind == "list":
        return Inner(raw, tool_listing(tools), lists=True)
    if move.kind == "other":
        return Inner(raw, unknown_function(move.tool), lists=False)
    return None


_TAGGED = re.compile(r"<tool_call>.*?</tool_call>", re.S)


def as_native(raw: str, parallel: Parallel, new_id: str) -> Chat:
    """What the model said as a message with native calls; a call that cannot be read makes it a plain answer."""
    spoken = split_thinking(raw)[1]
    if read_move(Said(raw), Form.text).kind != "call":
        return {"role": "assistant", "content": spoken.strip()}
    tagged = _TAGGED.findall(spoken) or _TAGGED.findall(raw)
    moves = [read_move(Said(text), Form.text) for text in tagged]
    calls = [move for move in moves if move.kind == "call" and move.slip is None and move.tool]
    if not calls:
        return {"role": "assistant", "content": spoken.strip()}
    chosen = calls if parallel == "all" else calls[:1]
    return {
        "role": "assistant",
        "content": _TAGGED.sub("", spoken).strip() or None,
        "tool_calls": [_native(move, f"{new_id}_{number}") for number, move in enumerate(chosen)],
    }


def _native(move: Move, call_id: str) -> Chat:
    arguments = json.dumps(dict(move.arguments), ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": plain_name(move.tool), "arguments": arguments}}
