"""What a field or parameter is, and how its values are drawn: the notations after a name in a domain file.

    unit                        a row of the entity `unit` (`unit?` may be absent, `unit where COND` chooses among some)
    = EXPR                      computed from other fields
    int 1..20 step 5            a whole number; money 2.50..80 step 0.5 and real 0..1 step 0.05 likewise
    date -30..-1                a day, counted from the environment's own day; date after EXPR 3..10 from another
    time 08:00..17:00 step 30   a time of day
    one of low | high*3         an enumerated text, with weights
    state draft > sent > paid | void; sent > draft    a lifecycle: enumerated, with the moves that are allowed
    code BK-####                a unique code; rows made later count on
    name {metal} {vessel}       a unique text made of the domain's words
    person, town, street, email, phone     what they say, unique
    text one | the {metal} one  free text, also with the domain's words; where a task does not say it, it is left open
    somebody                    a person's name, which others may have too
    bool 70%                    yes or no, and how often yes
    stamp                       when the row was made; never judged

`?` after the first word means the value may be absent; `if COND` at the end, that it is present only then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

from pipeline.blueprints.language.expressions import Base, Expression, Kind, Scope, parse
from pipeline.blueprints.language.source import Place, Scalar
from pipeline.words import whole_number

UNIQUE_TEXTS = frozenset({"code", "name", "person", "town", "street", "email", "phone"})
"""Forms whose values identify a row within its entity."""

_NUMBER = r"-?\d+(?:\.\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(?: step ({_NUMBER}))?")
_TIMES = re.compile(r"(\d\d):(\d\d)\.\.(\d\d):(\d\d)(?: step (\d+))?")
_HEAD = re.compile(r"([a-z_]+)(\?)?(?: (\d+)%)?(?: |$)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Notation:
    """A field's form and kind, and what its values are drawn from.

    `low`, `high` and `step` bound numbers, days (relative to `after`, or to the environment's day) and minutes.
    `share` is the percentage of rows that have a value (of a bool: that are true).
    """

    form: str
    kind: Kind
    low: float = 0
    high: float = 0
    step: float = 1
    weights: tuple[int, ...] = ()
    pattern: str = ""
    phrases: tuple[str, ...] = ()
    moves: tuple[tuple[str, str], ...] = ()
    share: int = 100
    after: Expression | None = None
    where: Expression | None = None
    condition: Expression | None = None
    formula: Expression | None = None

    @property
    def unique(self) -> bool:
        """Whether no two rows have the same value."""
        return self.form in UNIQUE_TEXTS

    @property
    def needs(self) -> frozenset[str]:
        """The entities and fields without which it means nothing."""
        needs = {self.kind.entity} if self.kind.base == "row" else set()
        for expression in (self.after, self.where, self.condition, self.formula):
            needs |= expression.needs if expression else frozenset()
        return frozenset(needs)

    @property
    def deferred(self) -> bool:
        """Whether it is computed over other rows, and so only when all rows are there."""
        return self.formula is not None and "for " in self.formula.text

    def sources(self, state: str) -> tuple[str, ...]:
        """The states from which a state may be reached."""
        return tuple(source for source, target in self.moves if target == state)


def read_notation(source: Scalar, scope: Scope, *, name: str, words: Mapping[str, object]) -> Notation:
    """Read the notation of the field or parameter `name`. Raises UserError naming its place."""
    place = source.place
    if source.text.startswith("="):
        formula = parse(source.saying(source.text[1:]), scope)
        return Notation("computed", formula.kind, formula=formula)
    line, test = source.split("if")
    line, among = line.split("where")
    match = _HEAD.fullmatch(line.text)
    if not match:
        place.fail(f"{source.text!r} is not a notation; see docs/blueprints.md")
    form, question, percent, rest = match.groups()
    condition = parse(test, scope) if test else None
    share = int(percent) if percent else 60 if question and condition is None else 100
    nullable = bool(question) or condition is not None
    if form in scope.entities:
        if rest.strip():
            place.fail(f"{rest.strip()!r} after {form} says nothing; `where COND` would choose among its rows")
        where = parse(among, scope.with_variables({name: Kind("row", form)})) if among else None
        kind = Kind("row", form, nullable=nullable)
        return Notation("row", kind, share=share, where=where, condition=condition)
    if among:
        place.fail(f"where chooses among rows, and there is no entity {form} declared above")
    if form == "one" and rest.startswith("of "):
        form, rest = "one of", rest[3:]
    if "." in form or form not in FORMS:
        place.fail(f"there is no form {form}; known are {', '.join(FORMS)} and the entities declared above")
    reader = FORMS[form]
    notation = reader(form, rest.strip(), nullable, place, scope)
    _require_words(" ".join((notation.pattern, *notation.phrases)), words, place)
    if notation.unique and nullable:
        place.fail(f"a {form} identifies its row, so it cannot be absent")
    return replace(notation, share=share, condition=condition)


def _number(form: str, rest: str, nullable: bool, place: Place, _: Scope) -> Notation:
    match = _RANGE.fullmatch(rest)
    if not match:
        place.fail(f"{form} needs a range such as 1..20 or 1..20 step 5, not {rest!r}")
    low, high, step = float(match[1]), float(match[2]), float(match[3] or _STEPS[form])
    if low > high or step <= 0:
        place.fail(f"the range {rest} is empty")
    return Notation(form, Kind(cast(Base, form), nullable=nullable), low, high, step)


def _date(form: str, rest: str, nullable: bool, place: Place, scope: Scope) -> Notation:
    after = None
    if rest.startswith("after "):
        base, _, rest = rest.removeprefix("after ").rpartition(" ")
        after = parse(Scalar(base, place), scope)
        if after.kind.base != "date":
            place.fail(f"{base} is not a date")
    match = _RANGE.fullmatch(rest)
    if not match or match[3]:
        place.fail(f"date needs a range of days such as -30..-1, not {rest!r}")
    return Notation(form, Kind("date", nullable=nullable), float(match[1]), float(match[2]), after=after)


def _time(form: str, rest: str, nullable: bool, place: Place, _: Scope) -> Notation:
    match = _TIMES.fullmatch(rest)
    if not match:
        place.fail(f"time needs a range such as 08:00..17:00 step 30, not {rest!r}")
    low, high = int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4])
    return Notation(form, Kind("time", nullable=nullable), low, high, int(match[5] or 30))


def _choice(form: str, rest: str, nullable: bool, place: Place, _: Scope) -> Notation:
    options = [_weighted(option, place) for option in rest.split("|")]
    choices = tuple(choice for choice, _ in options)
    if len(set(choices)) < len(choices) or len(choices) < 2:
        place.fail("one of needs two or more different values, separated by |")
    return Notation(form, Kind("choice", "", choices, nullable), weights=tuple(weight for _, weight in options))


def _state(form: str, rest: str, nullable: bool, place: Place, _: Scope) -> Notation:
    weights: dict[str, int] = {}
    moves: list[tuple[str, str]] = []
    for chain in rest.split(";"):
        steps = [[_weighted(option, place) for option in step.split("|")] for step in chain.split(">")]
        for step in steps:
            for state, weight in step:
                weights.setdefault(state, weight)
        for earlier, later in pairwise(steps):
            moves += [(a, b) for a, _ in earlier for b, _ in later]
    if nullable or len(weights) < 2:
        place.fail("state needs a lifecycle such as draft > sent > paid, and is never absent")
    kind = Kind("choice", "", tuple(weights))
    return Notation(form, kind, weights=tuple(weights.values()), moves=tuple(dict.fromkeys(moves)))


def _weighted(option: str, place: Place) -> tuple[str, int]:
    value, _, weight = option.strip().partition("*")
    if not value or (weight and whole_number(weight) is None):
        place.fail(f"{option.strip()!r} is not a value with an optional weight such as open*3")
    return value.strip(), int(weight or 1)


def _pattern(form: str, rest: str, nullable: bool, place: Place, _: Scope) -> Notation:
    if form == "code" and not re.fullmatch(r"[A-Z]{1,4}-#{2,5}", rest):
        place.fail(f"code needs a pattern such as BK-####, not {rest!r}")
    if form == "name" and not re.search(r"\{\w+\}", rest):
        place.fail("name needs a pattern of the domain's words, such as {metal} {vessel}")
    if form not in ("code", "name") and rest:
        place.fail(f"{rest!r} after {form} says nothing")
    return Notation(form, Kind("text", nullable=nullable), pattern=rest)


def _text(form: str, rest: str, nullable: bool, place: Place, _: Scope) -> Notation:
    phrases = tuple(phrase.strip() for phrase in rest.split("|") if phrase.strip())
    if not phrases:
        place.fail("text needs phrases to choose from, separated by |")
    return Notation(form, Kind("text", nullable=nullable), phrases=phrases)


def _plain(form: str, rest: str, nullable: bool, place: Place, _: Scope) -> Notation:
    if rest or nullable:
        place.fail(f"{form} takes nothing after it" + (" and is never absent" if nullable else ""))
    return Notation(form, Kind(cast(Base, form)))


def _require_words(pattern: str, words: Mapping[str, object], place: Place) -> None:
    for word in re.findall(r"\{(\w+)\}", pattern):
        if word not in words:
            place.fail(f"there is no list {word} under words; known are {', '.join(words) or 'none'}")


_STEPS = {"int": 1, "money": 0.5, "real": 0.01}

FORMS = {
    "int": _number,
    "money": _number,
    "real": _number,
    "date": _date,
    "time": _time,
    "one of": _choice,
    "state": _state,
    **dict.fromkeys(sorted(UNIQUE_TEXTS), _pattern),
    "text": _text,
    "somebody": _pattern,
    "bool": _plain,
    "stamp": _plain,
}
"""How a notation of each form is read."""
