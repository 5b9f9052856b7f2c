"""How an agent and an environment talk: AWM's text protocol, or the tool calling of the model's own server.

In the text protocol the agent has two functions, `list_tools` and `call_tool`, and writes calls as JSON between
`<tool_call>` tags. Tags, names, the listing and the error texts are those of Snowflake-Labs/agent-world-model
(`awm/core/agent.py`) and of the mcp-agent package it uses, because released Arctic-AWM models were trained on them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from pipeline.llm.request import ToolCall
from pipeline.llm.text import split_thinking
from pipeline.runtime.replies import Reply
from pipeline.runtime.tools import Tool

LIST, CALL = "list_tools", "call_tool"
PREFIX = "mcp_tool_"
"""What tools' names begin with in a listing; with or without it, a call means the same."""

SERVER_PREFIX = "mcp_server_"
"""What upstream's demonstration puts behind the prefix: the name it gives its server."""

SYSTEM = f"""\
You complete tasks in an environment by calling its tools, one call at a time. You are signed in already; where a tool \
asks for your user id, it is 1.

There are two functions, described between <tools></tools>:
<tools>
1. {LIST}
    - Description: shows the environment's tools and their parameters
    - Arguments: none
2. {CALL}
    - Description: calls one of the environment's tools and shows its result
    - Arguments:
        - tool_name: str, required, a name that {LIST} showed
        - arguments: str, required, the tool's arguments as a JSON text without code fences; {{}} for none
</tools>

Call {LIST} first, and only once. When the task is done, write the answer or a short summary and call nothing.

Write a call as JSON between <tool_call></tool_call>, for example:
<tool_call>
{{"name": "{LIST}", "arguments": null}}
</tool_call>
or:
<tool_call>
{{"name": "{CALL}", "arguments": {{"tool_name": "{PREFIX}get_weather", "arguments": "{{\\"city\\": \\"Oslo\\"}}"}}}}
</tool_call>"""

NATIVE_SYSTEM = """\
You complete tasks in an environment by calling its tools, one call at a time. You are signed in already; where a tool \
asks for your user id, it is 1. When the task is done, write the answer or a short summary and call nothing."""

NOT_MADE = "Error: Only one call is made a turn; this one was not made."
"""What a model is told about a native call beside the first, since its server wants a result for every call."""


class Form(StrEnum):
    """Which way calls are written."""

    text = "text"
    native = "native"


class Slip(StrEnum):
    """A breach of the format rules: the step layer of the reward (arXiv 2602.10090, section 4)."""

    cut_off = "cut_off"  # the turn reached the limit of its length
    no_thinking = "no_thinking"  # the turn does not think first, where that is required
    unreadable_call = "unreadable_call"  # there are tags, and no call can be read from what is between them
    unknown_function = "unknown_function"  # neither list_tools nor call_tool
    unknown_tool = "unknown_tool"  # not one of the environment's tools
    bad_arguments = "bad_arguments"  # not JSON, or not what the tool's schema wants
    not_listed = "not_listed"  # a call or an answer before list_tools
    listed_again = "listed_again"
    only_listed = "only_listed"  # an answer after list_tools and nothing else


@dataclass(frozen=True, slots=True)
class Said:
    """One turn as it came from an agent. `cut`: it reached its token limit. Token ids and logprobs where known."""

    content: str
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    cut: bool = False
    prompt_ids: tuple[int, ...] = ()
    completion_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0


@dataclass(frozen=True, slots=True)
class Move:
    """What a turn asks for: the tools, a call, a function that does not exist, or nothing more (an answer).

    `dropped` names the further calls of the turn, which are not made.
    """

    kind: Literal["list", "call", "other", "answer"]
    tool: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    answer: str = ""
    slip: Slip | None = None
    dropped: tuple[str, ...] = ()


def read_move(said: Said, form: Form) -> Move:
    """What a turn asks for."""
    return _native_move(said) if form is Form.native else _text_move(said)


def thinks(said: Said) -> bool:
    """Whether a turn has a thinking part that is not empty."""
    return bool(said.thinking.strip() or split_thinking(said.content)[0].strip())


_TAGGED = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.S)


def _text_move(said: Said) -> Move:
    spoken = split_thinking(said.content)[1]
    tagged = _TAGGED.findall(spoken) or _TAGGED.findall(said.content)
    calls = [call for call in map(_read_call, tagged) if call is not None]
    if not calls:
        unreadable = bool(tagged) or "<tool_call>" in spoken or "</tool_call>" in spoken
        return Move("answer", answer=spoken.strip(), slip=Slip.unreadable_call if unreadable else None)
    (name, arguments), *further = calls
    dropped = tuple(_tool_of(other, given) for other, given in further)
    if name == LIST:
        return Move("list", dropped=dropped)
    if name != CALL:
        return Move("other", tool=name, slip=Slip.unknown_function, dropped=dropped)
    tool, inner, readable = _read_arguments(arguments)
    return Move("call", tool, inner, slip=None if readable else Slip.bad_arguments, dropped=dropped)


def _read_call(text: str) -> tuple[str, Any] | None:
    """The function and its arguments in a tagged text; a tool called as if it were a function is one."""
    value = read_json(text)
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict) or not value:
        return None
    name, arguments = str(value.get("name") or ""), value.get("arguments")
    if name.startswith(PREFIX):
        return CALL, {"tool_name": name, "arguments": arguments or {}}
    return name, arguments


