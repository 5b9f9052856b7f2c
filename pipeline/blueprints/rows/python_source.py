"""Expressions as Python over rows in memory: how the generator itself evaluates them.

The nodes are typed and closed, so what is compiled here can read rows and compute, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date, timedelta
from functools import cache
from typing import Any

from pipeline.blueprints.language.expressions import (
    Arithmetic,
    Attribute,
    Comparison,
    Each,
    Expression,
    Function,
    Junction,
    Literal,
    Membership,
    Negation,
    Node,
    Variable,
)
from pipeline.blueprints.language.source import Place


def evaluate(expression: Expression, world: Any, variables: Mapping[str, Any]) -> Any:
    """The value of an expression in a world (`world["unit"]` gives an entity's rows), with its variables bound.

    Raises UserError where it cannot be computed, because something in it is absent.
    """
    names, function = _compiled(expression)
    try:
        return function(world, *[variables[name] for name in names])
    except (AttributeError, TypeError, ZeroDivisionError) as error:
        place = expression.place or Place("", 0)
        return place.fail(
            f"{expression.text} cannot be computed for some rows ({error}); "
            "guard what may be absent: `x.y is not None and …`"
        )


@cache
def _compiled(expression: Expression) -> tuple[tuple[str, ...], Callable[..., Any]]:
    names = tuple(sorted(expression.variables))
    source = f"lambda {', '.join(('W', *names))}: {_source(expression.node)}"
    return names, eval(source, _FUNCTIONS)  # noqa: S307 (see the module)


def _source(node: Node) -> str:
    match node:
        case Literal(value):
            return repr(value)
        case Variable(name):
            return name
        case Attribute(base, field):
            return f"{_source(base)}.{field}"
        case Each():
            return _each(node)
        case Arithmetic(op, left, right) | Comparison(op, left, right):
            return f"({_source(left)} {op} {_source(right)})"
        case Membership(left, choices):
            return f"({_source(left)} in ({', '.join(repr(c.value) for c in choices)},))"
        case Junction(op, parts):
            return f"({f' {op} '.join(_source(part) for part in parts)})"
        case Negation(part):
            return f"(not {_source(part)})"
        case Function(name, arguments):
            return f"{name}({', '.join(_source(argument) for argument in arguments)})"


def _each(node: Each) -> str:
    rows = node.among or f"W[{node.entity!r}]"
    test = f" if {_source(node.condition)}" if node.condition else ""
    over = f"for {node.item} in {rows}{test}"
    match node.function:
        case "count":
            return f"sum(1 {over})"
        case "list":
            return f"[{_source(node.value)} {over}]"
        case "min" | "max":
            return f"{node.function}(({_source(node.value)} {over}), default=None)"
        case "sum" if node.kind.base == "money":
            return f"round(sum({_source(node.value)} {over}), 2)"
        case _:
            return f"{node.function}({_source(node.value)} {over})"


def _plus_days(day: str, days: int) -> str:
    return (date.fromisoformat(day) + timedelta(days=int(days))).isoformat()


def _days_between(later: str, earlier: str) -> int:
    return (date.fromisoformat(later) - date.fromisoformat(earlier)).days


def _average(values: Iterable[float]) -> float | None:
    values = list(values)
    return sum(values) / len(values) if values else None


_FUNCTIONS: dict[str, Any] = {
    "__builtins__": {},
    **{function.__name__: function for function in (sum, min, max, any, all, abs, round)},
    "avg": _average,
    "lower": str.lower,
    "plus_days": _plus_days,
    "days_between": _days_between,
}
