"""The client against a real HTTP server: right at once, each thing that goes wrong, and what is counted and kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.llm.budget import Budget
from pipeline.llm.client import Client, Watch
from pipeline.llm.faults import FaultKind, ModelFault
from pipeline.llm.profiles import Prices, Profile
from pipeline.llm.replies import FILE_NAME, Replies
from pipeline.llm.request import Message, Request
from tests.llm_server import KEY, PAGE, Drop, Hold, Raw, Say, Server, Status

ASK = Request((Message("system", "You are brief."), Message("user", "Say hello.")))
SHAPE = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
PRICES = Prices(input=1.0, output=10.0)


class Bench:
    """A client with a clock that moves only when it sleeps, and everything it was told."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.deltas: list[tuple[str, str]] = []
        self.replies = Replies(path / FILE_NAME)
        self.client = Client(self.replies, sleep=self.sleep, clock=lambda: self.now, jitter=lambda: 0.0, **options)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def profile(self, server: Server, **fields: Any) -> Profile:
        return Profile(**{"model": "m", "base_url": server.url, "api_key_env": "", **fields})

    async def ask(self, server: Server, request: Request = ASK, **fields: Any) -> Any:
        watch = Watch(
            lambda kind, text: self.deltas.append((kind, text)), lambda kind, data: self.told.append((kind, data))
        )
        return await self.client.ask(request, self.profile(server, **fields), watch)

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.told]


@pytest.fixture
async def benches(tmp_path: Path) -> AsyncGenerator[Callable[..., Bench]]:
    """Makes benches over one store of replies, and closes them."""
    made: list[Bench] = []

    def make(**options: Any) -> Bench:
        made.append(Bench(tmp_path, **options))
        return made[-1]

    yield make
    for bench in made:
        await bench.client.close()
        bench.replies.close()


@pytest.fixture
async def bench(benches: Callable[..., Bench]) -> Bench:
    return benches()


async def fault_of(asking: Any) -> ModelFault:
    with pytest.raises(ModelFault) as caught:
        await asking
    return caught.value


# right at once


async def test_a_reply_streams_in_and_is_counted(bench: Bench):
    with Server([Say("Hello there.", tokens=(1000, 100))]) as server:
        reply = await bench.ask(server, prices=PRICES)
    assert reply.text == "Hello there."
    assert len(bench.deltas) > 1
    assert "".join(text for _, text in bench.deltas) == reply.text
    assert (reply.usage.tokens_in, reply.usage.tokens_out, reply.usage.counted) == (1000, 100, True)
    assert reply.usage.usd == pytest.approx(0.002)
    assert bench.kinds() == ["asked", "replied"]


async def test_without_prices_money_is_unknown_not_zero(bench: Bench):
    with Server([Say("Hello.")]) as server:
        assert (await bench.ask(server)).usage.usd is None


async def test_a_server_that_does_not_count_is_estimated_and_that_is_said(bench: Bench):
    with Server([Say("x" * 400, tokens=None)]) as server:
        usage = (await bench.ask(server)).usage
    assert usage.tokens_out == 100
    assert not usage.counted


async def test_a_server_that_does_not_stream_is_read_whole(bench: Bench):
    with Server([Say("Hello.", streams=False)]) as server:
        assert (await bench.ask(server)).text == "Hello."


@pytest.mark.parametrize(
    "said", [Say("Hello.", thinking="be brief"), Say("<think>be brief</think>\nHello.")], ids=["field", "tags"]
)
async def test_thinking_is_kept_apart(bench: Bench, said: Say):
    with Server([said]) as server:
        reply = await bench.ask(server)
    assert (reply.text, reply.thinking) == ("Hello.", "be brief")


async def test_params_and_schema_reach_the_server(bench: Bench):
    with Server([Say('{"a": 1}')]) as server:
        await bench.ask(server, Request(ASK.messages, schema=SHAPE), params={"temperature": 0.3, "top_k": 5})
    sent = server.requests[0]
    assert (sent["temperature"], sent["top_k"], sent["stream"]) == (0.3, 5, True)
    assert sent["response_format"]["json_schema"] == {"name": "reply", "schema": SHAPE, "strict": True}


