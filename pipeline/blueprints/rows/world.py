"""Rows in memory: what an environment's database holds, and what actions would do to it.

The generator tries actions here, with undo, to choose tasks whose outcome it knows before any program runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.blueprints.language.domain import (
    Action,
    Assign,
    Create,
    Delete,
    Domain,
    Effect,
    Field,
    ForEach,
    Rule,
    When,
)
from pipeline.blueprints.language.expressions import Attribute, Expression
from pipeline.blueprints.rows.python_source import evaluate


class Row:
    """One row. Its fields are attributes; a reference is the row referred to, or None."""

    def __init__(self, entity: str, number: int) -> None:
        self.entity = entity
        self.id = number

    def __repr__(self) -> str:
        return f"<{self.entity} {self.id}>"

    def fields(self) -> dict[str, Any]:
        """Its values by field name."""
        return {name: value for name, value in vars(self).items() if name not in ("entity", "id")}


@dataclass(frozen=True, slots=True)
class Changes:
    """What is different: (before, after) of fields by row, rows made with their values, rows that are gone."""

    changed: Mapping[Row, Mapping[str, tuple[Any, Any]]]
    made: Mapping[Row, Mapping[str, Any]]
    lost: tuple[Row, ...]

    @property
    def empty(self) -> bool:
        """Whether everything is as it was."""
        return not (self.changed or self.made or self.lost)

    def equal(self, other: Changes) -> bool:
        """Whether the same is different, whichever rows the new ones are."""
        here, there = list(self.made.values()), list(other.made.values())
        return self.changed == other.changed and here == there and self.lost == other.lost


@dataclass(slots=True)
class Journal:
    """What was done to a world since it was last kept, in a form that can be taken back."""

    before: dict[tuple[Row, str], Any] = field(default_factory=dict)
    created: list[Row] = field(default_factory=list)
    deleted: list[tuple[Row, int]] = field(default_factory=list)

    def changes(self) -> Changes:
        """What is different for it. Later changes of the world do not show in the result."""
        gone = {row for row, _ in self.deleted}
        new = set(self.created)
        changed: dict[Row, dict[str, tuple[Any, Any]]] = {}
        for (row, name), old in self.before.items():
            now = getattr(row, name)
            if row not in new and row not in gone and not (now is old or now == old):
                changed.setdefault(row, {})[name] = (old, now)
        made = {row: row.fields() for row in self.created if row not in gone}
        return Changes(changed, made, tuple(row for row, _ in self.deleted if row not in new))


class World:
    """All rows of a domain, by entity, in order of id."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.tables: dict[str, list[Row]] = {name: [] for name in domain.entities}
        self.journal = Journal()

    def __getitem__(self, entity: str) -> list[Row]:
        return self.tables[entity]

    @property
    def me(self) -> Row:
        """The user the agent acts for: row 1."""
        return self.tables[self.domain.user][0]

    def value(self, expression: Expression, variables: Mapping[str, Any]) -> Any:
        """What an expression evaluates to. Money is rounded to cents."""
        value = evaluate(expression, self.tables, {"me": self._me_or_none(), **variables})
        return round(value, 2) if expression.kind.base == "money" and isinstance(value, float) else value

    def _me_or_none(self) -> Row | None:
        users = self.tables[self.domain.user]
        return users[0] if users else None

    def add(self, entity: str) -> Row:
        """A new row at the end of an entity, without values."""
        rows = self.tables[entity]
        row = Row(entity, rows[-1].id + 1 if rows else 1)
        rows.append(row)
        self.journal.created.append(row)
        return row

    def remove(self, row: Row) -> None:
        """Take a row out."""
        rows = self.tables[row.entity]
        at = rows.index(row)
        del rows[at]
        self.journal.deleted.append((row, at))

    def set(self, row: Row, name: str, value: Any) -> None:
        """Give a field a value."""
        self.journal.before.setdefault((row, name), getattr(row, name, None))
        setattr(row, name, value)

    def discard(self, row: Row) -> None:
        """Take out the row that was added last, as if it had never been there."""
        self.tables[row.entity].pop()
        self.journal.created.pop()

    def undo(self) -> None:
        """Take back everything since the world was last kept."""
        journal, self.journal = self.journal, Journal()
        for row, at in reversed(journal.deleted):
            self.tables[row.entity].insert(at, row)
        for row in reversed(journal.created):
            self.tables[row.entity].remove(row)
        for (row, name), old in journal.before.items():
            setattr(row, name, old)

    def keep(self) -> None:
        """Let everything so far stay."""
        self.journal = Journal()

    # Rules

    def broken(self, row: Row) -> Rule | None:
        """The first of its entity's rules that a row breaks."""
        for rule in self.domain.entities[row.entity].rules:
            if not self.value(rule.test, {row.entity: row}):
                return rule
        return None

    def compute(self, *, deferred: bool = True) -> None:
        """Compute the fields that are formulas over other rows, in the order of the file."""
        for entity in self.domain.entities.values():
            for one in entity.fields.values():
                if one.notation.formula and one.notation.deferred == deferred:
                    for row in self.tables[entity.name]:
                        setattr(row, one.name, self.value(one.notation.formula, {entity.name: row}))

    # Actions

    def refusals(self, action: Action, arguments: Mapping[str, Any]) -> Iterator[Rule]:
        """The rules of an action that its arguments break, before anything is done."""
        for rule in action.rules:
            if not self.value(rule.test, arguments):
                yield rule

    def perform(self, action: Action, arguments: Mapping[str, Any]) -> tuple[Row | None, tuple[Rule, Row] | None]:
        """Do what an action does, whatever its own rules say.

        Returns the row it made, and the first rule of the data that is broken by what it did, with the row.
        """
        variables = dict(arguments)
        touched: list[Row] = []
        for effect in action.does:
            self._do(effect, variables, touched)
        gone = {row for row, _ in self.journal.deleted}
        broken = next(((rule, row) for row in touched if row not in gone and (rule := self.broken(row))), None)
        created = action.created
        made = next((row for row in touched if created and row.entity == created.entity), None)
        return made, broken

    def _do(self, effect: Effect, variables: dict[str, Any], touched: list[Row]) -> None:
        match effect:
            case Assign(owner, target, value):
                row = self.value(owner, variables)
                self.set(row, target.field, self._stored(target, self.value(value, variables)))
                touched.append(row)
            case Create(entity, values, bind):
                row = self.create(entity, {name: self.value(value, variables) for name, value in values.items()})
                touched.append(row)
                if bind:
                    variables[bind] = row
            case Delete(expression):
                self.remove(self.value(expression, variables))
            case ForEach(item, entity, condition, inner):
                for row in list(self.tables[entity]):
                    bound = {**variables, item: row}
                    if condition is None or self.value(condition, bound):
                        self._do(inner, bound, touched)
            case When(condition, inner):
                if self.value(condition, variables):
                    self._do(inner, variables, touched)

    def _stored(self, target: Attribute, value: Any) -> Any:
        return round(value, 2) if target.kind.base == "money" and value is not None else value

    def create(self, entity: str, values: Mapping[str, Any]) -> Row:
        """A new row as an action makes it: given values, and what such a row gets by itself."""
        row = self.add(entity)
        for one in self.domain.entities[entity].fields.values():
            setattr(row, one.name, values[one.name] if one.name in values else self.default(one, row))
        return row

    def default(self, one: Field, row: Row) -> Any:
        """What a new row has in a field that it is not given."""
        match one.notation.form:
            case "code":
                return self.next_code(one, row.entity)
            case "state":
                return one.notation.kind.choices[0]
            case "bool":
                return False
            case "computed" if not one.notation.deferred:
                assert one.notation.formula
                return self.value(one.notation.formula, {row.entity: row})
            case "computed":
                return 0
            case _:
                return None

    def next_code(self, one: Field, entity: str) -> str:
        """The code after the highest one that is there."""
        prefix, _, digits = one.notation.pattern.partition("#")
        numbers = [int(getattr(row, one.name)[len(prefix) :]) for row in self.tables[entity] if hasattr(row, one.name)]
        return f"{prefix}{max(numbers, default=0) + 1:0{len(digits) + 1}d}"
