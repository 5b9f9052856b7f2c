"""An OpenAI-compatible server on 127.0.0.1 between a benchmark's harness and a model.

A harness sends native `tools`; a model trained on AWM's protocol knows `list_tools` and `call_tool`. The proxy speaks
to each in its own way (see `proxy_protocol`) and samples the model as its profile says, whatever the harness asks for.
In native mode nothing is converted: the same model, sampled alike, by its server's own tool calling. Real keys exist
only in here: what a harness sends as its key is not looked at.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import UserError
from pipeline.llm.faults import ModelFault
from pipeline.llm.text import split_thinking
from train.local_server import local_server
from train.proxy_log import ProxyLog
from train.proxy_protocol import (
    Inner,
    Memory,
    NotText,
    Parallel,
    Turn,
    answered_here,
    as_native,
    context_of,
    text_of,
    tools_of,
)
from train.sampling import is_openai

if TYPE_CHECKING:
    import httpx
    from starlette.requests import Request
    from starlette.responses import Response

    from pipeline.llm.profiles import Profile

WINDOW = 10
"""Exchanges the model sees in evaluation (arXiv 2602.10090, table 8)."""

MOST_TOKENS = 2048
"""Tokens a turn may have where the harness sets no limit (arXiv 2602.10090, table 8)."""

MOST_INNER = 4
"""Turns in a row that the proxy answers by itself; a model that still lists tools after that has given an answer."""

DUMMY_KEY = "none"
"""What harnesses are given as a key."""

DROPPED = frozenset({"store", "seed", "parallel_tool_calls", "metadata", "service_tier", "user", "stream",
                     "stream_options", "n"})  # fmt: skip
"""Fields that harnesses add and servers reject, or that change what is measured; streams are made here."""

TOOL_FIELDS = frozenset({"tools", "tool_choice", "functions", "function_call"})

LIMITS = frozenset({"max_tokens", "max_completion_tokens"})

PATIENCE_S = 600.0
"""Seconds the model may take for a reply."""


@dataclass(frozen=True, slots=True)
class Served:
    """A proxy that runs: what a harness gets as base_url (with any key), and where its log is."""

    base_url: str
    log: Path


@contextmanager
def serving(
    profile: Profile,
    log: Path,
    *,
    native: bool = False,
    window: int | None = WINDOW,
    parallel: Parallel = "first",
    port: int = 0,
) -> Generator[Served]:
    """Serve a model to harnesses for as long as the block runs; its `params` win over what a harness asks for.

    Raises UserError where the profile's key is missing, its API is not OpenAI's, the port is taken or the log cannot
    be written.
    """
    if profile.api == "azure":
        raise UserError("The proxy speaks to OpenAI-compatible servers; give Azure's v1 address as base_url instead.")
    try:
        key = profile.key()
    except ModelFault as fault:
        raise UserError(str(fault)) from None
    proxy = Proxy(profile, key, ProxyLog(log), native=native, window=window, parallel=parallel)
    with local_server(_app(proxy), port) as address:
        yield Served(f"{address}/v1", log)


class Refused(Exception):
    """The model's server did not give a reply: what the harness is told, and the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Answer:
    """What came of one request: the message for the harness, what the model said on the way, tokens."""

    message: dict[str, Any] = field(default_factory=dict)
    finish: str = "stop"
    said: list[str] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=lambda: {"prompt_tokens": 0, "completion_tokens": 0})

    def count(self, usage: Mapping[str, Any] | None) -> None:
        """Add the tokens of one reply of the model."""
        for name in self.usage:
            self.usage[name] += int((usage or {}).get(name) or 0)


