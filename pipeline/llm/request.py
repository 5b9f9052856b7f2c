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
class Message:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """What to ask. The same request to the same model is answered from the kept replies.

    `schema` asks for JSON of that shape. `sample` tells apart requests that are meant to be asked again although they
    are equal (another try at the same thing). `max_tokens` None means what the profile says.
    """

    messages: tuple[Message, ...]
    schema: Mapping[str, Any] | None = None
    max_tokens: int | None = None
    sample: int = 0

    def document(self, profile: Profile) -> dict[str, Any]:
        """The request as one JSON object; without server address and key, so that it means the same anywhere."""
        return {
            "model": profile.model,
            "params": profile.params,
            "max_tokens": self.max_tokens or profile.max_tokens,
            "schema": self.schema,
            "sample": self.sample,
            "messages": [{"role": message.role, "content": message.content} for message in self.messages],
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
class Reply:
    """A complete answer. `text` is without the thinking part, which is in `thinking`.

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


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has, for servers that do not count: 4 characters each, as English has."""
    return (len(text) + 3) // 4


def most_tokens(request: Request) -> int:
    """More tokens than the prompt can have, for reserving money: half its bytes, and a few for each message.

    Byte-pair encodings average 3 to 4 bytes a token on English, JSON and code, 2.5 on dense SQL.
    """
    size = sum(len(message.content.encode("utf-8", "replace")) for message in request.messages)
    schema = len(orjson.dumps(request.schema)) if request.schema else 0
    return (size + schema) // 2 + 16 * len(request.messages)
