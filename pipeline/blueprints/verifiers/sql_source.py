"""Expressions as SQLite SQL, for verifiers: rows are ids, variables are named parameters.

A row variable `bag` is the parameter `:bag` (its id), a set of rows `:bags` a JSON array of ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.blueprints.language.domain import Domain
from pipeline.blueprints.language.expressions import (
    Arithmetic,
    Attribute,
    Comparison,
    Each,
    Function,
    Junction,
    Literal,
    Membership,
    Negation,
    Node,
    Variable,
)


@dataclass(frozen=True)
class SqlSource:
    """Writes expressions for one variant of a domain.

    `aliases` are row variables that stand for a table of the surrounding FROM; `names` gives a variable another
    parameter's name.
    """

    domain: Domain
    aliases: frozenset[str] = frozenset()
    names: Mapping[str, str] = field(default_factory=dict)

    def value(self, node: Node) -> str:
        """The SQL expression of a node."""
        match node:
            case Literal(value):
                return literal(value)
            case Variable(name):
                return f"{name}.id" if name in self.aliases else f":{self.names.get(name, name)}"
            case Attribute(base, name):
                return self._attribute(node, base, name)
            case Each():
                return self._each(node)
            case Arithmetic("/", left, right):
                return f"(1.0 * {self.value(left)} / {self.value(right)})"
            case Arithmetic("//", left, right):
                return f"CAST({self.value(left)} / {self.value(right)} AS INTEGER)"
            case Arithmetic(op, left, right):
                return f"({self.value(left)} {op} {self.value(right)})"
            case Comparison(op, left, right):
                return self._comparison(op, left, right)
            case Membership(left, choices):
                return f"{self.value(left)} IN ({', '.join(literal(choice.value) for choice in choices)})"
            case Junction(op, parts):
                return f"({f' {op.upper()} '.join(self.value(part) for part in parts)})"
            case Negation(part):
                return f"NOT ({self.value(part)})"
            case Function(name, arguments):
                return self._function(name, [self.value(argument) for argument in arguments])

    def test(self, node: Node | None) -> str:
        """The SQL condition of a node; always true for none."""
        text = "1" if node is None else self.value(node)
        return text[1:-1] if isinstance(node, Junction) else text

    def within(self, item: str) -> SqlSource:
        """The same, inside a FROM whose rows are called `item`."""
        return SqlSource(self.domain, self.aliases | {item}, self.names)

    def rows(self, entity: str, item: str, among: str | None = None) -> str:
        """The FROM clause over an entity's rows called `item`, or over a set of them."""
        source = f"{self.domain.entities[entity].table} AS {item}"
        if among is None:
            return source
        return f"json_each(:{self.names.get(among, among)}) AS chosen JOIN {source} ON {item}.id = chosen.value"

    def _attribute(self, node: Attribute, base: Node, name: str) -> str:
        if name == "id":
            return self.value(base)
        entity = self.domain.entities[node.entity]
        column = entity.fields[name].column
        if isinstance(base, Variable) and base.name in self.aliases:
            return f"{base.name}.{column}"
        return f"(SELECT {column} FROM {entity.table} WHERE id = {self.value(base)})"

    def _comparison(self, op: str, left: Node, right: Node) -> str:
        if op in ("==", "!="):
            loose = nullable(left) or nullable(right)
            op = {"==": "IS" if loose else "=", "!=": "IS NOT" if loose else "<>"}[op]
        return f"{self._operand(left)} {op} {self._operand(right)}"

    def _operand(self, node: Node) -> str:
        text = self.value(node)
        return f"({text})" if isinstance(node, Comparison | Membership | Negation) else text

    def _each(self, node: Each) -> str:
        inner = self.within(node.item)
        value = inner.value(node.value)
        where = f" WHERE {inner.test(node.condition)}" if node.condition else ""
        source = f"FROM {self.rows(node.entity, node.item, node.among)}"
        match node.function:
            case "count":
                return f"(SELECT COUNT(*) {source}{where})"
            case "sum":
                total = f"COALESCE(SUM({value}), 0)"
                return f"(SELECT {f'ROUND({total}, 2)' if node.kind.base == 'money' else total} {source}{where})"
            case "any":
                return f"EXISTS (SELECT 1 {source}{where})"
            case "all":
                return f"NOT EXISTS (SELECT 1 {source}{where + ' AND' if where else ' WHERE'} NOT ({value}))"
            case "list":
                return f"SELECT {value} {source}{where}"
            case function:
                return f"(SELECT {function.upper()}({value}) {source}{where})"

    def _function(self, name: str, arguments: list[str]) -> str:
        match name:
            case "plus_days":
                return f"date({arguments[0]}, {arguments[1]} || ' days')"
            case "days_between":
                return f"CAST(ROUND(julianday({arguments[0]}) - julianday({arguments[1]})) AS INTEGER)"
            case "round":
                return f"CAST(ROUND({arguments[0]}) AS INTEGER)"
            case _:
                return f"{name.upper()}({arguments[0]})"


def literal(value: object) -> str:
    """A constant in SQL."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(int(value))
        case str():
            return "'" + value.replace("'", "''") + "'"
        case _:
            return repr(value)


def nullable(node: Node) -> bool:
    """Whether a node may be NULL: itself, or because a row on the way to it may be absent."""
    return node.kind.nullable or (isinstance(node, Attribute) and nullable(node.base))
