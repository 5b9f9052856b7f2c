"""What is asked of a model and what it answered, as values that can be kept and compared."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

import orjson

from pipeline.llm.profiles import Profile


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model made by the server's own tool calling; `arguments` is the text it wrote, meant to be JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation: an assistant's may hold the `calls` it made, a tool's answers one by `call_id`."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""

    def document(self) -> dict[str, Any]:
        """The message as the chat API has it."""
        document: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.calls:
            document["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.calls
            ]
        if self.call_id:
            document["tool_call_id"] = self.call_id
        return document


@dataclass(frozen=True, slots=True)
class Request:
    """What to ask. The same request to the same model is answered from the kept replies.

    `schema` asks for JSON of that shape. `sample` tells apart requests that are meant to be asked again although they
    are equal (another try at the same thing). `max_tokens` None means what the profile says.

    `tools` are functions the model may call, as the chat API has them. `raw` asks for one reply as it came: thinking
    tags stay in its text, and it may be cut or empty. `tokens` asks for token ids and logprobs, which not every server
    gives.
    """

    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    max_tokens: int | None = None
    sample: int = 0
    tools: tuple[Mapping[str, Any], ...] = ()
    raw: bool = False
    tokens: bool = False

    def document(self, profile: Profile) -> dict[str, Any]:
        """The request as one JSON object; without server address and key, so that it means the same anywhere."""
        asked = {"tools": list(self.tools), "raw": self.raw, "tokens": self.tokens}
        return {
            "model": profile.model,
            "params": profile.params,
            "max_tokens": self.max_tokens or profile.max_tokens,
            "schema": self.schema,
            "sample": self.sample,
            **{name: value for name, value in asked.items() if value},
            "messages": [message.document() for message in self.messages],
        }

    def key(self, profile: Profile) -> str:
        """What the reply is kept under: the sha256 of the request's document."""
        return hashlib.sha256(orjson.dumps(self.document(profile), option=orjson.OPT_SORT_KEYS)).hexdigest()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, money and time. `usd` is None where no price is known; `counted` is False where the server did not
    count and the tokens are our estimate."""

    tokens_in: int = 0
    tokens_out: int = 0
    usd: float | None = None
    seconds: float = 0.0
    counted: bool = True

    def __add__(self, other: Usage) -> Usage:
        known = [usd for usd in (self.usd, other.usd) if usd is not None]
        return Usage(
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            sum(known) if known else None,
            self.seconds + other.seconds,
            self.counted and other.counted,
        )


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a reply was made of, where the server says so: the ids it was given, the ids it chose, their logprobs.

    Each is empty where the server did not give it.
    """

    prompt: tuple[int, ...] = ()
    completion: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer. `text` is without the thinking part, which is in `thinking`; `calls` are calls of tools.

    `finish` is the server's reason for stopping. `replayed` says that it came from the kept replies and cost nothing
    now; `usage` is what it cost when it was made. `keys` are what its pieces are kept under.
    """

    text: str
    thinking: str = ""
    finish: str = "stop"
    refusal: str = ""
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    at: datetime | None = None
    keys: tuple[str, ...] = ()
    replayed: bool = False
    calls: tuple[ToolCall, ...] = ()
    tokens: Tokens = Tokens()


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has, for servers that do not count: 4 characters each, as English has."""
    return (len(text) + 3) // 4


def most_tokens(request: Request) -> int:
    """More tokens than the prompt can have, for reserving money: half its bytes, and a few for each message.

    Byte-pair encodings average 3 to 4 bytes a token on English, JSON and code, 2.5 on dense SQL.
    """
    size = sum(len(message.content.encode("utf-8", "replace")) for message in request.messages)
    schemas = sum(len(orjson.dumps(shape)) for shape in (request.schema, *request.tools) if shape)
    return (size + schemas) // 2 + 16 * len(request.messages)
