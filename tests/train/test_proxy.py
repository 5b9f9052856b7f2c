"""The protocol proxy, met over HTTP as a harness meets it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from pipeline.errors import UserError
from pipeline.llm.profiles import Profile
from tests.llm_server import KEY, Answer, Raw, Say, Server, Status
from train.protocol import LIST, SYSTEM, call_text, list_text, tool_listing
from train.proxy import serving
from train.proxy_log import read_last, read_log, summed
from train.proxy_protocol import Memory, context_of, tools_of
from train.sampling import sampled

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"{name} of something",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
    for name in ("weather", "population")
]
USER = {"role": "user", "content": "How is Oslo?"}
OSLO = {"city": "Oslo"}


class Harness:
    """What a harness does: it keeps the conversation and sends it all, with its tools."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}, USER]

    def post(self, **fields: Any) -> httpx.Response:
        body = {"model": "anything", "messages": self.messages, "tools": TOOLS, **fields}
        return httpx.post(f"{self.url}/chat/completions", json=body, headers={"Authorization": "Bearer dummy"})

    def turn(self, result: str = "fine", **fields: Any) -> dict[str, Any]:
        """One turn: what the model said, with a result for each call it made."""
        message = self.post(**fields).json()["choices"][0]["message"]
        self.messages.append(message)
        for call in message.get("tool_calls") or ():
            self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        return message


@contextmanager
def proxied(
    tmp_path: Path, script: Any, *, key: str | None = None, params: dict[str, Any] | None = None, **options: Any
) -> Iterator[tuple[Harness, Server, Path]]:
    with Server(script, key=key) as server:
        profile = Profile(model="agent", base_url=server.url, api_key_env="PROXY_KEY", params=params or {})
        with serving(profile, tmp_path / "proxy.jsonl", **options) as served:
            yield Harness(served.base_url), server, served.log


def said(body: dict[str, Any]) -> list[str]:
    return [message["content"] for message in body["messages"] if message["role"] == "assistant"]


def roles(body: dict[str, Any]) -> list[str]:
    return [message["role"] for message in body["messages"]]


def steps(*texts: str) -> Callable[[dict[str, Any]], Answer]:
    """Says one text after the other, whatever it is sent."""
    left = list(texts)
    return lambda body: Say(left.pop(0) if len(left) > 1 else left[0], tokens=(10, 5))


def test_a_listing_is_answered_by_the_proxy_and_a_call_reaches_the_harness_as_a_native_one(tmp_path: Path) -> None:
    with proxied(tmp_path, steps(list_text(), call_text("weather", OSLO))) as (harness, server, _):
        message = harness.turn()
        first, second = server.requests
    (call,) = message["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("weather", OSLO)
    assert "tools" not in first
    assert first["messages"][0]["content"] == f"{SYSTEM}\n\nBe brief."
    assert roles(second) == ["system", "user", "assistant", "tool"]
    assert "1. mcp_tool_weather" in second["messages"][3]["content"]


def test_earlier_turns_are_what_the_model_itself_wrote_thinking_included(tmp_path: Path) -> None:
    listed, called = f"<think>first look</think>\n{list_text()}", f"<think>now call</think>{call_text('weather', OSLO)}"
    with proxied(tmp_path, steps(listed, called, "<think>done</think>It is fine.")) as (harness, server, _):
        first = harness.turn()
        last = harness.turn()
    assert said(server.requests[-1]) == [listed, called]
    assert "think" not in json.dumps([first, last])
    assert last["content"] == "It is fine."


def test_what_the_harness_says_the_model_said_is_used_where_it_did_not_come_from_here(tmp_path: Path) -> None:
    function = {"name": "weather", "arguments": json.dumps(OSLO)}
    with proxied(tmp_path, steps("Fine.")) as (harness, server, _):
        harness.messages += [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "x", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "x", "content": "sun"},
        ]
        harness.turn()
    assert said(server.requests[-1]) == [list_text(), call_text("weather", OSLO)]


def test_the_head_the_listing_and_the_last_exchanges_are_kept_and_no_user_message_is_lost(tmp_path: Path) -> None:
    texts = [list_text(), *(call_text("weather", {"city": f"city {number}"}) for number in range(5)), "Done."]
    with proxied(tmp_path, steps(*texts), window=2) as (harness, server, _):
        for number in range(5):
            harness.turn(f"result {number}")
            harness.messages.append({"role": "user", "content": f"And number {number}?"})
        harness.turn()
    last = server.requests[-1]
    assert said(last) == [texts[0], texts[4], texts[5]]
    told = "\n".join(message["content"] for message in last["messages"] if message["role"] == "user")
    assert all(text in told for text in ("How is Oslo?", *(f"And number {number}?" for number in range(5))))
    results = [message["content"] for message in last["messages"] if message["role"] == "tool"]
    assert results[1:] == ["result 3", "result 4"]


