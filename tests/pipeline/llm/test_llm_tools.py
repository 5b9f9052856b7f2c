"""Agents ask through the same client: tool calls, raw replies, token ids, all kept like any other reply."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.llm.client import Client
from pipeline.llm.profiles import Profile
from pipeline.llm.replies import Replies
from pipeline.llm.request import Message, Request, Tokens, ToolCall
from tests.llm_server import Raw, Say, Server, Status

TOOL = {"type": "function", "function": {"name": "find", "description": "", "parameters": {"type": "object"}}}
ASKED = (Message("user", "Find it."),)


def whole(message: dict[str, Any], **choice: Any) -> Raw:
    document = {
        "id": "x",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"} | choice],
    }
    return Raw(json.dumps(document).encode(), "application/json")


def stream(*deltas: dict[str, Any]) -> Raw:
    chunks = [{"id": "x", "model": "m", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"id": "x", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    return Raw("".join(f"data: {json.dumps(c)}\n\n" for c in chunks).encode() + b"data: [DONE]\n\n")


@pytest.fixture
def replies(tmp_path: Path) -> Iterator[Replies]:
    store = Replies(tmp_path / "replies.db")
    yield store
    store.close()


async def ask(replies: Replies, server: Server, request: Request, **client: Any) -> Any:
    asker = Client(replies, **client)
    try:
        return await asker.ask(request, Profile(model="m", base_url=server.url, api_key_env=""))
    finally:
        await asker.close()


async def test_calls_come_whole_from_the_pieces_of_a_stream(replies: Replies) -> None:
    pieces = (
        {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "find", "arguments": '{"na'}}]},
        {"tool_calls": [{"index": 1, "id": "b", "function": {"name": "find", "arguments": "{}"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": 'me": 1}'}}]},
    )
    with Server([stream(*pieces)]) as server:
        reply = await ask(replies, server, Request(ASKED, tools=(TOOL,), raw=True))
        assert server.requests[0]["tools"] == [TOOL]
    assert reply.calls == (ToolCall("a", "find", '{"name": 1}'), ToolCall("b", "find", "{}"))
    with Server([Status(500)]) as silent:
        again = await ask(replies, silent, Request(ASKED, tools=(TOOL,), raw=True), replay=True)
    assert again.calls == reply.calls


async def test_calls_and_their_results_are_sent_back_as_the_api_has_them(replies: Replies) -> None:
    call = ToolCall("a", "find", "{}")
    told = (
        *ASKED,
        Message("assistant", "", (call,)),
        Message("tool", "one", call_id="a"),
        Message("tool", "two", call_id="b"),
    )
    with Server([Say("It is here.")]) as server:
        request = Request(told, tools=(TOOL,), raw=True)
        await ask(replies, server, request)
        sent = server.requests[0]["messages"]
    assert sent[1]["tool_calls"] == [{"id": "a", "type": "function", "function": {"name": "find", "arguments": "{}"}}]
    assert [(m["tool_call_id"], m["content"]) for m in sent[2:]] == [("a", "one"), ("b", "two")]
    assert replies.request(request.key(Profile(model="m", base_url=server.url, api_key_env="")))["messages"] == sent


async def test_a_raw_reply_is_what_came_and_is_not_gone_on_with(replies: Replies) -> None:
    said = "<think>Which?</think>\nThe second"
    with Server([Say(said, finish="length")]) as server:
        reply = await ask(replies, server, Request(ASKED, raw=True))
        assert len(server.requests) == 1
    assert (reply.text, reply.thinking, reply.finish) == (said, "", "length")


async def test_token_ids_and_logprobs_are_kept_where_a_server_gives_them(replies: Replies) -> None:
    body = {
        "id": "x",
        "model": "m",
        "prompt_token_ids": [1, 2],
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "ok"},
                "finish_reason": "stop",
                "token_ids": [7, 8],
                "logprobs": {"content": [{"token": "o", "logprob": -0.5}, {"token": "k", "logprob": -0.25}]},
            }
        ],
    }
    with Server([Raw(json.dumps(body).encode(), "application/json")]) as server:
        request = Request(ASKED, raw=True, tokens=True)
        reply = await ask(replies, server, request)
        assert server.requests[0]["return_token_ids"] is True
        again = await ask(replies, server, request)
    assert reply.tokens == again.tokens == Tokens((1, 2), (7, 8), (-0.5, -0.25))


async def test_servers_that_know_no_token_ids_are_asked_without(replies: Replies) -> None:
    with Server([Say("ok")], refuses=("return_token_ids", "logprobs")) as server:
        reply = await ask(replies, server, Request(ASKED, raw=True, tokens=True))
        assert "logprobs" not in server.requests[-1]
    assert (reply.text, reply.tokens) == ("ok", Tokens())


def test_requests_without_tools_keep_the_keys_they_had() -> None:
    document = Request(ASKED).document(Profile(model="m"))
    assert set(document) == {"model", "params", "max_tokens", "schema", "sample", "messages"}
    assert document["messages"] == [{"role": "user", "content": "Find it."}]
