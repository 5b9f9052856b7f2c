"""One request over HTTP: what is sent, how a stream is heard, and what a server turns out not to understand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import orjson

from pipeline.llm import faults
from pipeline.llm.faults import FaultKind, ModelFault
from pipeline.llm.profiles import Profile
from pipeline.llm.request import Request, Tokens, ToolCall

CONNECT_S = 10.0
"""Seconds to wait for a connection."""

_FORMS = ("schema", "object", "text")
"""How JSON can be asked for, from what binds the model most to what binds it least."""

OnDelta = Callable[[str, str], None]
"""Called with (`"text"` or `"thinking"`, some characters) while a reply streams in."""


@dataclass(slots=True)
class Heard:
    """What has come in of one reply so far; kept outside the call, so that a dropped one can still be counted."""

    text: list[str] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    finish: str | None = None
    model: str = ""
    tokens_in: int | None = None
    tokens_out: int | None = None
    cached: int = 0
    calls: dict[int, dict[str, str]] = field(default_factory=dict)  # by their place in the reply
    prompt_ids: list[int] = field(default_factory=list)
    completion_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)

    @property
    def characters(self) -> int:
        """How much text was received, thinking and calls included."""
        pieces = (*self.text, *self.thinking, *self.refusal, *(call["arguments"] for call in self.calls.values()))
        return sum(map(len, pieces))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of tools, in their order."""
        return tuple(ToolCall(**call) for _, call in sorted(self.calls.items()))

    @property
    def tokens(self) -> Tokens:
        """What the server said of tokens."""
        return Tokens(tuple(self.prompt_ids), tuple(self.completion_ids), tuple(self.logprobs))


class Wire:
    """The connection to one profile's server, which remembers what that server refused before."""

    def __init__(self, profile: Profile) -> None:
        """Raises ModelFault where the profile's key is not in the environment."""
        import openai

        self._profile = profile
        self._key = profile.key()
        self._form = "schema" if profile.structured == "auto" else profile.structured
        self._usage = True
        self._token_fields = {"logprobs": True, "return_token_ids": True}  # the second is vLLM's own
        host = urlsplit(profile.base_url).hostname or ""
        new_name = profile.api == "azure" or host.endswith("openai.com")
        self._limit_field = "max_completion_tokens" if new_name else "max_tokens"
        common: dict[str, Any] = {
            "api_key": self._key or "none",
            "max_retries": 0,  # tries are counted, reported and paid for by our client
            "timeout": openai.Timeout(profile.timeout_s, connect=CONNECT_S),
        }
        self._sdk: openai.AsyncOpenAI = (
            openai.AsyncAzureOpenAI(
                azure_endpoint=profile.base_url,
                azure_deployment=profile.model,
                api_version=profile.api_version,
                **common,
            )
            if profile.api == "azure"
            else openai.AsyncOpenAI(base_url=profile.base_url, **common)
        )

    async def send(self, request: Request, heard: Heard, on_delta: OnDelta) -> None:
        """Ask once and fill `heard` as the answer comes in. Raises ModelFault where no whole answer came.

        A request field that the server refuses is left out or renamed, and the request sent again, at once and from
        then on.
        """
        import openai

        while True:
            try:
                return await self._once(request, heard, on_delta)
            except openai.APIStatusError as error:
                if not self._adapt(error, request):
                    raise faults.from_exception(error, self._profile, self._key) from error
            except (openai.APIError, ValueError, TypeError, AttributeError) as error:
                raise faults.from_exception(error, self._profile, self._key) from error

    async def embed(self, texts: list[str]) -> tuple[list[list[float]], int]:
        """One vector a text, and the tokens they had. Raises ModelFault."""
        import openai

        try:
            answer = await self._sdk.embeddings.create(
                model=self._profile.model, input=texts, encoding_format="float", extra_body=self._profile.params
            )
            vectors = [item.embedding for item in sorted(answer.data, key=lambda item: item.index)]
        except (openai.APIError, ValueError, TypeError, AttributeError) as error:
            raise faults.from_exception(error, self._profile, self._key) from error
        if len(vectors) != len(texts):
            raise ModelFault(
                FaultKind.server_error,
                f"{self._profile.model} gave {len(vectors)} embeddings for {len(texts)} texts.",
                "Choose another embedding model.",
            )
        return vectors, answer.usage.total_tokens if answer.usage else 0

    async def close(self) -> None:
        """Close the connections."""
        await self._sdk.close()

    async def _once(self, request: Request, heard: Heard, on_delta: OnDelta) -> None:
        raw: Any = await self._sdk.chat.completions.with_raw_response.create(stream=True, **self._fields(request))
        kind = raw.headers.get("content-type", "")
        if "event-stream" not in kind:
            body = (await raw.http_response.aread()).decode("utf-8", "replace")
            if "json" not in kind:
                raise faults.from_html(self._profile, raw.status_code, body)
            _hear_whole(json.loads(body), heard, on_delta)  # a server that does not stream
        else:
            async with raw.parse() as stream:
                async for chunk in stream:
                    _hear(chunk.model_dump(), "delta", heard, on_delta)
        if heard.finish is None:
            raise ModelFault(
                FaultKind.dropped,
                f"the reply of {self._profile.model} at {self._profile.base_url} broke off after "
                f"{heard.characters} characters.",
                "Resume to ask again.",
            )

    def _fields(self, request: Request) -> dict[str, Any]:
        messages = _alternating(request)
        fields: dict[str, Any] = {
            "model": self._profile.model,
            "messages": messages,
            self._limit_field: request.max_tokens or self._profile.max_tokens,
            "extra_body": self._profile.params,
        }
        if self._usage:
            fields["stream_options"] = {"include_usage": True}
        if request.tools:
            fields["tools"] = list(request.tools)
        if request.tokens:
            fields["extra_body"] = self._token_fields | self._profile.params
        if request.schema is None:
            return fields
        if self._form == "schema":
            shape = {"name": "reply", "schema": request.schema, "strict": is_closed(request.schema)}
            fields["response_format"] = {"type": "json_schema", "json_schema": shape}
            return fields
        if self._form == "object":
            fields["response_format"] = {"type": "json_object"}
        schema = orjson.dumps(request.schema).decode()
        messages[-1]["content"] += (
            f"\n\nReply with one JSON document that follows this JSON schema, and nothing else:\n{schema}"
        )
        return fields

    def _adapt(self, error: Any, request: Request) -> bool:
        """Whether a refused request is worth sending again in another way, which is remembered."""
        if error.status_code not in (400, 404, 422, 501):
            return False
        told = f"{error.param or ''} {error.message}".lower()
        if "stream_options" in told and self._usage:
            self._usage = False
            return True
        if request.tokens and (refused := [name for name in self._token_fields if name in told]):
            for name in refused:
                del self._token_fields[name]
            return True
        other = "max_completion_tokens" if self._limit_field == "max_tokens" else "max_tokens"
        if f"'{self._limit_field}'" in told and ("unsupported" in told or f"'{other}'" in told):
            self._limit_field = other
            return True
        about_form = any(
            word in told for word in ("response_format", "json_schema", "json_object", "structured output")
        )
        if request.schema is None or self._form == "text" or self._profile.structured != "auto" or not about_form:
            return False
        self._form = _FORMS[_FORMS.index(self._form) + 1]
        return True