def test_results_are_no_user_messages_where_a_server_takes_them_as_such() -> None:
    call = {"id": "x", "function": {"name": "weather", "arguments": json.dumps(OSLO)}}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "x", "content": "sun"}
    wish = {"role": "user", "content": "Tool response:\nis what I want to see."}
    body = {"tools": TOOLS, "messages": [USER, said, result, wish, said, result]}
    sent = context_of(body, Memory(), window=1, results_as="user")
    assert [message["content"] for message in sent if message["role"] == "user"] == [
        "How is Oslo?",
        f"Tool response:\n{tool_listing(tools_of(body))}\n\n{wish['content']}",
        "Tool response:\nsun",
    ]


def test_all_system_messages_follow_the_protocols_prompt(tmp_path: Path) -> None:
    with proxied(tmp_path, steps("Hello.")) as (harness, server, _):
        harness.messages.append({"role": "developer", "content": "Speak English."})
        harness.turn()
    assert roles(server.requests[0]) == ["system", "user"]
    assert server.requests[0]["messages"][0]["content"] == f"{SYSTEM}\n\nBe brief.\n\nSpeak English."


@pytest.mark.parametrize("fields", [{"tools": []}, {"tool_choice": "none"}])
def test_requests_for_no_tools_pass_through(tmp_path: Path, fields: dict[str, Any]) -> None:
    with proxied(tmp_path, steps("Sunny.")) as (harness, server, _):
        assert harness.turn(**fields)["content"] == "Sunny."
    assert server.requests[0]["messages"][0]["content"] == "Be brief."
    assert "tools" not in server.requests[0]


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ("required", "must call a tool"),
        ({"type": "function", "function": {"name": "population"}}, "must call the tool population"),
    ],
)
def test_a_call_that_is_required_is_asked_for_in_words(tmp_path: Path, choice: Any, told: str) -> None:
    with proxied(tmp_path, steps(call_text("population", OSLO))) as (harness, server, _):
        harness.turn(tool_choice=choice)
    assert told in server.requests[0]["messages"][0]["content"]
    assert "tool_choice" not in server.requests[0]


