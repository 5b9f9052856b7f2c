"""Reads sentences with values and nouns in them, rules that end in one, and the names things may have."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.blueprints.language.domain import TAKEN_NAMES, Message, Noun, Rule, plural
from pipeline.blueprints.language.expressions import Attribute, Expression, Node, Scope, Variable, mentions, parse
from pipeline.blueprints.language.source import Place, Scalar

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_HOLE = re.compile(r"\{([^}]*)\}|\[(\w+)\]")


def require_name(source: Scalar, taken: frozenset[str] = TAKEN_NAMES) -> str:
    """The text as a name. Raises UserError where it cannot be one."""
    if not _NAME.fullmatch(source.text):
        source.place.fail(f"{source.text!r} is not a name: lower case letters, digits and single underscores")
    if source.text in taken:
        source.place.fail(f"the name {source.text} is taken (by Python, SQL or the application); choose another")
    return source.text


def names(key: str, place: Place) -> tuple[tuple[str, ...], bool]:
    """The alternative names of a key such as `unit|bag?`, and whether it is optional."""
    words = tuple(require_name(Scalar(word, place)) for word in key.removesuffix("?").split("|"))
    return words, key.endswith("?")


def read_message(source: Scalar, scope: Scope) -> Message:
    """A sentence: {EXPR} is a value, [unit] and [units] an entity's noun, [Unit] one with a capital."""
    parts: list[str | Noun | Expression] = []
    end = 0
    for hole in _HOLE.finditer(source.text):
        parts.append(source.text[end : hole.start()])
        end = hole.end()
        if hole[1] is None:
            parts.append(_noun(hole[2], scope.entities, source.place))
        else:
            value = parse(source.saying(hole[1]), scope)
            if value.kind.base in ("row", "rows"):
                source.place.fail(f"{hole[0]} is a row: say which of its fields is meant")
            parts.append(value)
    parts.append(source.text[end:])
    return Message(tuple(part for part in parts if part != ""), source.place)


def _noun(word: str, entities: Iterable[str], place: Place) -> Noun:
    lower = word[0].lower() + word[1:]
    for entity in entities:
        if lower in (entity, plural(entity)):
            return Noun(entity, lower != entity, word != lower)
    return place.fail(f"[{word}] is not the noun of an entity")


def read_rule(source: Scalar, scope: Scope) -> Rule:
    """EXPRESSION else SENTENCE."""
    line, said = source.split("else")
    if said is None:
        source.place.fail("a rule is: EXPRESSION else SENTENCE")
    test = parse(line, scope)
    if test.kind.base != "bool":
        source.place.fail(f"{line.text!r} is not something that holds or does not")
    message = read_message(said.saying(said.text.removesuffix(".")), scope)
    for value in message.expressions:
        if not _is_path(value.node):
            source.place.fail(f"{{{value.text}}}: a rule's sentence can show fields, but not compute")
    return Rule(test, message, mentions(test.node, "me"))


def _is_path(node: Node) -> bool:
    return isinstance(node, Variable) or (isinstance(node, Attribute) and _is_path(node.base))
