"""The prompts, kept as text files beside the stages, and how values are put into them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from string import Template
from typing import Literal, cast

from pipeline.llm.request import Message

Role = Literal["system", "user", "assistant"]
_HEADING = re.compile(r"^== (system|user|assistant)\n", re.M)


@cache
def _sections(name: str) -> tuple[tuple[Role, Template], ...]:
    text = files("pipeline.stages").joinpath("prompts", f"{name}.md").read_text("utf-8")
    _, *pieces = _HEADING.split(text)
    bodies = zip(pieces[::2], pieces[1::2], strict=True)
    return tuple((cast(Role, role), Template(body.strip())) for role, body in bodies)


def render(name: str, /, **values: object) -> tuple[Message, ...]:
    """The messages of the prompt `prompts/NAME.md`, whose `$words` are replaced by the values."""
    return tuple(Message(role, body.substitute(values)) for role, body in _sections(name))


def numbered(texts: Sequence[str]) -> str:
    """Texts as a numbered list, from 0 as tasks are counted."""
    return "\n".join(f"{number}. {text}" for number, text in enumerate(texts))