def _alternating(request: Request) -> list[dict[str, Any]]:
    """The messages, neighbours of one role joined: some chat templates insist on alternating roles."""
    messages: list[dict[str, Any]] = []
    for message in request.messages:
        document = message.document()
        plain = document.keys() == {"role", "content"}
        if plain and messages and messages[-1].keys() == document.keys() and messages[-1]["role"] == message.role:
            messages[-1]["content"] += f"\n\n{message.content}"
        else:
            messages.append(document)
    return messages


def is_closed(schema: Any) -> bool:
    """Whether a JSON schema obeys the rules of strict structured output.

    Every object lists all its properties as required and allows no others
    (https://platform.openai.com/docs/guides/structured-outputs#supported-schemas).
    """
    if isinstance(schema, Mapping):
        if schema.get("type") == "object" and (
            schema.get("additionalProperties") is not False
            or set(schema.get("required", ())) != set(schema.get("properties", ()))
        ):
            return False
        return all(is_closed(value) for value in schema.values())
    return all(is_closed(item) for item in schema) if isinstance(schema, list) else True


def _hear(event: Mapping[str, Any], part: str, heard: Heard, on_delta: OnDelta) -> None:
    heard.model = event.get("model") or heard.model
    heard.prompt_ids += event.get("prompt_token_ids") or ()
    if usage := event.get("usage"):
        heard.tokens_in = usage.get("prompt_tokens") or heard.tokens_in
        heard.tokens_out = usage.get("completion_tokens") or heard.tokens_out
        heard.cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    for choice in (event.get("choices") or ())[:1]:
        said = choice.get(part) or {}
        # Thinking comes as reasoning_content (vLLM, DeepSeek) or as reasoning (OpenRouter, Ollama).
        for name, kind, pieces in (
            ("reasoning_content", "thinking", heard.thinking),
            ("reasoning", "thinking", heard.thinking),
            ("content", "text", heard.text),
            ("refusal", "text", heard.refusal),
        ):
            if isinstance(piece := said.get(name), str) and piece:
                pieces.append(_clean(piece))
                on_delta(kind, pieces[-1])
        for place, call in enumerate(said.get("tool_calls") or ()):
            _hear_call(call, heard.calls.setdefault(call.get("index", place), {"id": "", "name": "", "arguments": ""}))
        heard.completion_ids += choice.get("token_ids") or ()
        heard.logprobs += [token["logprob"] for token in (choice.get("logprobs") or {}).get("content") or ()]
        heard.finish = choice.get("finish_reason") or heard.finish


def _hear_call(piece: Mapping[str, Any], call: dict[str, str]) -> None:
    function = piece.get("function") or {}
    call["id"] = piece.get("id") or call["id"]
    call["name"] = function.get("name") or call["name"]
    call["arguments"] += _clean(function.get("arguments") or "")


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # a lone surrogate can be neither kept nor sent


def _hear_whole(body: Any, heard: Heard, on_delta: OnDelta) -> None:
    if not isinstance(body, dict) or not body.get("choices"):
        raise ValueError(f"no choices in {json.dumps(body)[:200]}")
    _hear(body, "message", heard, on_delta)
