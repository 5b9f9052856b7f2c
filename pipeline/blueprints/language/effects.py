"""Reads what an action does: one effect a line.

claim.status -> approved                      a step of a lifecycle (refused from any state it has no step from)
account.balance -= amount                     =, += and -=
visit = appointment(patient=patient, by=me)   a new row, with a name where later lines speak of it
delete(booking)
for line in order_line if line.order == order do line.status = 'sent'
if order.paid do order.status = 'closed'
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pipeline.blueprints.language.domain import (
    Assign,
    Create,
    Delete,
    Domain,
    Effect,
    Entity,
    ForEach,
    Rule,
    When,
    plural,
)
from pipeline.blueprints.language.expressions import Attribute, Expression, Kind, Scope, Variable, parse, typed
from pipeline.blueprints.language.sentences import read_rule
from pipeline.blueprints.language.source import Scalar

_FOR = re.compile(r"for (\w+) in (\w+)")
_MOVE = re.compile(r"([\w.]+)\.(\w+) -> (.+)", re.DOTALL)

FILLED = frozenset({"code", "stamp", "state", "computed", "bool"})
"""Forms that a new row gets a value of by itself: the next code, now, the first state, the formula, no."""


def read_effects(lines: Sequence[Scalar], scope: Scope, domain: Domain) -> tuple[tuple[Effect, ...], list[Rule]]:
    """The effects, and the rules they imply beside those the action states."""
    effects: list[Effect] = []
    rules: list[Rule] = []
    reader = _Reader(domain, scope)
    for line in lines:
        effect, implied = reader.read(line)
        effects.append(effect)
        rules += implied
        if isinstance(effect, Create) and effect.bind:
            named = reader.scope.with_variables({effect.bind: Kind("row", effect.entity)})
            reader = replace(reader, scope=named)
    for line, effect in zip(lines, effects, strict=True):
        rules += [read_rule(line.saying(text), scope) for text in _implied(effect, effects, domain)]
    return tuple(effects), rules


def _implied(effect: Effect, effects: Sequence[Effect], domain: Domain) -> Iterator[str]:
    """What must hold for an effect to be possible: a new name is new, and nothing refers to what is deleted."""
    if isinstance(effect, Create):
        for name, value in effect.values.items():
            if domain.entities[effect.entity].fields[name].notation.unique:
                yield (
                    f"not any(other.{name} == {value.text} for other in {effect.entity}) else "
                    f"There already is a [{effect.entity}] called {{{value.text}}}"
                )
    elif isinstance(effect, Delete):
        owner = effect.row.kind.entity
        gone = {e.entity for e in effects if isinstance(e, ForEach) and isinstance(e.effect, Delete)}
        for entity in domain.entities.values():
            for one in entity.fields.values():
                if one.reference == owner and entity.name not in gone:
                    yield (
                        f"not any(x.{one.name} == {effect.row.text} for x in {entity.name}) else "
                        f"{named(domain.entities[owner], effect.row.text)} still has [{plural(entity.name)}]"
                    )


def named(entity: Entity, row: str) -> str:
    """How a sentence names the row of an expression: its noun, and its label where it has one."""
    noun = f"[{entity.name[0].upper()}{entity.name[1:]}]"
    return f"{noun} {{{row}.{entity.label.name}}}" if entity.label else noun


@dataclass(frozen=True)
class _Reader:
    domain: Domain
    scope: Scope

    def read(self, line: Scalar) -> tuple[Effect, list[Rule]]:
        """An effect, with the rule that a step of a lifecycle implies."""
        head, body = line.split("do")
        if body and head.text.startswith("for "):
            return self.for_each(head, body), []
        if body and head.text.startswith("if "):
            effect, implied = self.read(body)
            if implied:
                line.place.fail("a step of a lifecycle (->) cannot depend on a condition")
            return When(parse(head.saying(head.text[3:]), self.scope), effect, line.place), []
        if match := _MOVE.fullmatch(line.text):
            return self.move(line, match[1], match[2], match[3].strip())
        return self.statement(line), []

    def for_each(self, head: Scalar, body: Scalar) -> ForEach:
        over, test = head.split("if")
        match = _FOR.fullmatch(over.text)
        if not match or match[2] not in self.domain.entities:
            head.place.fail(f"{over.text!r} is not: for name in entity")
        item, entity = match.groups()
        inner = _Reader(self.domain, self.scope.with_variables({item: Kind("row", entity)}))
        effect, implied = inner.read(body)
        if isinstance(effect, ForEach) or implied:
            head.place.fail("inside for … do, assign, make or delete; for and -> are not possible there")
        return ForEach(item, entity, parse(test, inner.scope) if test else None, effect, head.place)

    def move(self, line: Scalar, row: str, field: str, state: str) -> tuple[Assign, list[Rule]]:
        target = self.target(line, f"{row}.{field}")
        entity = self.domain.entities[target.entity]
        sources = entity.fields[field].notation.sources(state)
        if not sources:
            line.place.fail(f"nothing may become {state!r}: the lifecycle of {target.entity} has no step to it")
        rule = (
            f"{row}.{field} in {(*sources,)!r} else {named(entity, row)} is {{{row}.{field}}}; "
            f"it must be {' or '.join(sources)} to become {state}"
        )
        return self.assign(line, target, repr(state)), [read_rule(line.saying(rule), self.scope)]

    def target(self, line: Scalar, text: str) -> Attribute:
        node = parse(line.saying(text), self.scope).node
        if not isinstance(node, Attribute):
            line.place.fail(f"{text} is not a field that could be set")
        field = self.domain.entities[node.entity].fields.get(node.field)
        if field is None or (field.notation.form == "computed" and not field.notation.deferred):
            line.place.fail(f"{text} is computed and cannot be set")
        return node

    def statement(self, line: Scalar) -> Effect:
        try:
            body = ast.parse(line.text).body
        except SyntaxError as error:
            line.place.fail(f"{line.text!r} is not an effect: {error.msg}")
        match body:
            case [ast.Assign([ast.Attribute() as target], value)]:
                return self.assign(line, self.target(line, ast.unparse(target)), ast.unparse(value))
            case [ast.AugAssign(ast.Attribute() as target, ast.Add() | ast.Sub() as op, value)]:
                sign = "+" if isinstance(op, ast.Add) else "-"
                text = f"{ast.unparse(target)} {sign} ({ast.unparse(value)})"
                return self.assign(line, self.target(line, ast.unparse(target)), text)
            case [ast.Expr(ast.Call(ast.Name("delete"), [row], []))]:
                gone = parse(line.saying(ast.unparse(row)), self.scope)
                if gone.kind.base != "row":
                    line.place.fail(f"{ast.unparse(row)} is not a row that could be deleted")
                return Delete(gone, line.place)
            case [ast.Expr(ast.Call(ast.Name(entity), [], keywords))]:
                return self.create(line, entity, keywords, None)
            case [ast.Assign([ast.Name(bind)], ast.Call(ast.Name(entity), [], keywords))]:
                return self.create(line, entity, keywords, bind)
        return line.place.fail(
            f"{line.text!r} is none of: row.field = value, += and -=, row.state -> state, entity(field=value), "
            "delete(row), for … do …, if … do …"
        )

    def assign(self, line: Scalar, target: Attribute, text: str) -> Assign:
        return Assign(typed(target.base, ""), target, self.fitting(line, target, text), line.place)

    def fitting(self, line: Scalar, target: Attribute, text: str) -> Expression:
        """The expression of a value for a field, of a kind that fits it."""
        value = parse(line.saying(text), self.scope)
        parse(line.saying(f"probe == ({text})"), self.scope.with_variables({"probe": target.kind}))
        if value.kind.nullable and not target.kind.nullable:
            line.place.fail(f"{text} may be absent, and {target.entity}.{target.field} may not")
        return value

    def create(self, line: Scalar, entity: str, keywords: list[ast.keyword], bind: str | None) -> Create:
        if entity not in self.domain.entities:
            line.place.fail(f"there is no entity {entity} to make a row of")
        fields = self.domain.entities[entity].fields
        values: dict[str, Expression] = {}
        for keyword in keywords:
            name = keyword.arg or ""
            if name not in fields or fields[name].notation.form in ("stamp", "code", "computed"):
                line.place.fail(f"{entity} has no field {name} that could be given")
            target = Attribute(Variable("new", Kind("row", entity)), name, fields[name].notation.kind)
            values[name] = self.fitting(line, target, ast.unparse(keyword.value))
        for name, field in fields.items():
            if name not in values and not (field.notation.kind.nullable or field.notation.form in FILLED):
                line.place.fail(f"a new {entity} needs {name}")
        return Create(entity, values, bind, line.place)
