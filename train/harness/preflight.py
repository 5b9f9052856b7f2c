"""Whether an endpoint answers at all, asked before anything is started that would take its silence for failure."""

from __future__ import annotations

import asyncio

from pipeline.llm.profiles import Profile

TOOL = {
    "type": "function",
    "function": {
        "name": "say_hello",
        "description": "Says hello.",
        "parameters": {"type": "object", "properties": {}},
    },
}
"""Offered in the native protocol: a server that knows no tools says so here, and not in every task."""

MOST_TOKENS = 16


def ask_once(profile: Profile, *, tools: bool) -> None:
    """Ask a model for a word. Raises ModelFault where it gives no answer: wrong address, name or key, no tools."""
    asyncio.run(_ask(profile, tools=tools))


async def _ask(profile: Profile, *, tools: bool) -> None:
    from pipeline.llm.request import Message, Request
    from pipeline.llm.wire import Heard, Wire

    question = Message("user", "Reply with one word: hello.")
    request = Request((question,), max_tokens=MOST_TOKENS, raw=True, tools=(TOOL,) if tools else ())
    wire = Wire(profile)
    try:
        await wire.send(request, Heard(), lambda *_: None)
    finally:
        await wire.close()