async def test_an_open_schema_is_not_sent_as_strict(bench: Bench):
    with Server([Say('{"a": 1}')]) as server:
        await bench.ask(server, Request(ASK.messages, schema={"type": "object", "properties": {"a": {}}}))
    assert server.requests[0]["response_format"]["json_schema"]["strict"] is False


async def test_azure_is_asked_at_its_deployment_with_its_version(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AZURE_KEY", KEY)
    with Server([Say("Hello.")]) as server:
        profile = Profile(
            model="my-deployment",
            api="azure",
            base_url=server.url.removesuffix("/v1"),
            api_version="2024-10-21",
            api_key_env="AZURE_KEY",
        )
        assert (await bench.client.ask(ASK, profile)).text == "Hello."
    assert server.paths == ["/openai/deployments/my-deployment/chat/completions?api-version=2024-10-21"]
    assert server.headers[0]["api-key"] == KEY


async def test_no_more_requests_at_once_than_the_profile_allows(bench: Bench):
    with Server(lambda body: Say(body["messages"][0]["content"])) as server:
        asks = [Request((Message("user", f"number {n}"),)) for n in range(20)]
        replies = await asyncio.gather(*(bench.ask(server, ask, concurrency=3) for ask in asks))
    assert [reply.text for reply in replies] == [f"number {n}" for n in range(20)]
    assert server.in_flight <= 3


# kept, and never asked twice


async def test_the_same_request_is_never_asked_twice(bench: Bench, benches: Callable[..., Bench]):
    with Server([Say("Hello.", thinking="hm")]) as server:
        first = await bench.ask(server)
        again = await benches().ask(server)
        assert len(server.requests) == 1
    assert (again.text, again.thinking, again.usage, again.at) == (first.text, "hm", first.usage, first.at)
    assert again.replayed and not first.replayed


async def test_the_same_request_at_the_same_time_is_asked_once(bench: Bench):
    with Server([Say("Hello.")]) as server:
        replies = await asyncio.gather(*(bench.ask(server) for _ in range(5)))
        assert len(server.requests) == 1
    assert [reply.replayed for reply in replies].count(False) == 1
    assert len({reply.usage for reply in replies}) == 1


async def test_another_sample_or_another_model_is_asked_anew(bench: Bench):
    with Server([Say("Hello.")]) as server:
        await bench.ask(server)
        await bench.ask(server, Request(ASK.messages, sample=1))
        await bench.ask(server, model="m2")
        assert len(server.requests) == 3


async def test_replay_asks_no_server(bench: Bench, benches: Callable[..., Bench]):
    with Server([Say("Hello.")]) as server:
        await bench.ask(server)
        replay = benches(replay=True)
        assert (await replay.ask(server)).text == "Hello."
        fault = await fault_of(replay.ask(server, Request(ASK.messages, sample=7)))
        assert len(server.requests) == 1
    assert fault.kind is FaultKind.not_recorded


async def test_what_was_sent_can_be_read_back(bench: Bench):
    with Server([Say("Hello.")]) as server:
        reply = await bench.ask(server)
    document = bench.replies.request(reply.keys[0])
    assert document is not None
    assert [message["content"] for message in document["messages"]] == ["You are brief.", "Say hello."]


async def test_the_key_is_kept_nowhere(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SOME_KEY", KEY)
    with Server([Say("Hello.")], key=KEY) as server:
        await bench.ask(server, api_key_env="SOME_KEY")
    bench.replies.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"Hello" not in KEY.encode() and KEY.encode() not in kept
    assert all(KEY not in str(entry) for entry in bench.told)


# what goes away by itself


@pytest.mark.parametrize("fault", [Status(408), Status(409), Status(429), Status(500), Status(503), Drop()])
async def test_a_passing_fault_is_tried_again_after_a_growing_wait(bench: Bench, fault: Any):
    with Server([fault, fault, fault, Say("Hello.")]) as server:
        reply = await bench.ask(server)
    assert reply.text == "Hello."
    assert bench.waits == [1.0, 2.0, 4.0]
    assert bench.kinds().count("again") == 3


@pytest.mark.parametrize(
    ("headers", "wait"),
    [({"Retry-After": "7"}, 7.0), ({"retry-after-ms": "250"}, 0.25), ({"Retry-After": "soon"}, 1.0)],
)
async def test_the_wait_a_server_asks_for_is_respected(bench: Bench, headers: dict[str, str], wait: float):
    with Server([Status(429, headers=headers), Say("Hello.")]) as server:
        await bench.ask(server)
    assert bench.waits == [wait]


async def test_a_wait_asked_of_one_holds_back_all_who_use_the_profile(bench: Bench):
    answers = iter([Status(429, headers={"Retry-After": "30"})])
    with Server(lambda body: next(answers, Say("Hello."))) as server:
        await bench.ask(server)
        began = bench.now
        await bench.ask(server, Request(ASK.messages, sample=1))
    assert began >= 30


async def test_a_server_that_wants_an_hour_is_not_waited_for(bench: Bench):
    with Server([Status(429, "come back later", headers={"Retry-After": "3600"})]) as server:
        fault = await fault_of(bench.ask(server))
    assert fault.kind is FaultKind.rate_limited
    assert fault.retry_after == 3600
    assert bench.waits == []


async def test_after_all_tries_the_fault_says_what_happened_and_what_to_do(bench: Bench):
    with Server([Status(503, "overloaded")]) as server:
        fault = await fault_of(bench.ask(server, retries=2))
        assert len(server.requests) == 3
    assert fault.kind is FaultKind.server_error
    assert "503: overloaded" in str(fault)
    assert "Resume later" in str(fault)


async def test_half_a_stream_is_never_taken_for_a_reply(bench: Bench):
    with Server([Drop('{"a": 1}')]) as server:
        fault = await fault_of(bench.ask(server, retries=1, prices=PRICES))
    assert fault.kind is FaultKind.dropped
    lost = [data for kind, data in bench.told if kind == "lost"]
    assert len(lost) == 2
    assert all(data["usd"] > 0 for data in lost)  # what was said has its price


@pytest.mark.parametrize("body", [b"data: {not json\n\n", b"data: [1, 2]\n\n", b"", b": ping\n\ndata: [DONE]\n\n"])
async def test_a_stream_that_is_no_stream_of_chunks_is_a_dropped_one(bench: Bench, body: bytes):
    with Server([Raw(body)]) as server:
        fault = await fault_of(bench.ask(server, retries=0))
    assert fault.kind is FaultKind.dropped


async def test_a_server_error_inside_the_stream_is_its_fault(bench: Bench):
    with Server([Raw(b'data: {"error": {"message": "engine died"}}\n\n')]) as server:
        fault = await fault_of(bench.ask(server, retries=0))
    assert fault.kind is FaultKind.server_error
    assert "engine died" in str(fault)


@pytest.mark.parametrize("first", ["", "Let me"])
async def test_silence_is_a_timeout(bench: Bench, first: str):
    release = threading.Event()
    with Server([Hold(release, first=first)]) as server:
        fault = await fault_of(bench.ask(server, timeout_s=0.05, retries=0))
        release.set()
    assert fault.kind is FaultKind.timeout


# what does not


async def test_a_missing_key_is_named_by_its_variable(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    fault = await fault_of(bench.client.ask(ASK, Profile(model="m", api_key_env="NO_SUCH_KEY")))
    assert fault.kind is FaultKind.no_key
    assert "NO_SUCH_KEY" in str(fault)


async def test_a_wrong_key_is_refused_without_being_repeated(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SOME_KEY", "sk-wrong-9876543210")
    with Server([Say("Hello.")], key=KEY) as server:
        fault = await fault_of(bench.ask(server, api_key_env="SOME_KEY"))
    assert fault.kind is FaultKind.wrong_key
    assert "SOME_KEY" in str(fault)
    assert "9876543210" not in str(fault)


async def test_an_unknown_model_is_named(bench: Bench):
    with Server([Say("Hello.")], models=("other",)) as server:
        fault = await fault_of(bench.ask(server))
    assert fault.kind is FaultKind.unknown_model
    assert "'m'" in str(fault)


async def test_no_server_at_the_address(bench: Bench):
    with Server([Say("Hello.")]) as server:
        url = server.url
    profile = Profile(model="m", base_url=url, api_key_env="", retries=2)
    fault = await fault_of(bench.client.ask(ASK, profile))
    assert fault.kind is FaultKind.no_route
    assert url in str(fault)
    assert bench.waits == [1.0, 2.0]


@pytest.mark.parametrize("page", [PAGE, Raw(PAGE.body, "text/html", 403)])
async def test_a_web_page_is_not_a_reply(bench: Bench, page: Raw):
    with Server([page]) as server:
        fault = await fault_of(bench.ask(server))
    assert fault.kind is FaultKind.html
    assert "'Sign in'" in str(fault)


async def test_a_prompt_that_does_not_fit_is_not_tried_again(bench: Bench):
    message = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
    with Server([Status(400, message, "context_length_exceeded")]) as server:
        fault = await fault_of(bench.ask(server))
        assert len(server.requests) == 1
    assert fault.kind is FaultKind.context_overflow


async def test_no_credit_is_not_waited_for(bench: Bench):
    with Server([Status(429, "You exceeded your current quota", "insufficient_quota")]) as server:
        fault = await fault_of(bench.ask(server))
        assert len(server.requests) == 1
    assert fault.kind is FaultKind.quota


@pytest.mark.parametrize("said", [Say(refusal="I cannot help with that."), Say("Half", finish="content_filter")])
async def test_a_refusal_is_a_fault_with_what_was_said(bench: Bench, said: Say):
    with Server([said]) as server:
        assert (await fault_of(bench.ask(server))).kind is FaultKind.refusal


@pytest.mark.parametrize("said", [Say(""), Say("  \n"), Say("<think>only this</think>")])
async def test_an_empty_reply_is_a_fault(bench: Bench, said: Say):
    with Server([said]) as server:
        assert (await fault_of(bench.ask(server))).kind is FaultKind.empty


async def test_a_server_that_refuses_everything_is_asked_again_only_when_it_is_reopened(bench: Bench):
    answers = iter([PAGE])
    with Server(lambda body: next(answers, Say("Hello."))) as server:
        for _ in range(3):
            assert (await fault_of(bench.ask(server))).kind is FaultKind.html
        assert len(server.requests) == 1
        bench.client.reopen()
        assert (await bench.ask(server)).text == "Hello."


# a server that knows less


async def test_structured_output_falls_back_step_by_step_and_remembers(bench: Bench):
    def answer(body: dict[str, Any]) -> Any:
        form = (body.get("response_format") or {}).get("type")
        return Status(400, f"response_format {form} is not supported") if form else Say('{"a": 1}')

    with Server(answer) as server:
        await bench.ask(server, Request(ASK.messages, schema=SHAPE))
        await bench.ask(server, Request(ASK.messages, schema=SHAPE, sample=1))
    assert [(r.get("response_format") or {}).get("type") for r in server.requests] == [
        "json_schema",
        "json_object",
        None,
        None,
    ]
    assert '"additionalProperties":false' in server.requests[-1]["messages"][-1]["content"]


async def test_fields_a_server_does_not_know_are_renamed_or_left_out(bench: Bench):
    with Server([Say("Hello.")], refuses=("stream_options",)) as server:
        assert (await bench.ask(server)).text == "Hello."
        assert "stream_options" not in server.requests[-1]
    unsupported = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."

    def modern(body: dict[str, Any]) -> Any:
        return Status(400, unsupported) if "max_tokens" in body else Say("Hi.")

    with Server(modern) as server:
        assert (await bench.ask(server, Request(ASK.messages, sample=1))).text == "Hi."
        assert server.requests[-1]["max_completion_tokens"] == 16_384


async def test_a_parameter_the_person_set_is_not_dropped_behind_their_back(bench: Bench):
    with Server([Say("Hello.")], refuses=("temperature",)) as server:
        fault = await fault_of(bench.ask(server, params={"temperature": 0.5}))
    assert fault.kind is FaultKind.bad_request
    assert "temperature" in str(fault)


# cut by the token limit


async def test_text_cut_by_the_limit_is_taken_up_where_it_stopped(bench: Bench):
    parts = [Say("def f():\n    retu", finish="length"), Say("rn 1\n\ndef g():", finish="length"), Say("\n    pass\n")]
    with Server(parts) as server:
        reply = await bench.ask(server)
    assert reply.text == "def f():\n    return 1\n\ndef g():\n    pass\n"
    assert reply.usage.tokens_out == 150
    assert len(reply.keys) == 3
    assert server.requests[1]["messages"][-2] == {"role": "assistant", "content": "def f():\n    retu"}


async def test_json_cut_by_the_limit_is_asked_for_again_with_a_higher_one(bench: Bench):
    def answer(body: dict[str, Any]) -> Say:
        return Say('{"a": 1}') if body["max_tokens"] >= 400 else Say('{"a"', finish="length")

    with Server(answer) as server:
        reply = await bench.ask(server, Request(ASK.messages, schema=SHAPE), max_tokens=100, max_tokens_ceiling=1000)
    assert reply.text == '{"a": 1}'
    assert [r["max_tokens"] for r in server.requests] == [100, 200, 400]


async def test_a_reply_that_never_ends_is_never_returned_half(bench: Bench):
    with Server([Say("and on ", finish="length")]) as server:
        fault = await fault_of(bench.ask(server))
    assert fault.kind is FaultKind.length
    assert "max_tokens_ceiling" in str(fault)


# money


async def test_the_budget_is_never_passed(benches: Callable[..., Bench]):
    """Twenty requests at once, each really costing a tenth of what it may cost: the sum stays under the limit."""
    bench = benches(budget=Budget(0.10))
    with Server([Say("Hello.", tokens=(1000, 1000))]) as server:  # $0.011 each
        asks = [bench.ask(server, Request(ASK.messages, sample=n), prices=PRICES, max_tokens=5000) for n in range(20)]
        results = await asyncio.gather(*asks, return_exceptions=True)
    spent = sum(data["usd"] for kind, data in bench.told if kind == "replied")
    assert spent <= 0.10
    assert bench.client.budget.spent == pytest.approx(spent)
    assert 4 <= sum(not isinstance(r, Exception) for r in results) < 20
    refused = [r for r in results if isinstance(r, ModelFault)]
    assert {fault.kind for fault in refused} == {FaultKind.budget}
    assert "Raise the budget" in str(refused[0])


@pytest.mark.parametrize("prices", [PRICES, None])
async def test_a_budget_of_nothing_asks_nothing(benches: Callable[..., Bench], prices: Prices | None):
    bench = benches(budget=Budget(0.0))
    with Server([Say("Hello.")]) as server:
        fault = await fault_of(bench.ask(server, prices=prices))
        assert server.requests == []
    assert fault.kind is FaultKind.budget


async def test_a_raised_budget_lets_waiting_calls_through(benches: Callable[..., Bench]):
    bench = benches(budget=Budget(0.06))
    release = threading.Event()
    with Server(lambda body: Hold(release, Say("Hello."))) as server:
        first = asyncio.create_task(bench.ask(server, prices=PRICES, max_tokens=5000))
        second = asyncio.create_task(bench.ask(server, Request(ASK.messages, sample=1), prices=PRICES, max_tokens=5000))
        while not server.requests:
            await asyncio.sleep(0.001)
        assert len(server.requests) == 1
        await bench.client.budget.raise_to(1.0)
        while len(server.requests) < 2:
            await asyncio.sleep(0.001)
        release.set()
        assert [(await task).text for task in (first, second)] == ["Hello.", "Hello."]


# a full disk


async def test_a_full_disk_is_a_fault_that_names_the_file(bench: Bench):
    bench.replies._db.execute("PRAGMA max_page_count = 5")
    with Server([Say("Hello. " * 100_000)]) as server:
        fault = await fault_of(bench.ask(server, Request((Message("user", str(list(range(20_000)))),))))
    assert fault.kind is FaultKind.disk_full
    assert FILE_NAME in str(fault)


# embeddings


async def test_embeddings_are_asked_once_a_text(bench: Bench):
    with Server([Say("")], embed=lambda text: [float(len(text)), 1.0]) as server:
        profile = bench.profile(server)
        assert await bench.client.embed(["a", "bcd", "a"], profile) == [[1.0, 1.0], [3.0, 1.0], [1.0, 1.0]]
        assert await bench.client.embed(["bcd", "ef"], profile) == [[3.0, 1.0], [2.0, 1.0]]
    assert [request["input"] for request in server.requests] == [["a", "bcd"], ["ef"]]


async def test_a_server_on_this_machine_needs_no_key(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with Server([Say("Hello.")]) as server:
        assert (await bench.ask(server, api_key_env="NO_SUCH_KEY")).text == "Hello."
