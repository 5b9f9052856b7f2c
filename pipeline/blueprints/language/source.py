"""Reads a domain file as text that knows where it stands, so that every complaint can name its line and field."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

import yaml

from pipeline.errors import UserError


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in a domain file: `field` is the path of keys that leads to it."""

    file: str
    line: int
    field: str = ""

    def fail(self, message: str) -> NoReturn:
        """Raise UserError with the file, the line and the field before the message."""
        raise UserError(f"{self.file}:{self.line}: {self.field + ': ' if self.field else ''}{message}")


@dataclass(frozen=True, slots=True)
class Scalar:
    """A text of the file, as written (the file's own notations give it meaning, not YAML's types)."""

    text: str
    place: Place

    @property
    def name(self) -> str:
        """The key it stands under."""
        return self.place.field.rpartition(".")[2]

    def split(self, word: str) -> tuple[Scalar, Scalar | None]:
        """What stands before a word and what after it, brackets and quotes apart; None where it is not there."""
        depth, quote, word = 0, "", f" {word} "
        for at, character in enumerate(self.text):
            if quote:
                quote = "" if character == quote else quote
            elif character in "'\"":
                quote = character if depth or self.text[at - 1 : at] in (" ", "(") else ""
            elif character in "([{":
                depth += 1
            elif character in ")]}":
                depth -= 1
            elif not depth and self.text.startswith(word, at):
                return self.saying(self.text[:at]), self.saying(self.text[at + len(word) :])
        return self, None

    def saying(self, text: str) -> Scalar:
        """Another text in the same place."""
        return Scalar(text.strip(), self.place)


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list of the file."""

    items: tuple[Value, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Section:
    """A mapping of the file, in the order written."""

    items: dict[str, Value]
    place: Place

    def text(self, key: str, default: str | None = None) -> Scalar:
        """The text under a key; without a default it must be there."""
        value = self.items.get(key)
        if value is None:
            if default is None:
                self.place.fail(f"{key} is missing")
            return Scalar(default, self.place)
        if not isinstance(value, Scalar):
            value.place.fail("must be one text")
        return value

    def texts(self, key: str) -> tuple[Scalar, ...]:
        """The texts under a key: one, a list of them, or none."""
        value = self.items.get(key)
        if value is None:
            return ()
        if isinstance(value, Scalar):
            return (value,)
        if isinstance(value, Section):
            value.place.fail("must be a text or a list of texts")
        return tuple(item if isinstance(item, Scalar) else item.place.fail("must be text") for item in value.items)

    def section(self, key: str) -> Section:
        """The mapping under a key; an empty one where the key is absent."""
        value = self.items.get(key)
        if value is None or (isinstance(value, Scalar) and not value.text):
            return Section({}, self.place)
        if not isinstance(value, Section):
            value.place.fail("must be a mapping of names")
        return value

    def lines(self, key: str) -> list[Scalar]:
        """The one-line values of the mapping under a key; the last step of each place's field is its name."""
        section = self.section(key)
        return [v if isinstance(v, Scalar) else v.place.fail("one line is needed") for v in section.items.values()]

    def sections(self) -> list[tuple[str, Section]]:
        """The mappings under all keys, by key."""
        return [(key, self.section(key)) for key in self.items]

    def allow(self, *keys: str) -> None:
        """Fail at the first key that is not one of these."""
        for key, value in self.items.items():
            if key not in keys:
                value.place.fail(f"there is no {key} here; known are {', '.join(keys)}")


Value = Scalar | Sequence | Section


def read(text: str, file: str) -> Section:
    """The content of a domain file. Raises UserError with the line where it is not YAML or not a mapping."""
    try:
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        Place(file, mark.line + 1 if mark else 1).fail(f"not YAML: {error.problem}")
    except yaml.YAMLError as error:
        Place(file, 1).fail(f"not YAML: {error}")
    if not isinstance(node, yaml.MappingNode):
        Place(file, 1).fail("a domain file is a mapping with the keys domain, title, about, entities, actions, tasks")
    return _section(node, Place(file, 1))


def _value(node: yaml.Node, place: Place) -> Value:
    if isinstance(node, yaml.MappingNode):
        return _section(node, place)
    if isinstance(node, yaml.SequenceNode):
        items = (_value(n, _within(place, n, f"[{i}]")) for i, n in enumerate(node.value))
        return Sequence(tuple(items), place)
    return Scalar(str(node.value).strip(), place)


def _section(node: yaml.MappingNode, place: Place) -> Section:
    items: dict[str, Value] = {}
    for key_node, value_node in node.value:
        key = str(key_node.value).strip()
        at = _within(place, key_node, f".{key}" if place.field else key)
        if not isinstance(key_node, yaml.ScalarNode):
            at.fail("a key must be text")
        if key in items:
            at.fail(f"{key} is given twice")
        items[key] = _value(value_node, at)
    return Section(items, place)


def _within(place: Place, node: yaml.Node, step: str) -> Place:
    return Place(place.file, node.start_mark.line + 1, place.field + step)


_RANGE = re.compile(r"(\d+)(?:\.\.(\d+))?")


def read_range(line: Scalar) -> tuple[int, int]:
    """A number of rows or times: 6 or 6..8."""
    match = _RANGE.fullmatch(line.text)
    if not match or int(match[1]) > int(match[2] or match[1]):
        line.place.fail(f"{line.text!r} is not a number such as 6 or 6..8")
    return int(match[1]), int(match[2] or match[1])
