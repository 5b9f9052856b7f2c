"""Messages as text: values filled in, nouns as this environment calls them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pipeline.blueprints.language.domain import Domain, Message, Noun
from pipeline.blueprints.language.expressions import Expression, Kind
from pipeline.blueprints.rows.world import Row, World

_A_BEFORE_VOWEL = re.compile(r"\b([Aa]) (?=[aeioAEIO](?!ne\b)|u(?!ni|se|su))")
_AN_BEFORE_CONSONANT = re.compile(r"\b([Aa])n (?=(?!hour|heir|honest)[bcdfghjklmnpqrstvwxyz])")


def articles(text: str) -> str:
    """The text with "an" before vowels and "a" before consonants: nouns vary by environment, their articles follow."""
    return _AN_BEFORE_CONSONANT.sub(r"\1 ", _A_BEFORE_VOWEL.sub(r"\1n ", text))


def noun(domain: Domain, part: Noun) -> str:
    """An entity's noun as a message asks for it."""
    entity = domain.entities[part.entity]
    text = entity.nouns if part.plural else entity.noun
    return text[0].upper() + text[1:] if part.capital else text


def said(domain: Domain, message: Message) -> str:
    """A message without values."""
    return articles("".join(noun(domain, part) if isinstance(part, Noun) else str(part) for part in message.parts))


def filled(world: World, message: Message, variables: Mapping[str, Any]) -> str:
    """A message with its values, as one would say it."""
    parts: list[str] = []
    for part in message.parts:
        match part:
            case Noun():
                parts.append(noun(world.domain, part))
            case Expression():
                parts.append(shown(world.value(part, variables), part.kind))
            case _:
                parts.append(part)
    text = articles("".join(parts))
    return text[0].upper() + text[1:]


def shown(value: Any, kind: Kind) -> str:
    """A value as text: money with two decimals, a list separated by commas."""
    match value:
        case list():
            return ", ".join(shown(item, kind) for item in value)
        case bool():
            return "yes" if value else "no"
        case float() if kind.base == "money" or "money" in kind.choices:
            return f"{value:.2f}"
        case float():
            return f"{value:.2f}".rstrip("0").rstrip(".")
        case Row():
            raise TypeError(f"{value!r} is a row, and has to be shown by one of its fields")
        case _:
            return str(value)


def spoken(word: str) -> str:
    """A column's name as words."""
    return word.replace("_", " ")
