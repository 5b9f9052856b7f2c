"""The language that picks environments: `lost bag domain:travel tables>10 -check:fail`.

Terms are separated by spaces and all must hold. A bare word is looked for in name, title, domain and concept. A term
with a field compares it: `:` contains (text) or equals (numbers), `=` equals, `>` `>=` `<` `<=` compare numbers.
`a,b` is one or the other, `none` is unknown or empty, a leading `-` turns a term round, quotes keep spaces and
punctuation together, and numbers may end in k or m. An `and` between terms says what holds anyway (`"and"` is the
word). The studio's list and `subset --where` both speak it.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.errors import UserError

TEXT_FIELDS = ("name", "title", "origin", "domain", "missing", "check", "audit", "concept", "aside", "review")
NUMBER_FIELDS = ("tables", "rows", "tools", "tasks", "code", "sql", "verifiers")
FIELDS = (*TEXT_FIELDS, *NUMBER_FIELDS)
"""Every field a term may name, for help and completion."""

_ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "code": ("code_verifiers",),
    "sql": ("sql_verifiers",),
    "verifiers": ("code_verifiers", "sql_verifiers"),
}
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    ":": operator.eq,
    "=": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_FIELD = re.compile(r"([A-Za-z_]+)(>=|<=|[:=<>])")
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)([km]?)", re.IGNORECASE)
_SCALE = {"": 1, "k": 1_000, "m": 1_000_000}
_OTHER_NAMES = {"checks": "check", "audits": "audit"}
_PLAIN_WORD = re.compile(r"[^\s\"\\,\-:=<>][^\s\"\\,:=<>]*")


class FilterError(UserError):
    """A term that cannot be read. `token` is the term as typed."""

    def __init__(self, token: str, message: str) -> None:
        super().__init__(message)
        self.token = token


@dataclass(frozen=True, slots=True)
class Term:
    """One condition: `values` are alternatives; without a `field` they are words to look for."""

    values: tuple[str, ...]
    field: str = ""
    op: str = ""
    negated: bool = False

    def __str__(self) -> str:
        """The term in the language itself; `parse` reads it back to the same term."""
        return f"{'-' if self.negated else ''}{self.field}{self.op}{','.join(map(_quoted, self.values))}"


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions that must all hold. Called with a row (anything with `Summary`'s attributes), says whether they do."""

    terms: tuple[Term, ...]
    tests: tuple[Callable[[Any], bool], ...]

    def __call__(self, row: Any) -> bool:
        """Whether the row meets every condition."""
        return all(test(row) for test in self.tests)

    def __str__(self) -> str:
        """The filter in its language."""
        return " ".join(map(str, self.terms))


def parse(text: str) -> Filter:
    """Read a filter. The empty text is the filter that lets everything through.

    Raises FilterError naming the term, and for an unknown field the fields there are.
    """
    terms = tuple(_term(pieces) for pieces in _split(text) if pieces != _AND)
    return Filter(terms, tuple(map(_test, terms)))


Piece = tuple[str, bool]
"""One character of a term, and whether it was quoted (quoted characters are never syntax)."""

_AND: list[Piece] = [(character, False) for character in "and"]


def _split(text: str) -> Iterator[list[Piece]]:
    """The terms of a text, as characters that know whether they were quoted."""
    pieces: list[Piece] = []
    quoted = started = False
    characters = iter(text)
    for character in characters:
        if character == '"':
            quoted, started = not quoted, True
        elif character == "\\" and quoted:
            pieces.append((next(characters, "\\"), True))
        elif character.isspace() and not quoted:
            if started:
                yield pieces
            pieces, started = [], False
        else:
            pieces.append((character, quoted))
            started = True
    if quoted:
        token = _typed(pieces)
        raise FilterError(token, f'Close the quote: "{token} has no second ".')
    if started:
        yield pieces


def _term(pieces: list[Piece]) -> Term:
    token = _typed(pieces)
    negated = bool(pieces) and pieces[0] == ("-", False)
    pieces = pieces[negated:]
    syntax = "".join("\0" if quoted else character for character, quoted in pieces)
    match = _FIELD.match(syntax)
    field, op = (match[1].lower(), match[2]) if match else ("", "")
    field = _OTHER_NAMES.get(field, field)
    if match and field not in FIELDS:
        raise FilterError(token, _unknown_field(field, token))
    values = _values(pieces[match.end() if match else 0 :])
    if not all(values) and not (field and op == "="):
        raise FilterError(token, f"“{token}” needs {'a value after ' + op if field else 'a word'}.")
    if field in NUMBER_FIELDS:
        for value in values:
            if _NUMBER.fullmatch(value) is None and not (value == "none" and op in ":="):
                raise FilterError(token, f"“{token}” compares {field}, which is a number; “{value}” is not one.")
    elif op not in ("", ":", "="):
        raise FilterError(token, f"“{token}” compares {field}, which is text: use {field}:word or {field}=text.")
    return Term(values, field, op, negated)


def _values(pieces: list[Piece]) -> tuple[str, ...]:
    values = [""]
    for piece in pieces:
        if piece == (",", False):
            values.append("")
        else:
            values[-1] += piece[0]
    return tuple(value.lower() for value in values)


def _unknown_field(field: str, token: str) -> str:
    close = difflib.get_close_matches(field, FIELDS, n=1)
    guess = f" Did you mean {close[0]}?" if close else ""
    return f"There is no field {field} (in “{token}”).{guess} Fields: {', '.join(FIELDS)}."


def _typed(pieces: list[Piece]) -> str:
    return "".join(character for character, _ in pieces)


def _quoted(value: str) -> str:
    if _PLAIN_WORD.fullmatch(value) and value != "and":
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _test(term: Term) -> Callable[[Any], bool]:
    if not term.field:
        return _negate(_has_word(term.values), term.negated)
    if term.field in NUMBER_FIELDS:
        return _negate(_compares(term), term.negated)
    return _negate(_has_text(term), term.negated)


def _negate(test: Callable[[Any], bool], negated: bool) -> Callable[[Any], bool]:
    return (lambda row: not test(row)) if negated else test


def _has_word(words: tuple[str, ...]) -> Callable[[Any], bool]:
    def test(row: Any) -> bool:
        text = f"{row.name}\n{row.title}\n{row.domain or ''}\n{_text(row.concept)}".lower()
        return any(word in text for word in words)

    return test


def _has_text(term: Term) -> Callable[[Any], bool]:
    def test(row: Any) -> bool:
        value = getattr(row, term.field)
        texts = [str(item).lower() for item in value] if isinstance(value, (tuple, list)) else [_text(value).lower()]
        known = any(texts)
        for wanted in term.values:
            if wanted == "none" and not known:
                return True
            if any(wanted == text if term.op == "=" else wanted in text for text in texts if known):
                return True
        return False

    return test


def _compares(term: Term) -> Callable[[Any], bool]:
    attributes = _ATTRIBUTES.get(term.field, (term.field,))
    compare = _COMPARE[term.op]
    bounds = [None if value == "none" else _number(value) for value in term.values]

    def test(row: Any) -> bool:
        known = [value for value in (getattr(row, attribute) for attribute in attributes) if value is not None]
        if not known:
            return None in bounds
        return any(bound is not None and compare(sum(known), bound) for bound in bounds)

    return test


def _number(value: str) -> float:
    match = _NUMBER.fullmatch(value)
    assert match is not None, "checked when the term was read"
    return float(match[1]) * _SCALE[match[2].lower()]


def _text(value: object) -> str:
    return "" if value is None else str(value)
