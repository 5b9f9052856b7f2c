"""What an action does, as the lines of its handler, and the rules of the data that it may have broken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pipeline.blueprints.application.orm_source import OrmSource
from pipeline.blueprints.language.domain import (
    Action,
    Assign,
    Create,
    Delete,
    Domain,
    Effect,
    Entity,
    Field,
    ForEach,
    Rule,
    When,
)
from pipeline.blueprints.language.expressions import Each, Expression, Kind, Variable, substitute
from pipeline.blueprints.verifiers.goal_source import quoted

INDENT = "        "


@dataclass(frozen=True, slots=True)
class Check:
    """Rules to be tested at the end for a row, or for all rows of an entity: after the lines of `opening`."""

    opening: tuple[str, ...]
    rules: tuple[Rule, ...]
    indent: str


@dataclass
class EffectSource:
    """Writes the effects of one action. `created` is the variable of the row that it gives back, once written."""

    domain: Domain
    action: Action
    created: str | None = None
    _touched: dict[tuple[str, str | None], set[str]] = field(default_factory=dict)
    _names: int = 0

    def lines(self) -> Iterator[str]:
        """The effects in order."""
        for effect in self.action.does:
            yield from self._effect(effect, INDENT, sure=True)

    def checks(self) -> list[Check]:
        """The rules of the data that the effects written so far may have broken."""
        found: list[Check] = []
        for (name, row), fields in self._touched.items():
            entity = self.domain.entities[name]
            rules = self._rules(entity, fields)
            own = self._orm.name(name)
            if not rules:
                continue
            if row is None:
                opening = (f"{INDENT}for {own} in session.query({entity.model}).all():",)
                found.append(Check(opening, rules, INDENT + "    "))
            else:
                found.append(Check(() if row == own else (f"{INDENT}{own} = {row}",), rules, INDENT))
        return found

    @property
    def _orm(self) -> OrmSource:
        return OrmSource(self.domain)

    def _rules(self, entity: Entity, fields: set[str]) -> tuple[Rule, ...]:
        """The rules that are about any of some fields; with no fields, all of them."""
        return tuple(rule for rule in entity.rules if not fields or rule.needs & fields)

    def _touch(self, entity: str, row: str | None, target: str = "") -> None:
        fields = self._touched.setdefault((entity, row), set())
        if target:
            fields.add(f"{entity}.{target}")

    def _effect(self, effect: Effect, indent: str, *, sure: bool) -> Iterator[str]:
        """One effect; `sure` where nothing around it may keep it from happening, or make it happen several times."""
        match effect:
            case Assign():
                yield from self._assign(effect, indent, sure=sure)
            case Create(_, _, name):
                variable = name or ("created_row" if effect is self.action.created else self._fresh("row"))
                if effect is self.action.created:
                    self.created = variable
                self._touch(effect.entity, variable if sure else None)
                yield from self._create(effect, indent, variable)
            case Delete(row):
                yield f"{indent}session.delete({self._orm.value(row.node)})"
            case When(condition, inner):
                yield f"{indent}if {self._orm.top(condition.node)}:"
                yield from self._effect(inner, indent + "    ", sure=False)
            case ForEach(item, entity, condition, inner):
                node = condition.node if condition else None
                each = Each("list", item, entity, None, node, Variable(item, Kind("row", entity)), Kind("list"))
                query, test = self._orm.query(each)
                yield f"{indent}for {self._orm.name(item)} in {query}.all():"
                if test:
                    yield f"{indent}    if {test}:"
                yield from self._effect(inner, indent + ("        " if test else "    "), sure=False)

    def _assign(self, effect: Assign, indent: str, *, sure: bool) -> Iterator[str]:
        orm, target = self._orm, effect.target
        row = orm.value(effect.row.node)
        if not sure:
            self._touch(target.entity, None, target.field)
        elif isinstance(effect.row.node, Variable) or not self._rules(
            self.domain.entities[target.entity], {f"{target.entity}.{target.field}"}
        ):
            self._touch(target.entity, row, target.field)
        else:  # a later effect may lead the path elsewhere: hold on to the row
            held = self._fresh(orm.name(target.entity))
            yield f"{indent}{held} = {row}"
            row = held
            self._touch(target.entity, row, target.field)
        value = orm.top(effect.value.node)
        if target.kind.base == "money":
            value = f"round({value}, 2)"
        yield f"{indent}{row}.{orm.word(target.entity, target.field)} = {value}"

    def _fresh(self, stem: str) -> str:
        self._names += 1
        return f"{stem}_{self._names}"

    def _create(self, create: Create, indent: str, variable: str) -> Iterator[str]:
        entity = self.domain.entities[create.entity]
        yield f"{indent}{variable} = {entity.model}("
        for name, one in entity.fields.items():
            if name in create.values:
                yield f"{indent}    {one.word}={self._orm.top(create.values[name].node)},"
            elif value := self._filled(entity, one):
                yield f"{indent}    {one.word}={value},"
        yield f"{indent})"
        for one in entity.fields.values():
            if one.notation.formula and not one.notation.deferred:
                own = Variable(variable, Kind("row", entity.name))
                formula = substitute(one.notation.formula.node, {entity.name: own})
                yield f"{indent}{variable}.{one.word} = {self._orm.top(formula)}"
        yield f"{indent}session.add({variable})"
        yield f"{indent}session.flush()"

    def _filled(self, entity: Entity, one: Field) -> str | None:
        """What a new row gets in a field that the action does not give; None where the column sees to it."""
        form = one.notation.form
        if form == "code":
            prefix, _, digits = one.notation.pattern.partition("#")
            return f'next_code(session, {entity.model}.{one.column}, "{prefix}", {len(digits) + 1})'
        if form == "state":
            return quoted(one.notation.kind.choices[0])
        if form == "computed":
            return "0" if one.notation.deferred else None
        return "False" if form == "bool" else None


def expressions_in(action: Action) -> Iterator[Expression]:
    """Every expression of an action: in its rules and their reasons, its effects, and what it asks."""
    for rule in action.rules:
        yield rule.test
        yield from rule.message.expressions
    yield from _of_effects(action.does)
    yield from (question for question in (action.finds, action.gives) if question)


def _of_effects(effects: Iterable[Effect]) -> Iterator[Expression]:
    for effect in effects:
        match effect:
            case Assign(owner, _, value):
                yield from (owner, value)
            case Create(_, values):
                yield from values.values()
            case Delete(row):
                yield row
            case When(condition, inner):
                yield condition
                yield from _of_effects((inner,))
            case ForEach(_, _, condition, inner):
                yield from (condition,) if condition else ()
                yield from _of_effects((inner,))
