"""Reference solutions: the tool calls that find what a task describes and do what it wants, and the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pipeline.blueprints.application.database import stored
from pipeline.blueprints.application.interface import Endpoint
from pipeline.blueprints.language.expressions import (
    Attribute,
    Comparison,
    Each,
    Expression,
    Literal,
    Negation,
    Node,
    Variable,
    conjuncts,
    expression_of,
    walk,
)
from pipeline.blueprints.rows.world import World
from pipeline.blueprints.tasks.meaning import Meaning, Outcome, Performed
from pipeline.model import Call

LONGEST = 8
"""The most calls a reference solution makes."""


class Solver:
    """Knows the tools of one environment."""

    def __init__(self, world: World, offered: Iterable[Endpoint]) -> None:
        self.world = world
        offered = tuple(offered)
        self.lists = {e.entity: e for e in offered if e.form == "list" and e.entity}
        self.actions = {e.action: e for e in offered if e.action}

    def calls(self, meaning: Meaning) -> tuple[Call, ...] | None:
        """Look-ups, then actions; None where it takes more than `LONGEST` actions."""
        doing = tuple(self.action(one) for one in meaning.outcomes[0].performed)
        if len(doing) > LONGEST:
            return None
        looking = list(dict.fromkeys(_key(call) for call in self.look_ups(meaning)))
        calls = [Call(tool, dict(arguments)) for tool, arguments in looking]
        return (*calls[max(0, len(calls) + len(doing) - LONGEST) :], *doing)

    def action(self, performed: Performed) -> Call:
        """The call of an action."""
        endpoint = self.actions[performed.action.name]
        names = {argument.field: argument.name for argument in endpoint.arguments}
        given = {names[name]: stored(value) for name, value in performed.arguments.items() if value is not None}
        return Call(endpoint.operation_id, given)

    def look_ups(self, meaning: Meaning) -> Iterator[Call]:
        """A list call for everything the task names or describes, filtered as far as the list can."""
        form, variables = meaning.form, meaning.variables
        known: dict[str, Any] = {"me": self.world.me}
        for item in form.given:
            if item.formula:
                yield from self.over(item.formula, known)
            known[item.name] = variables[item.name]
            label = self.world.domain.entities[item.entity].label if item.entity else None
            if item.entity and label:
                endpoint = self.lists[item.entity]
                search = endpoint.filter(label.name, "search")
                assert search
                yield Call(endpoint.operation_id, {search: getattr(variables[item.name], label.name)})
        for item in form.find:
            if item.condition:
                yield from self.over(item.condition, known)
            yield self.filtered(item.entity, item.item, item.condition.node if item.condition else None, known)
            known[item.name] = variables[item.name]
        for expression in form.answer:
            yield from self.over(expression, known)

    def over(self, expression: Expression, known: Mapping[str, Any]) -> Iterator[Call]:
        """A list call for every entity that an expression goes over."""
        for node in walk(expression.node):
            if isinstance(node, Each) and node.among is None:
                yield self.filtered(node.entity, node.item, node.condition, known)

    def filtered(self, entity: str, item: str, condition: Node | None, known: Mapping[str, Any]) -> Call:
        """A list call with every filter that follows from a condition on its rows."""
        endpoint = self.lists[entity]
        arguments: dict[str, Any] = {}
        for part in conjuncts(condition):
            for field, role, other in _tests(part, item):
                name = endpoint.filter(field, role)
                expression = expression_of(other)
                if name and expression.variables <= known.keys():
                    value = self.world.value(expression, known)
                    if value is not None:
                        arguments.setdefault(name, stored(value))
        if len(self.world[entity]) > 50:
            arguments["limit"] = 200
        return Call(endpoint.operation_id, arguments)


def _tests(part: Node, item: str) -> Iterator[tuple[str, Any, Node]]:
    """What a condition says of a field of `item` that a list can filter by: (field, role of the filter, value)."""
    match part:
        case Comparison(op, left, right):
            for one, other, sign in ((left, right, op), (right, left, _MIRRORED[op])):
                match one:
                    case Attribute(Variable(name), field) if name == item:
                        for role in _ROLES.get(sign, ()):
                            yield field, role, other
        case Attribute(Variable(name), field, kind) if name == item and kind.base == "bool":
            yield field, "equals", Literal(True, kind)
        case Negation(Attribute(Variable(name), field, kind)) if name == item and kind.base == "bool":
            yield field, "equals", Literal(False, kind)


_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ROLES = {"==": ("equals", "from", "to"), "<": ("to",), "<=": ("to",), ">": ("from",), ">=": ("from",)}


def _key(call: Call) -> tuple[str, tuple[tuple[str, Any], ...]]:
    return call.tool, tuple(call.arguments.items())


def tool_calls(solver: Solver, outcome: Outcome) -> tuple[Call, ...]:
    """The actions of an outcome as calls, without looking anything up."""
    return tuple(solver.action(one) for one in outcome.performed)
