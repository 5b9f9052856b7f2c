"""Who acts in an episode: a model behind a server, or a script whose result is known beforehand."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from pipeline.llm.request import Request, ToolCall
from pipeline.model import Call, Solution
from train.episode import Episode
from train.protocol import Form, Said, call_text, list_text

if TYPE_CHECKING:
    from pipeline.llm.client import Client
    from pipeline.llm.profiles import Profile
    from pipeline.runtime.tools import Tool

DONE = "Done."
"""What scripts answer where the task asks for nothing: the cheapest claim of success."""

MOST_RANDOM_CALLS = 8
"""Calls a random agent makes at most: what the longest reference solutions of blueprints take."""


class Policy(Protocol):
    """An agent in one episode."""

    async def say(self, episode: Episode) -> Said:
        """Its next turn. Raises ModelFault where its server gives none."""


class Script:
    """An agent that lists the tools, makes the calls it was given, and answers.

    `nested` writes the arguments of calls as JSON texts (see `protocol.call_text`).
    """

    def __init__(self, calls: Sequence[Call], answer: str, *, nested: bool = True) -> None:
        self._calls = calls
        self._answer = answer
        self._nested = nested

    async def say(self, episode: Episode) -> Said:
        """Its next turn."""
        turn = len(episode.turns) - episode.rules.pinned
        if turn < 0:
            return Said(list_text())
        if turn >= len(self._calls):
            return Said(self._answer)
        call = self._calls[turn]
        if episode.rules.form is Form.native:
            return Said("", calls=(ToolCall(f"call_{turn}", call.tool, json.dumps(call.arguments)),))
        return Said(call_text(call.tool, call.arguments, nested=self._nested))


def reference(solution: Solution, *, nested: bool = True) -> Script:
    """The agent that does what is known to be right."""
    return Script(solution.calls, solution.answer or DONE, nested=nested)


def noop(tools: Sequence[Tool]) -> Script:
    """The agent that looks at one list (if one needs no arguments), changes nothing, and says it is done."""
    looks = [tool.name for tool in tools if not tool.writes and not tool.input_schema.get("required")]
    return Script([Call(name) for name in looks[:1]], DONE)


def at_random(tools: Sequence[Tool], snapshot: bytes, *, seed: str) -> Script:
    """The agent that calls any tools with plausible arguments. The same seed gives the same calls."""
    from pipeline.runtime.arguments import sample_arguments

    rng = random.Random(seed)  # noqa: S311 (reproducible on purpose)
    chosen = rng.choices(tools, k=rng.randint(1, MOST_RANDOM_CALLS)) if tools else []
    calls = [Call(t.name, sample_arguments(t.input_schema, snapshot, seed=rng.getrandbits(32))) for t in chosen]
    return Script(calls, DONE)


class ModelPolicy:
    """A model behind an OpenAI-compatible server.

    `key` tells this episode's requests from equal ones of other episodes: kept replies are used again only where a
    run goes on after an interruption. `most_tokens` is what a turn may have.
    """

    def __init__(self, client: Client, profile: Profile, *, key: str, most_tokens: int) -> None:
        self._client = client
        self._profile = profile
        self._key = key
        self._most_tokens = most_tokens

    async def say(self, episode: Episode) -> Said:
        """Its next turn. Raises ModelFault where there is none."""
        request = Request(
            tuple(episode.context()),
            max_tokens=self._most_tokens,
            sample=_number(f"{self._key}/{len(episode.turns)}"),
            tools=episode.shown.functions,
            raw=True,
            tokens=True,
        )
        reply = await self._client.ask(request, self._profile)
        return Said(
            content=reply.text,
            thinking=reply.thinking,
            calls=reply.calls,
            cut=reply.finish == "length",
            prompt_ids=reply.tokens.prompt,
            completion_ids=reply.tokens.completion,
            logprobs=reply.tokens.logprobs,
            tokens_in=reply.usage.tokens_in,
            tokens_out=reply.usage.tokens_out,
        )


def _number(text: str) -> int:
    """A number that stands for a text, of 53 bits, which JSON holds exactly."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 11