class Proxy:
    """Answers a harness's requests by asking the model."""

    def __init__(
        self, profile: Profile, key: str, log: ProxyLog, *, native: bool, window: int | None, parallel: Parallel
    ) -> None:
        self.client: httpx.AsyncClient | None = None  # while it serves
        self.model = profile.model
        self._profile = profile
        self._key = key
        self._log = log
        self._native = native
        self._window = window
        self._parallel: Parallel = parallel
        self._limit = "max_completion_tokens" if is_openai(profile) else "max_tokens"
        self._results_as: Any = "user" if is_openai(profile) else "tool"
        self._memory = Memory()

    async def answer(self, body: Mapping[str, Any]) -> Answer:
        """What a harness gets for a request; it is logged. Raises Refused where there is nothing to get."""
        began, answer, error = time.monotonic(), Answer(), ""
        try:
            await self._answer(body, answer)
        except NotText as fault:
            error = str(fault)
            raise Refused(400, error) from None
        except Refused as fault:
            error = str(fault)
            raise
        finally:
            self._keep(body, answer, error, time.monotonic() - began)
        return answer

    async def _answer(self, body: Mapping[str, Any], answer: Answer) -> None:
        if self._native or not body.get("tools") or body.get("tool_choice") == "none":
            await self._pass_through(body, answer)
        else:
            await self._converted(body, answer)

    async def _pass_through(self, body: Mapping[str, Any], answer: Answer) -> None:
        dropped = DROPPED if self._native else DROPPED | TOOL_FIELDS
        choice = await self._ask(_without(body, dropped), answer)
        answer.message = choice["message"]
        answer.finish = choice.get("finish_reason") or "stop"
        if not self._native:
            answer.message = {**answer.message, "content": split_thinking(answer.said[-1])[1]}

    async def _converted(self, body: Mapping[str, Any], answer: Answer) -> None:
        tools, inner = tools_of(body), list[Inner]()
        fields = _without(body, DROPPED | TOOL_FIELDS | {"response_format"})
        while True:
            messages = context_of(body, self._memory, inner, window=self._window, results_as=self._results_as)
            choice = await self._ask({**fields, "messages": messages}, answer)
            here = answered_here(answer.said[-1], tools)
            if here is None or len(inner) == MOST_INNER:
                break
            inner.append(here)
        answer.message = as_native(answer.said[-1], self._parallel, f"call_{uuid.uuid4().hex[:16]}")
        answer.finish = "tool_calls" if "tool_calls" in answer.message else choice.get("finish_reason") or "stop"
        self._memory.keep(Turn(answer.said[-1], tuple(inner)), body["messages"], answer.message)

    async def _ask(self, fields: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
        """One reply of the model: its choice. Raises Refused for none."""
        limit = {} if LIMITS & fields.keys() else {self._limit: MOST_TOKENS}
        document = await self._reply({**fields, **limit, **self._profile.params, "model": self.model})
        try:
            choice = document["choices"][0]
            answer.said.append(text_of(choice["message"]))
            answer.count(document.get("usage"))
        except (KeyError, IndexError, TypeError, AttributeError, ValueError):
            raise Refused(502, f"{self._profile.base_url} answers, but not with a model's reply.") from None
        return choice

    async def _reply(self, sent: Mapping[str, Any]) -> Any:
        import httpx

        assert self.client is not None
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        try:
            reply = await self.client.post(f"{self._profile.base_url}/chat/completions", json=sent, headers=headers)
            document = reply.json()
        except httpx.HTTPError as error:
            what = str(error) or type(error).__name__
            raise Refused(502, f"There is no reply from {self._profile.base_url} ({self._safe(what)}).") from None
        except ValueError:
            document = None
        if reply.status_code != httpx.codes.OK or document is None:
            status = reply.status_code if reply.status_code != httpx.codes.OK else 502
            what = self._safe(reply.text[:500]) if document is not None else "not JSON"
            raise Refused(status, f"{self._profile.base_url} answers with HTTP {reply.status_code}: {what}")
        return document

    def _safe(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text

    def _keep(self, body: Mapping[str, Any], answer: Answer, error: str, seconds: float) -> None:
        entry = {
            "messages": len(body["messages"]),
            "tools": len(body.get("tools") or ()),
            "new": _new(body["messages"]),
            "said": answer.said,
            "content": answer.message.get("content"),
            "calls": [call["function"] for call in answer.message.get("tool_calls") or ()],
            "finish": answer.finish if not error else None,
            "usage": answer.usage,
            "seconds": round(seconds, 3),
            "error": error,
        }
        try:
            self._log.add(entry)
        except OSError as fault:
            raise Refused(507, f"The proxy's log {self._log.path} cannot be written: {fault.strerror}.") from None


def _without(body: Mapping[str, Any], dropped: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in dropped}


def _new(messages: list[Any]) -> list[Any]:
    """The messages since the assistant's last one."""
    last = max((number for number, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    return messages[last + 1 :]


def completion(body: Mapping[str, Any], answer: Answer) -> dict[str, Any]:
    """An answer as the chat API has it; its model is the one that the harness named."""
    usage = {**answer.usage, "total_tokens": sum(answer.usage.values())}
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body.get("model", ""),
        "choices": [{"index": 0, "message": answer.message, "finish_reason": answer.finish, "logprobs": None}],
        "usage": usage,
    }


def stream_of(document: Mapping[str, Any], *, usage: bool) -> Iterator[str]:
    """A whole answer as the events of a stream."""
    common = {name: document[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    (choice,) = document["choices"]
    message = choice["message"]
    calls = [{"index": number, **call} for number, call in enumerate(message.get("tool_calls") or ())]
    delta = {"role": "assistant", "content": message.get("content"), **({"tool_calls": calls} if calls else {})}
    chunks = [([{"index": 0, "delta": delta, "finish_reason": None}], None)]
    chunks.append(([{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}], None))
    if usage:
        chunks.append(([], document["usage"]))
    for choices, used in chunks:
        yield f"data: {json.dumps({**common, 'choices': choices, 'usage': used})}\n\n"
    yield "data: [DONE]\n\n"


def _app(proxy: Proxy) -> Any:
    import httpx
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, StreamingResponse
    from starlette.routing import Route

    def refused(status: int, message: str) -> Response:
        return JSONResponse({"error": {"message": message, "type": "proxy", "code": status}}, status)

    async def complete(request: Request) -> Response:
        try:
            body = await request.json()
            messages = body["messages"]
            if not messages or not all(isinstance(message, dict) and "role" in message for message in messages):
                raise ValueError
            tools_of(body)
        except (ValueError, KeyError, TypeError):
            return refused(
                400,
                "This is no chat request: a JSON object with messages is needed, and tools are functions with names.",
            )
        try:
            answer = await proxy.answer(body)
        except Refused as fault:
            return refused(fault.status, str(fault))
        document = completion(body, answer)
        if body.get("stream"):
            usage = bool((body.get("stream_options") or {}).get("include_usage"))
            return StreamingResponse(stream_of(document, usage=usage), media_type="text/event-stream")
        return JSONResponse(document)

    async def models(_: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": proxy.model, "object": "model", "owned_by": "proxy"}]})

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncGenerator[None]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(timeout=httpx.Timeout(PATIENCE_S, connect=10), limits=limits) as client:
            proxy.client = client
            yield

    routes = [Route("/v1/chat/completions", complete, methods=["POST"]), Route("/v1/models", models)]
    return Starlette(routes=routes, lifespan=lifespan)
