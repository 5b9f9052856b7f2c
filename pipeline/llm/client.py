"""Asks models: tries again where that helps, keeps every reply, counts tokens and money, goes on after a cut."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import orjson

from pipeline.llm import faults
from pipeline.llm.budget import Budget
from pipeline.llm.faults import FaultKind, ModelFault
from pipeline.llm.profiles import Profile
from pipeline.llm.replies import Replies
from pipeline.llm.request import Message, Reply, Request, Usage, estimate_tokens, most_tokens
from pipeline.llm.text import joined, split_thinking
from pipeline.llm.wire import Heard, OnDelta, Wire

FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 60.0
"""Waits between tries double from the first to the longest, each shortened by up to a quarter at random."""

LONGEST_RETRY_AFTER_S = 600.0
"""A server that asks to wait longer than this is not waited for: the fault says so, and a person decides."""

CONTINUATIONS = 6
"""How often a reply that was cut by the token limit is asked for again with a higher one, or taken up again."""

CONTINUE = (
    "Your reply was cut off by the length limit. Go on exactly where it stopped, in the middle of the line if need be. "
    "Repeat nothing, explain nothing, open no new code block."
)

T = TypeVar("T")


def _ignore(*_: Any) -> None:
    """The callback of those who do not want to know."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Who wants to know what happens to a request.

    `delta` is called with each piece that streams in. `notify` is called with `asked` (and `most_usd`, which is set
    aside for it), then `replied` or `lost` (with what was spent nonetheless), and `again` before another try.
    """

    delta: OnDelta = _ignore
    notify: Callable[[str, dict[str, Any]], None] = _ignore


@dataclass(slots=True)
class _Line:
    """One server as this client uses it: who may ask now, and until when it wants to be left alone."""

    wire: Wire
    slots: asyncio.Semaphore
    quiet_until: float = 0.0  # on the client's clock
    closed: ModelFault | None = None  # why nobody need ask


class Client:
    """Answers requests. One client serves a whole run, in one event loop.

    `replay`: answer from the kept replies only and ask no server. `sleep`, `clock` and `jitter` exist so that tests
    need not wait.
    """

    def __init__(
        self,
        replies: Replies,
        *,
        budget: Budget | None = None,
        replay: bool = False,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.replies = replies
        self.budget = budget or Budget()
        self._replay = replay
        self._sleep, self._clock, self._jitter = sleep, clock, jitter
        self._lines: dict[str, _Line] = {}
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by the request's key

    async def ask(self, request: Request, profile: Profile, watch: Watch = Watch()) -> Reply:
        """The complete reply to a request, from the kept replies where it was asked before.

        A reply cut by the token limit is asked for again with a higher limit (where it must be JSON of a schema, which
        cannot be resumed) or taken up where it stopped. Raises ModelFault where there is no complete reply, and for a
        `raw` request, whose reply may be incomplete, only where there is none.
        """
        reply = await self._exchange(request, profile, watch)
        if request.raw:
            return reply
        for _ in range(CONTINUATIONS):
            if reply.finish != "length":
                break
            limit = request.max_tokens or profile.max_tokens
            if limit < profile.max_tokens_ceiling and (request.schema is not None or not reply.text):
                request = replace(request, max_tokens=min(limit * 2, profile.max_tokens_ceiling))
                reply = _after(reply, await self._exchange(request, profile, watch), "")
            elif reply.text:
                told = (*request.messages, Message("assistant", reply.text), Message("user", CONTINUE))
                rest = await self._exchange(replace(request, messages=told, schema=None), profile, watch)
                reply = _after(reply, rest, reply.text)
            else:
                break
        return _whole(reply, profile)

    async def embed(self, texts: list[str], profile: Profile, watch: Watch = Watch()) -> list[list[float]]:
        """One embedding a text, kept like replies; only those not seen before are asked for. Raises ModelFault."""
        requests = [Request((Message("user", text),)) for text in texts]
        keys = [request.key(profile) for request in requests]
        kept = {key: reply for key in keys if (reply := self.replies.get(key))}
        missing = {key: request for key, request in zip(keys, requests, strict=True) if key not in kept}
        if missing:
            if self._replay:
                raise _not_recorded(profile)
            line = self._line(profile)

            async def send() -> list[Reply]:
                return await self._embedded(missing, profile, line, watch)

            for (key, request), reply in zip(
                missing.items(), await self._tried(send, line, profile, watch), strict=True
            ):
                self.replies.put(key, request.document(profile), reply)
                kept[key] = reply
        return [orjson.loads(kept[key].text) for key in keys]

    def reopen(self) -> None:
        """Ask servers again that refused everything: a person may have put right why."""
        for line in self._lines.values():
            line.closed = None

    async def close(self) -> None:
        """Close the connections to all servers; the kept replies stay open for their owner."""
        for line in self._lines.values():
            await line.wire.close()

    async def _exchange(self, request: Request, profile: Profile, watch: Watch) -> Reply:
        """One reply as the server gave it, perhaps cut; every one is kept."""
        key = request.key(profile)
        alone = self._asking.setdefault(key, asyncio.Lock())
        async with alone:  # who asks the same meanwhile gets the same reply
            if kept := self.replies.get(key):
                watch.notify("replied", _told(kept.usage, profile, key, replayed=True))
                return kept
            if self._replay:
                raise _not_recorded(profile)
            line = self._line(profile)

            async def send() -> Reply:
                return await self._paid(request, profile, line, watch)

            reply = await self._tried(send, line, profile, watch)
            self.replies.put(key, request.document(profile), reply)
            watch.notify("replied", _told(reply.usage, profile, key, replayed=False))
            return reply

    async def _paid(self, request: Request, profile: Profile, line: _Line, watch: Watch) -> Reply:
        """Ask once, within the budget and the profile's concurrency."""
        key, limit = request.key(profile), request.max_tokens or profile.max_tokens
        most = profile.prices.usd(most_tokens(request), limit) if profile.prices else None
        async with line.slots, self.budget.reserve(most) as reservation:
            if line.closed:
                raise ModelFault(line.closed.kind, line.closed.message, line.closed.remedy)
            heard, began = Heard(), self._clock()
            watch.notify("asked", {"key": key, "model": profile.model, "most_usd": most})
            try:
                await line.wire.send(request, heard, watch.delta)
            finally:  # what was said before a connection was lost has its price too
                usage = _usage(heard, request, profile, self._clock() - began)
                reservation.spent = usage.usd
                if heard.finish is None:
                    watch.notify("lost", {"key": key, "model": profile.model, "usd": usage.usd})
        said = "".join(heard.text)
        thinking, text = ("", said) if request.raw else split_thinking(said)
        return Reply(
            text=text,
            thinking="\n".join(part for part in ("".join(heard.thinking), thinking) if part),
            finish=heard.finish or "",
            refusal="".join(heard.refusal),
            model=heard.model or profile.model,
            usage=usage,
            at=datetime.now(UTC),
            keys=(key,),
            calls=heard.tool_calls,
            tokens=heard.tokens,
        )

    async def _embedded(
        self, missing: Mapping[str, Request], profile: Profile, line: _Line, watch: Watch
    ) -> list[Reply]:
        prices = profile.prices
        most = prices.usd(sum(map(most_tokens, missing.values())), 0) if prices else None
        async with line.slots, self.budget.reserve(most) as reservation:
            began, key = self._clock(), next(iter(missing))
            watch.notify("asked", {"key": key, "model": profile.model, "most_usd": most})
            try:
                vectors, tokens = await line.wire.embed([r.messages[0].content for r in missing.values()])
            except BaseException:
                watch.notify("lost", {"key": key, "model": profile.model, "usd": None})
                raise
            reservation.spent = prices.usd(tokens, 0) if prices else None
        usage = Usage(tokens, 0, reservation.spent, self._clock() - began)
        watch.notify("replied", _told(usage, profile, key, replayed=False))
        return [Reply(orjson.dumps(vector).decode(), model=profile.model, at=datetime.now(UTC)) for vector in vectors]

    async def _tried(self, send: Callable[[], Awaitable[T]], line: _Line, profile: Profile, watch: Watch) -> T:
        """The result of `send`, tried again after faults that may go away by themselves."""
        tries = 0
        while True:
            while (wait := line.quiet_until - self._clock()) > 0:
                await self._sleep(wait)
            try:
                return await send()
            except ModelFault as fault:
                wait = self._wait(fault, tries)
                hopeless = fault.kind not in faults.PASSING or wait > LONGEST_RETRY_AFTER_S
                if line.closed or hopeless or tries >= profile.retries:
                    line.closed = fault if fault.kind in faults.CLOSING else line.closed
                    raise
                tries += 1
                watch.notify(
                    "again", {"model": profile.model, "try": tries, "wait_s": round(wait, 3), "why": str(fault)}
                )
                if fault.retry_after is not None:  # meant for everyone who talks to this server
                    line.quiet_until = max(line.quiet_until, self._clock() + wait)
                else:
                    await self._sleep(wait)

    def _wait(self, fault: ModelFault, tries: int) -> float:
        if fault.retry_after is not None:
            return fault.retry_after
        return min(FIRST_WAIT_S * 2**tries, LONGEST_WAIT_S) * (1 - 0.25 * self._jitter())

    def _line(self, profile: Profile) -> _Line:
        name = profile.model_dump_json()
        if name not in self._lines:
            self._lines[name] = _Line(Wire(profile), asyncio.Semaphore(profile.concurrency))
        return self._lines[name]