@pytest.mark.parametrize(
    "arguments",
    [
        '{"tool_name": "mcp_tool_weather", "arguments": {"city": "Oslo"}}',
        '{"tool_name": "mcp_tool_weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}',
        '{"tool_name": "weather", "arguments": "{"city": "Oslo"}"}',
    ],
)
def test_arguments_are_an_object_a_text_or_a_text_with_nested_quotes(tmp_path: Path, arguments: str) -> None:
    text = f'<tool_call>\n{{"name": "call_tool", "arguments": {arguments}}}\n</tool_call>'
    with proxied(tmp_path, steps(text)) as (harness, _, _):
        (call,) = harness.turn()["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == OSLO


def test_a_malformed_call_is_a_plain_answer(tmp_path: Path) -> None:
    text = "<tool_call>{{{ weather, Oslo"
    with proxied(tmp_path, steps(text)) as (harness, _, _):
        message = harness.turn()
    assert message["content"] == text
    assert "tool_calls" not in message


def test_an_unknown_function_is_told_to_the_model_and_a_model_that_only_lists_ends_in_an_answer(tmp_path: Path) -> None:
    wrong = '<tool_call>{"name": "fly", "arguments": {}}</tool_call>'
    with proxied(tmp_path, steps(wrong, list_text())) as (harness, server, _):
        message = harness.turn()
    assert "Unknown tool 'fly'" in server.requests[1]["messages"][-1]["content"]
    assert "tool_calls" not in message
    assert len(server.requests) == 5


@pytest.mark.parametrize(("parallel", "cities"), [("first", ["Oslo"]), ("all", ["Oslo", "Rome"])])
def test_the_first_call_of_a_turn_is_made_or_all(tmp_path: Path, parallel: Any, cities: list[str]) -> None:
    both = call_text("weather", OSLO) + call_text("weather", {"city": "Rome"})
    with proxied(tmp_path, steps(both, "Done."), parallel=parallel) as (harness, server, _):
        calls = harness.turn()["tool_calls"]
        harness.turn()
    assert [json.loads(call["function"]["arguments"])["city"] for call in calls] == cities
    assert said(server.requests[-1]) == [both]
    assert roles(server.requests[-1]).count("tool") == len(cities)


def test_a_stream_carries_what_a_whole_answer_would(tmp_path: Path) -> None:
    with proxied(tmp_path, steps(list_text(), f"Let me see.{call_text('weather', OSLO)}")) as (harness, _, _):
        text = harness.post(stream=True, stream_options={"include_usage": True}).text
    events = [json.loads(line[6:]) for line in text.split("\n\n") if line.startswith("data: {")]
    delta = events[0]["choices"][0]["delta"]
    assert delta["content"] == "Let me see."
    assert json.loads(delta["tool_calls"][0]["function"]["arguments"]) == OSLO
    assert events[1]["choices"][0]["finish_reason"] == "tool_calls"
    assert events[2]["usage"] == {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}
    assert text.endswith("data: [DONE]\n\n")


def test_the_tokens_of_all_that_was_asked_are_summed(tmp_path: Path) -> None:
    with proxied(tmp_path, steps(list_text(), call_text("weather", OSLO))) as (harness, _, _):
        usage = harness.post().json()["usage"]
    assert usage == {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}


@pytest.mark.parametrize("native", [False, True])
def test_fields_that_servers_reject_are_dropped_and_our_sampling_wins(tmp_path: Path, native: bool) -> None:
    profile = sampled(Profile(model="agent", base_url="http://127.0.0.1:9/v1"))
    with proxied(tmp_path, steps("Hello."), params=dict(profile.params), native=native) as (harness, server, _):
        harness.turn(store=False, seed=1, parallel_tool_calls=True, temperature=0.001, stop=["x"])
    (sent,) = server.requests
    assert not {"store", "seed", "parallel_tool_calls", "stream"} & sent.keys()
    assert (sent["temperature"], sent["top_p"], sent["top_k"]) == (0.6, 0.95, 20)
    assert (sent["stop"], sent["model"], sent["max_tokens"]) == (["x"], "agent", 2048)


def test_a_real_key_stays_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROXY_KEY", KEY)
    with proxied(tmp_path, steps("Hello."), key=KEY) as (harness, server, log):
        assert harness.turn()["content"] == "Hello."
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    monkeypatch.setenv("PROXY_KEY", f"{KEY}-old")
    with proxied(tmp_path, steps("Hello."), key=KEY) as (harness, _, log):
        refused = harness.post()
    assert (refused.status_code, refused.json()["error"]["type"]) == (401, "proxy")
    assert KEY not in refused.text
    assert KEY not in log.read_text()


def test_a_key_that_is_missing_is_said_before_anything_starts(tmp_path: Path) -> None:
    profile = Profile(model="agent", base_url="https://models.example/v1", api_key_env="NO_SUCH_KEY")
    with pytest.raises(UserError, match="NO_SUCH_KEY is not set"), serving(profile, tmp_path / "log"):
        pass


@pytest.mark.parametrize(
    ("answer", "status", "told"),
    [
        (Status(404, "no such model"), 404, "no such model"),
        (Status(429, "slow down"), 429, "slow down"),
        (Raw(b"<html></html>", "text/html"), 502, "not JSON"),
        (Raw(b'{"choices": []}', "application/json"), 502, "not with a model's reply"),
        (Raw(b'{"choices": [{"message": {"content": [3]}}]}', "application/json"), 502, "not with a model's reply"),
    ],
)
def test_what_the_models_server_says_of_a_failure_reaches_the_harness_and_the_log(
    tmp_path: Path, answer: Answer, status: int, told: str
) -> None:
    with proxied(tmp_path, [answer]) as (harness, _, log):
        reply = harness.post()
        (entry,) = read_log(log)
    assert (reply.status_code, told in reply.json()["error"]["message"]) == (status, True)
    assert told in entry["error"]


def test_a_server_that_is_not_there_is_an_error_and_not_an_answer(tmp_path: Path) -> None:
    profile = Profile(model="agent", base_url="http://127.0.0.1:9/v1", api_key_env="")
    with serving(profile, tmp_path / "log") as served:
        reply = Harness(served.base_url).post()
    assert (reply.status_code, "There is no reply" in reply.text) == (502, True)


def test_a_log_that_cannot_be_written_is_an_error_and_not_silence(tmp_path: Path) -> None:
    with proxied(tmp_path, steps("Hello.")) as (harness, _, log):
        log.unlink()
        log.symlink_to("/dev/full")
        reply = harness.post()
    assert (reply.status_code, "cannot be written" in reply.text) == (507, True)


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b'{"messages": []}',
        b'{"messages": ["x"]}',
        b'{"messages": [{"role": "user"}], "tools": [{"name": "f"}]}',
    ],
)
def test_what_is_no_chat_request_is_refused(tmp_path: Path, body: bytes) -> None:
    with proxied(tmp_path, steps("x")) as (harness, server, _):
        assert httpx.post(f"{harness.url}/chat/completions", content=body).status_code == 400
        assert server.requests == []


