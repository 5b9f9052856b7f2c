"""How an agent's words are read, and what it is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.llm.request import ToolCall
from pipeline.runtime.replies import CallError, Reply
from pipeline.runtime.tools import Tool
from train.protocol import (
    SYSTEM,
    Form,
    Move,
    Said,
    Slip,
    call_text,
    list_text,
    read_move,
    shown_reply,
    thinks,
    tool_listing,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.text(max_size=12), JSON, max_size=4)


def move(text: str) -> Move:
    return read_move(Said(text), Form.text)


def tagged(text: str) -> str:
    return f"I look.\n<tool_call>\n{text}\n</tool_call>"


@given(ARGUMENTS, st.booleans())
def test_a_call_that_is_written_is_read(arguments: dict[str, Any], nested: bool) -> None:
    said = call_text("set_amount", arguments, nested=nested)
    if "</tool_call>" in json.dumps(arguments) or "<tool_call>" in json.dumps(arguments):
        return
    assert move(said) == Move("call", "set_amount", arguments)


@given(st.text())
def test_whatever_is_said_is_read_as_something(text: str) -> None:
    assert move(text).kind in ("list", "call", "other", "answer")
    assert move(tagged(text)).kind in ("list", "call", "other", "answer")


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "call_tool", "arguments": {"tool_name": "get_weather", "arguments": {"city": "Oslo"}}}',
        '{"name": "call_tool", "arguments": {"tool_name": "mcp_tool_get_weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}}',
        '{"name": "call_tool", "arguments": {"tool_name": "get_weather", "arguments": "{"city": "Oslo"}"}}',
        '{"name": "call_tool", "arguments": "{"tool_name": "get_weather", "arguments": "{"city": "Oslo"}"}"}',
        '{"name": "mcp_tool_get_weather", "arguments": {"city": "Oslo"}}',
        '{"name": "call_tool", "arguments": {"tool_name": "mcp_tool_mcp_server_get_weather", "arguments": {"city": "Oslo"}}}',
        '[{"name": "call_tool", "arguments": {"tool_name": "get_weather", "arguments": {"city": "Oslo"}}}]',
        "{'name': 'call_tool', 'arguments': {'tool_name': 'get_weather', 'arguments': {'city': 'Oslo'}}}",
        '{"name": "call_tool", "arguments": {"tool_name": "get_weather", "arguments": {"city": "Oslo"}}}}',
    ],
    ids=[
        "object",
        "text",
        "unescaped",
        "unescaped twice",
        "direct",
        "server prefix",
        "list",
        "python",
        "one brace more",
    ],
)
def test_a_call_is_read_however_it_is_nested(text: str) -> None:
    assert move(tagged(text)) == Move("call", "get_weather", {"city": "Oslo"})


def test_an_inner_text_may_hold_braces_and_objects() -> None:
    said = tagged(
        '{"name": "call_tool", "arguments": {"tool_name": "note", "arguments": "{"a": "x } y", "b": {"c": 1}}"}}'
    )
    assert move(said) == Move("call", "note", {"a": "x } y", "b": {"c": 1}})


@pytest.mark.parametrize("arguments", ["", "{}", None])
def test_no_arguments_are_no_arguments(arguments: str | None) -> None:
    said = tagged(json.dumps({"name": "call_tool", "arguments": {"tool_name": "list_items", "arguments": arguments}}))
    assert move(said) == Move("call", "list_items")


def test_arguments_that_are_no_object_are_a_slip() -> None:
    for inner in ('"five"', "[1]", "5"):
        said = tagged(f'{{"name": "call_tool", "arguments": {{"tool_name": "set", "arguments": {inner}}}}}')
        assert move(said) == Move("call", "set", slip=Slip.bad_arguments)


def test_listing_the_tools_needs_no_arguments() -> None:
    assert move(list_text()) == move(tagged('{"name": "list_tools"}')) == Move("list")


def test_one_call_a_turn_is_made_and_the_others_are_named() -> None:
    said = list_text() + call_text("one", {}) + call_text("two", {})
    assert move(said) == Move("list", dropped=("one", "two"))


def test_a_function_that_does_not_exist_is_a_slip() -> None:
    assert move(tagged('{"name": "search", "arguments": {}}')) == Move("other", "search", slip=Slip.unknown_function)


def test_tags_without_a_call_are_a_slip() -> None:
    for said in (tagged("nothing"), tagged("{}"), 'Now: <tool_call>{"name": "list_tools"}', "…</tool_call>"):
        assert (move(said).kind, move(said).slip) == ("answer", Slip.unreadable_call)


def test_words_without_a_call_are_the_answer_without_the_thinking() -> None:
    assert move("<think>Two and two.</think>\n\nIt is four.\n") == Move("answer", answer="It is four.")


def test_a_call_that_is_only_thought_of_is_not_made_where_another_is_written() -> None:
    thought = f"<think>First {call_text('wrong', {})} then…</think>"
    assert move(thought + call_text("right", {})).tool == "right"


@pytest.mark.parametrize(
    ("said", "thinking"),
    [
        (Said("<think>Hm.</think>Yes"), True),
        (Said("Yes", thinking="Hm."), True),
        (Said("<think>\n\n</think>Yes"), False),
        (Said("Yes"), False),
    ],
)
def test_thinking_counts_only_where_there_is_some(said: Said, thinking: bool) -> None:
    assert thinks(said) is thinking


def test_native_calls_are_read_by_their_own_rules() -> None:
    first, second = ToolCall("a", "set_amount", '{"item_id": 1}'), ToolCall("b", "list_items", "")
    assert read_move(Said("", calls=(first, second)), Form.native) == Move(
        "call", "set_amount", {"item_id": 1}, dropped=("list_items",)
    )
    assert read_move(Said("", calls=(second,)), Form.native) == Move("call", "list_items")
    assert read_move(Said("", calls=(ToolCall("a", "set_amount", "five"),)), Form.native).slip is Slip.bad_arguments
    assert read_move(Said(list_text()), Form.native).kind == "answer"


def tool(name: str, description: str, schema: dict[str, Any]) -> Tool:
    return Tool(name, description, schema, "GET", "/", name, (), 0)


TOOLS = (
    tool("ping", "Ping", {"type": "object", "properties": {}}),
    tool(
        "add",
        "Add an item\n\n  It is kept.\n",
        {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Its name", "enum": ["rice", "beans"]},
                "count": {"type": "integer", "default": 1},
                "price": {"anyOf": [{"type": "number"}, {"type": "null"}]},
                "place": {"type": "object", "properties": {"shelf": {"type": "integer"}}, "required": ["shelf"]},
            },
            "required": ["name"],
        },
    ),
)


def test_the_listing_is_the_text_that_agents_were_trained_on() -> None:
    assert tool_listing(TOOLS) == "\n".join(
        [
            "Available MCP Tools (2 tools):",
            "=" * 80,
            "",
            "1. mcp_tool_ping",
            "   Description: Ping",
            "   Parameters: None",
            "",
            "2. mcp_tool_add",
            "   Description: Add an item",
            "   It is kept.",
            "   Parameters:",
            "      - name: string (required)",
            "        Description: Its name",
            "        Allowed values: ['rice', 'beans']",
            "      - count: integer (optional)",
            "        Default: 1",
            "      - price: unknown (optional)",
            "      - place: object (optional)",
            "        Properties:",
            "          - shelf: integer (required)",
        ]
    )


def test_a_short_listing_has_one_line_a_tool() -> None:
    assert tool_listing(TOOLS, short=True) == "mcp_tool_ping()\nmcp_tool_add(name, …)"


def test_errors_are_shown_in_the_words_that_agents_were_trained_on() -> None:
    def shown(kind: Any, text: str) -> str:
        return shown_reply("add", Reply(500, None, text, CallError(kind, "")), timeout_s=10.0)

    assert shown("tool_not_found", "Unknown tool: add") == "Error: Tool 'add' not found"
    assert shown("timeout", "late") == "Error: Tool call timed out after 10.0s"
    said = "Error calling add. Status code: 404. Response: {}"
    assert shown("client_error", said) == f"Error: {said}"
    assert shown_reply("add", Reply(200, "1", "1"), timeout_s=10.0) == "1"


def test_the_examples_in_the_system_prompt_can_be_read() -> None:
    examples = [f"<tool_call>{part.split('</tool_call>')[0]}</tool_call>" for part in SYSTEM.split("<tool_call>")[2:]]
    assert [move(example).kind for example in examples] == ["list", "call"]
    assert move(examples[1]).arguments == {"city": "Oslo"}