def _usage(heard: Heard, request: Request, profile: Profile, seconds: float) -> Usage:
    if not heard.characters and heard.finish is None:
        return Usage(seconds=seconds)
    counted = heard.tokens_in is not None and heard.tokens_out is not None
    prompt = sum(estimate_tokens(message.content) for message in request.messages)
    said = "".join((*heard.text, *heard.thinking, *heard.refusal))
    tokens_in = prompt if heard.tokens_in is None else heard.tokens_in
    tokens_out = estimate_tokens(said) if heard.tokens_out is None else heard.tokens_out
    usd = profile.prices.usd(tokens_in, tokens_out, heard.cached) if profile.prices else None
    return Usage(tokens_in, tokens_out, usd, seconds, counted)


def _told(usage: Usage, profile: Profile, key: str, *, replayed: bool) -> dict[str, Any]:
    return {
        "key": key,
        "model": profile.model,
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "usd": usage.usd,
        "seconds": round(usage.seconds, 3),
        "counted": usage.counted,
        "replayed": replayed,
    }


def _after(earlier: Reply, later: Reply, text: str) -> Reply:
    """Two exchanges as one reply; `text` is what is kept of the earlier one."""
    return replace(
        later,
        text=joined(text, later.text) if text else later.text,
        thinking="\n".join(part for part in (earlier.thinking, later.thinking) if part),
        usage=earlier.usage + later.usage,
        keys=(*earlier.keys, *later.keys),
        replayed=earlier.replayed and later.replayed,
    )


def _whole(reply: Reply, profile: Profile) -> Reply:
    """The reply, if there is a whole one in it."""
    if reply.refusal or reply.finish == "content_filter":
        said = reply.refusal or "the server's content filter stopped the reply"
        raise ModelFault(
            FaultKind.refusal,
            f"{profile.model} refuses to answer ({said[:200]}).",
            "Change the scenario or the hint, or choose another model for this stage.",
        )
    if reply.finish == "length":
        raise ModelFault(
            FaultKind.length,
            f"the reply of {profile.model} was cut by its token limit {len(reply.keys)} times "
            f"({reply.usage.tokens_out} tokens so far).",
            "Raise max_tokens_ceiling in the profile, or choose a model that says less.",
        )
    if not reply.text.strip():
        raise ModelFault(
            FaultKind.empty,
            f"{profile.model} gave an empty reply.",
            "Retry, or choose another model for this stage.",
        )
    return reply


def _not_recorded(profile: Profile) -> ModelFault:
    return ModelFault(
        FaultKind.not_recorded,
        f"this request to {profile.model} has no recorded reply, and --replay asks no server.",
        "Run again without --replay, or with the settings of the recorded run.",
    )