def test_pictures_have_no_form_in_the_protocol(tmp_path: Path) -> None:
    with proxied(tmp_path, steps("x")) as (harness, _, _):
        harness.messages.append({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]})
        assert harness.post().status_code == 400
        harness.messages[-1] = {"role": "user", "content": [{"type": "text", "text": "Well?"}]}
        assert harness.post().status_code == 200


def test_every_request_is_in_the_log(tmp_path: Path) -> None:
    with proxied(tmp_path, steps(list_text(), call_text("weather", OSLO), "Fine.")) as (harness, _, log):
        harness.turn()
        harness.turn()
        first, second = read_log(log)
        totals = summed(log)
    assert first["said"] == [list_text(), call_text("weather", OSLO)]
    assert first["calls"][0]["name"] == "weather"
    assert [message["content"] for message in second["new"]] == ["fine"]
    assert second["content"] == "Fine."
    assert totals == {"requests": 2, "asked": 3, "calls": 1, "errors": 0, "tokens_in": 30, "tokens_out": 15}


def test_the_newest_requests_are_read_without_the_rest_of_the_log(tmp_path: Path) -> None:
    with proxied(tmp_path, steps("Fine.")) as (harness, _, log):
        for number in range(4):
            harness.messages.append({"role": "user", "content": f"number {number}"})
            harness.turn()
    entries, line = list(read_log(log)), len(log.read_bytes()) // 4
    assert read_last(log) == entries
    assert read_last(log, 2 * line) == entries[-len(read_last(log, 2 * line)) :]
    assert 0 < len(read_last(log, 2 * line)) < 4
    assert read_last(tmp_path / "none") == []


def test_the_model_that_is_served_is_listed(tmp_path: Path) -> None:
    with proxied(tmp_path, steps("x")) as (harness, _, _):
        assert [model["id"] for model in httpx.get(f"{harness.url}/models").json()["data"]] == ["agent"]


WEATHER = {"Oslo": "rain", "Rome": "sun", "Bern": "snow"}


def weather_model(body: dict[str, Any]) -> Answer:
    """A model that knows both protocols and does the same in each: it looks before it answers, except about Bern."""
    told = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    city = next(name for name in WEATHER if name in body["messages"][1]["content"])
    if "tools" not in body and not told:
        return Say(list_text())
    results = told if "tools" in body else told[1:]
    if results or city == "Bern":
        return Say(f"{city}: {results[-1] if results else 'sun'}")
    if "tools" not in body:
        return Say(call_text("weather", {"city": city}))
    function = {"name": "weather", "arguments": json.dumps({"city": city})}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return Raw(
        json.dumps({"id": "x", "model": "agent", "choices": [choice], "usage": None}).encode(), "application/json"
    )


def benchmark(url: str) -> dict[str, Any]:
    """A harness of three tasks: what was called, what was answered, and the score."""
    outcome: dict[str, Any] = {}
    for city, right in WEATHER.items():
        harness = Harness(url)
        harness.messages[1] = {"role": "user", "content": f"What is the weather in {city}?"}
        calls = []
        while True:
            message = harness.turn(WEATHER[city])
            if not message.get("tool_calls"):
                break
            calls += [
                (call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message["tool_calls"]
            ]
        outcome[city] = (calls, message["content"], message["content"] == f"{city}: {right}")
    return outcome


def test_a_model_gets_the_same_result_natively_and_through_the_protocol(tmp_path: Path) -> None:
    with proxied(tmp_path, weather_model, native=True) as (harness, server, _):
        natively = benchmark(harness.url)
        assert all("tools" in request for request in server.requests)
    with proxied(tmp_path, weather_model) as (harness, server, _):
        converted = benchmark(harness.url)
        assert not any("tools" in request for request in server.requests)
        assert LIST in server.requests[1]["messages"][2]["content"]
    assert natively == converted
    assert [passed for _, _, passed in converted.values()] == [True, True, False]