def _read_arguments(arguments: Any) -> tuple[str, dict[str, Any], bool]:
    """Tool, arguments, and whether they could be read; both levels may be JSON texts."""
    value = read_json(arguments) if isinstance(arguments, str) else arguments
    if not isinstance(value, dict):
        return "", {}, False
    tool, inner = value.get("tool_name"), value.get("arguments")
    inner = read_json(inner) if isinstance(inner, str) and inner.strip() else inner or {}
    return plain_name(str(tool or "")), inner if isinstance(inner, dict) else {}, isinstance(inner, dict)


def _tool_of(name: str, arguments: Any) -> str:
    return _read_arguments(arguments)[0] if name == CALL else name


def _native_move(said: Said) -> Move:
    if not said.calls:
        return Move("answer", answer=split_thinking(said.content)[1].strip())
    first, *further = said.calls
    arguments = read_json(first.arguments) if first.arguments.strip() else {}
    readable = isinstance(arguments, dict)
    return Move(
        "call",
        plain_name(first.name),
        arguments if readable else {},
        slip=None if readable else Slip.bad_arguments,
        dropped=tuple(call.name for call in further),
    )


_NESTED = re.compile(r'"\s*(\{.*\})\s*"(?=\s*\})', re.S)


def read_json(text: str) -> Any:
    """The JSON in a text that a model wrote, also where an inner JSON text has its quotes unescaped; None for none.

    `{"arguments": "{"city": "Oslo"}"}` is how small models (and upstream's own example) nest them: the quotes around
    the inner braces are left out then. What is broken otherwise is repaired as upstream does, by json_repair.
    """
    for candidate in (text, _NESTED.sub(r"\1", text), _NESTED.sub(r"\1", _NESTED.sub(r"\1", text))):
        try:
            return json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
    import json_repair

    try:
        value = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    return None if value == "" else value


def plain_name(name: str) -> str:
    """A tool's own name, without what the protocol puts before it."""
    return name.removeprefix(PREFIX).removeprefix(SERVER_PREFIX)


def call_text(tool: str, arguments: Mapping[str, Any], *, nested: bool = True) -> str:
    """A call as an agent writes it; `nested` writes the arguments as a JSON text, as the system prompt asks."""
    given = json.dumps(arguments, ensure_ascii=False) if nested else arguments
    return _tagged({"name": CALL, "arguments": {"tool_name": f"{PREFIX}{tool}", "arguments": given}})


def list_text() -> str:
    """The call of `list_tools` as an agent writes it."""
    return _tagged({"name": LIST, "arguments": None})


def _tagged(call: Mapping[str, Any]) -> str:
    return f"<tool_call>\n{json.dumps(call, ensure_ascii=False)}\n</tool_call>"


def shown_reply(tool: str, reply: Reply, *, timeout_s: float) -> str:
    """What an agent is shown of a call."""
    if reply.error is None:
        return reply.text
    if reply.error.kind == "tool_not_found":
        return f"Error: Tool '{tool}' not found"
    if reply.error.kind == "timeout":
        return f"Error: Tool call timed out after {timeout_s}s"
    return f"Error: {reply.text}"


def unknown_function(name: str) -> str:
    """What an agent is shown where it calls a function that is neither of the two."""
    return f"Error: Unknown tool '{name}'. Only '{LIST}' and '{CALL}' are available."


def tool_listing(tools: Iterable[Tool], *, short: bool = False) -> str:
    """What `list_tools` shows: upstream's text, or one line a tool for models with little context."""
    tools = [tool for tool in tools if tool.name != LIST]
    if short:
        return "\n".join(f"{PREFIX}{tool.name}({_signature(tool.input_schema)})" for tool in tools)
    lines = [f"Available MCP Tools ({len(tools)} tools):", "=" * 80, ""]
    for number, tool in enumerate(tools, 1):
        first, *more = tool.description.split("\n")
        lines += [f"{number}. {PREFIX}{tool.name}", f"   Description: {first.strip()}"]
        lines += [f"   {line.strip()}" for line in more if line.strip()]
        if tool.input_schema.get("properties"):
            lines += ["   Parameters:", *_parameters(tool.input_schema, indent=6)]
        else:
            lines.append("   Parameters: None")
        lines.append("")
    return "\n".join(lines).strip()


def _parameters(schema: Mapping[str, Any], *, indent: int) -> Iterator[str]:
    space, required = " " * indent, schema.get("required", ())
    for name, about in schema.get("properties", {}).items():
        kind = about.get("type", "unknown")
        yield f"{space}- {name}: {kind} ({'required' if name in required else 'optional'})"
        if about.get("description"):
            yield f"{space}  Description: {about['description']}"
        if about.get("default") is not None:
            yield f"{space}  Default: {about['default']}"
        if about.get("enum"):
            yield f"{space}  Allowed values: {about['enum']}"
        if kind == "object" and about.get("properties"):
            yield f"{space}  Properties:"
            yield from _parameters(about, indent=indent + 4)


def _signature(schema: Mapping[str, Any]) -> str:
    """The parameters that a call must have; dots stand for those it may have."""
    properties, required = schema.get("properties", {}), schema.get("required", ())
    return ", ".join([*(name for name in properties if name in required), *["…"] * (len(properties) > len(required))])


def native_tools(tools: Iterable[Tool]) -> tuple[dict[str, Any], ...]:
    """The tools as functions of the chat API."""
    return tuple(
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.input_schema)},
        }
        for tool in tools
    )
