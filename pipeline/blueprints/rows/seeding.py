"""Fills a world with rows: drawn by each field's notation, kept where the domain's rules hold."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from itertools import product
from typing import Any

from pipeline.blueprints.language.domain import Action, Domain, Entity, Field, Given, Parameter
from pipeline.blueprints.language.notation import Notation
from pipeline.blueprints.rows.world import Row, World
from pipeline.errors import UserError
from pipeline.model import DEFAULT_NOW

TODAY = DEFAULT_NOW.date()
"""The day that dates are counted from: that of the pinned clock, also after an export and an import."""

ROW_TRIES = 40
"""Draws for one row until the rules hold; a row that never fits is left out."""

HAPPENED = (2, 45)
"""How many days ago something was done that has been done before the tasks begin."""

Words = Mapping[str, tuple[str, ...]]


class OutOfNames(UserError):
    """A field that tells rows apart has no value left for another row."""


class Seeding:
    """Draws rows for one world. The same random numbers give the same rows."""

    def __init__(self, domain: Domain, words: Words, rng: random.Random) -> None:
        self.domain, self.words, self.rng = domain, words, rng
        self.world = World(domain)
        self._unused: dict[tuple[str, str], Iterator[str]] = {}

    def fill(self) -> bool:
        """Make all rows, and do what has been done before.

        False where an entity got no row, or a rule over all rows came out broken: the caller draws again.
        """
        for entity in self.domain.entities.values():
            for fixed in self._wanted(entity):
                self.row(entity, fixed)
        self.world.compute()
        for action in self.domain.actions.values():
            for _ in range(self.rng.randint(*action.before)):
                self._happened(action)
        return self.finish()

    def _happened(self, action: Action) -> None:
        """Do an action as somebody did it in the last weeks, if random arguments it accepts are found."""
        for _ in range(ROW_TRIES):
            arguments = self.arguments(action)
            for p in action.takes:
                if p.notation.form == "date":
                    arguments[p.name] = (TODAY - timedelta(days=self.rng.randint(*HAPPENED))).isoformat()
            if not given_all(action, arguments) or next(self.world.refusals(action, arguments), None):
                continue
            if self.world.perform(action, arguments)[1] is None:
                self._stamp()
                self.world.keep()
                return
            self.world.undo()

    def _stamp(self) -> None:
        """Say when rows were made that an action has made."""
        for row in self.world.journal.created:
            for one in self.domain.entities[row.entity].fields.values():
                if one.notation.form == "stamp":
                    setattr(row, one.name, self.draw(one, row))

    def finish(self) -> bool:
        """Compute what is computed over other rows, and say whether every rule holds for every row and none lacks."""
        self.world.compute()
        return all(self.world.tables.values()) and all(
            self.world.broken(row) is None
            for entity in self.domain.entities.values()
            if entity.rules
            for row in self.world[entity.name]
        )

    def _wanted(self, entity: Entity) -> Iterator[dict[str, Row]]:
        if entity.per is None:
            for _ in range(self.rng.randint(*entity.rows)):
                yield {}
            return
        parent = entity.fields[entity.per].reference
        assert parent
        for owner in list(self.world[parent]):
            for _ in range(self.rng.randint(*entity.rows)):
                yield {entity.per: owner}

    def children(self, owner: Row) -> None:
        """The rows that come with a row: those of the entities that are so many for each of its entity."""
        for entity in self.domain.entities.values():
            if entity.per and entity.fields[entity.per].reference == owner.entity:
                for _ in range(self.rng.randint(*entity.rows)):
                    self.row(entity, {entity.per: owner})

    def row(self, entity: Entity, fixed: Mapping[str, Any]) -> Row | None:
        """A new row with some values fixed and the others drawn, or None where none keeps the rules."""
        tests = [*entity.such_that, *(rule.test for rule in entity.rules)]
        tests = [test for test in tests if not any(self._deferred(need) for need in test.needs)]
        labels: dict[str, str] = {}
        for _ in range(ROW_TRIES):
            row = self.world.add(entity.name)
            if self._filled(entity, row, fixed, labels) and all(
                self.world.value(test, {entity.name: row}) for test in tests
            ):
                return row
            self.world.discard(row)
        return None

    def _filled(self, entity: Entity, row: Row, fixed: Mapping[str, Any], labels: dict[str, str]) -> bool:
        """Give a row its values. False where it has to refer to a row and there is none to choose."""
        for one in entity.fields.values():
            if one.name in fixed:
                value = fixed[one.name]
            elif one.notation.unique:
                if one.name not in labels:
                    labels[one.name] = self.label(entity, one)
                value = labels[one.name]
            else:
                value = self.draw(one, row)
            if value is None and one.reference and not one.notation.kind.nullable:
                return False
            setattr(row, one.name, value)
        return True

    def _deferred(self, need: str) -> bool:
        entity, _, name = need.partition(".")
        return bool(name) and name != "id" and self.domain.entities[entity].fields[name].notation.deferred

    def draw(self, one: Field, row: Row) -> Any:
        """A value for a field of a row whose earlier fields are there."""
        notation, variables = one.notation, {row.entity: row}
        if notation.formula:
            return None if notation.deferred else self.world.value(notation.formula, variables)
        if notation.condition is not None and not self.world.value(notation.condition, variables):
            return None
        return self.value(one.name, notation, variables)

    def value(self, name: str, notation: Notation, variables: Mapping[str, Any]) -> Any:
        """A value drawn by a notation."""
        rng = self.rng
        if notation.form != "bool" and notation.share < 100 and rng.random() * 100 >= notation.share:
            return None
        match notation.form:
            case "row":
                rows = self.world[notation.kind.entity]
                if notation.where:
                    rows = [row for row in rows if self.world.value(notation.where, {**variables, name: row})]
                return rng.choice(rows) if rows else None
            case "int":
                return int(self._number(notation))
            case "money" | "real":
                return round(self._number(notation), 2)
            case "date":
                base = date.fromisoformat(self.world.value(notation.after, variables)) if notation.after else TODAY
                return (base + timedelta(days=rng.randint(int(notation.low), int(notation.high)))).isoformat()
            case "time":
                minutes = int(self._number(notation))
                return f"{minutes // 60:02d}:{minutes % 60:02d}"
            case "one of" | "state":
                return rng.choices(notation.kind.choices, notation.weights)[0]
            case "text":
                return re.sub(r"\{(\w+)\}", lambda hole: rng.choice(self.words[hole[1]]), rng.choice(notation.phrases))
            case "somebody":
                return f"{rng.choice(self.words['first_names'])} {rng.choice(self.words['last_names'])}"
            case "bool":
                return rng.random() * 100 < notation.share
            case "stamp":
                day = TODAY - timedelta(days=rng.randint(1, 60))
                return f"{day.isoformat()} {rng.randint(7, 18):02d}:{rng.randint(0, 59):02d}:00"
            case _:
                return self.new_label(notation, set())

    def _number(self, notation: Notation) -> float:
        steps = int((notation.high - notation.low) / notation.step + 1e-9)
        return notation.low + self.rng.randint(0, steps) * notation.step

    # Labels

    def label(self, entity: Entity, one: Field) -> str:
        """A value that no row of the entity has in this field."""
        key = ("", "person") if one.notation.form == "person" else (entity.name, one.name)
        if key not in self._unused:
            self._unused[key] = self._labels(one.notation, set())
        try:
            return next(self._unused[key])
        except StopIteration:
            raise OutOfNames(
                f"{one.place.file}:{one.place.line}: {one.place.field}: "
                f"there are more rows of {entity.name} than {one.notation.pattern or one.notation.form} gives names"
            ) from None

    def new_label(self, notation: Notation, taken: set[str]) -> str | None:
        """A value of a unique form that is none of those taken, or None where there is no other."""
        return next((label for label in self._labels(notation, taken) if label not in taken), None)

    def arguments(self, action: Action) -> dict[str, Any]:
        """Random arguments for an action; None for what there is no row or value for."""
        arguments: dict[str, Any] = {}
        for p in action.takes:
            rows = self.world[p.entity] if p.entity else None
            if rows is None:
                arguments[p.name] = self.given(p, arguments)
            else:
                arguments[p.name] = self.rng.choice(rows) if rows else None
        return arguments

    def given(self, item: Given | Parameter, variables: Mapping[str, Any]) -> Any:
        """A value for something a task names; a new name is one that nobody has."""
        notation = item.notation
        assert notation
        if notation.unique:
            rows = (row for rows in self.world.tables.values() for row in rows)
            taken = {value for row in rows for value in row.fields().values() if isinstance(value, str)}
            return self.new_label(notation, taken)
        return self.value(item.name, notation, variables)

    def _labels(self, notation: Notation, taken: set[str]) -> Iterator[str]:
        rng, words = self.rng, self.words
        match notation.form:
            case "code":
                prefix, _, digits = notation.pattern.partition("#")
                width = len(digits) + 1
                number = rng.randint(1, 3 * 10 ** (width - 1))
                while True:
                    number += rng.choice((1, 1, 2, 3))
                    yield f"{prefix}{number:0{width}d}"
            case "name":
                holes = re.findall(r"\{(\w+)\}", notation.pattern)
                for values in self._shuffled(product(*(words[hole] for hole in holes))):
                    text = notation.pattern
                    for hole, value in zip(holes, values, strict=True):
                        text = text.replace("{" + hole + "}", value, 1)
                    if text not in taken:
                        yield text[0].upper() + text[1:]
            case "town":
                yield from self._shuffled(words["towns"])
            case "street":
                for street in self._shuffled(words["streets"]):
                    yield f"{rng.randint(1, 90)} {street}"
            case "phone":
                for number in rng.sample(range(10000), 400):
                    yield f"555-{number:04d}"
            case _:
                known = {word for label in taken for word in label.split()}  # people are told apart by either name
                firsts, lasts = self._shuffled(words["first_names"]), self._shuffled(words["last_names"])
                for first, last in zip(firsts, lasts, strict=False):
                    if first not in known and last not in known:
                        yield f"{first} {last}" if notation.form == "person" else f"{first}.{last}@example.org".lower()

    def _shuffled(self, values: Any) -> list[Any]:
        values = list(values)
        self.rng.shuffle(values)
        return values


def given_all(action: Action, arguments: Mapping[str, Any]) -> bool:
    """Whether an action has all that it cannot do without."""
    return all(p.optional or arguments[p.name] is not None for p in action.takes)
