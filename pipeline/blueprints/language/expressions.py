"""The expressions of a domain file: Python's notation, a small part of its meaning, and a type for everything.

    unit.status == 'available' and unit.expires_on >= day
    not any(b.starts_on <= ends_on and b.ends_on >= starts_on for b in booking if b.berth == berth)
    sum(line.quantity * line.product.price for line in order_line if line.order == order)

An expression is read once into typed nodes; `python_source`, `sql_source` and `orm_source` write the same meaning
down for the generator, for verifiers and for the generated application.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal as OneOf

from pipeline.blueprints.language.source import Place, Scalar

Base = OneOf["int", "money", "real", "bool", "text", "choice", "date", "time", "stamp", "row", "rows", "list", "none"]

NUMBERS = frozenset({"int", "money", "real"})
TEXTS = frozenset({"text", "choice", "date", "time", "stamp"})


@dataclass(frozen=True, slots=True)
class Kind:
    """What a value is. `entity` is set for rows and sets of rows, `choices` for enumerated texts."""

    base: Base
    entity: str = ""
    choices: tuple[str, ...] = ()
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    value: str | int | float | bool | None
    kind: Kind


@dataclass(frozen=True, slots=True)
class Variable:
    """A name that is bound outside the expression, or by an `Each` around it."""

    name: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Attribute:
    """A field of a row."""

    base: Node
    field: str
    kind: Kind

    @property
    def entity(self) -> str:
        """The entity whose field it is."""
        return self.base.kind.entity


@dataclass(frozen=True, slots=True)
class Each:
    """A function over the rows of an entity, or of a set of them (`among`), for which a condition holds.

    `function` is sum, avg, min, max, count, any, all or list; `value` is what each row contributes (for any and all
    the test). Over no rows, sum and count are 0 and min, max and avg are None.
    """

    function: str
    item: str
    entity: str
    among: str | None
    condition: Node | None
    value: Node
    kind: Kind


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """left op right; op is +, -, *, /, // or %."""

    op: str
    left: Node
    right: Node
    kind: Kind


@dataclass(frozen=True, slots=True)
class Comparison:
    """left op right; op is ==, !=, <, <=, > or >=."""

    op: str
    left: Node
    right: Node
    kind: Kind = Kind("bool")


@dataclass(frozen=True, slots=True)
class Membership:
    """Whether a value is one of some constants."""

    left: Node
    choices: tuple[Literal, ...]
    kind: Kind = Kind("bool")


@dataclass(frozen=True, slots=True)
class Junction:
    """Parts joined by `and` or by `or`."""

    op: str
    parts: tuple[Node, ...]
    kind: Kind = Kind("bool")


@dataclass(frozen=True, slots=True)
class Negation:
    """not part."""

    part: Node
    kind: Kind = Kind("bool")


@dataclass(frozen=True, slots=True)
class Function:
    """plus_days(date, n), days_between(later, earlier), abs(n), round(n), lower(text)."""

    name: str
    arguments: tuple[Node, ...]
    kind: Kind


Node = Literal | Variable | Attribute | Each | Arithmetic | Comparison | Membership | Junction | Negation | Function

FUNCTIONS: Mapping[str, tuple[Base, ...]] = {
    "plus_days": ("date", "date", "int"),
    "days_between": ("int", "date", "date"),
    "abs": ("real", "real"),
    "round": ("int", "real"),
    "lower": ("text", "text"),
}
"""Result and arguments of each function."""

EACH = frozenset({"sum", "avg", "min", "max", "count", "any", "all"})

_COMPARISONS: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "==", ast.IsNot: "!="
}  # fmt: skip
_ARITHMETIC: Mapping[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scope:
    """What the names in an expression may mean: the entities' fields, and the variables bound around it.

    Where `own` names one of the variables, that row's fields are known by their bare names too.
    """

    entities: Mapping[str, Mapping[str, Kind]]
    variables: Mapping[str, Kind] = field(default_factory=dict)
    own: str = ""

    def with_variables(self, variables: Mapping[str, Kind]) -> Scope:
        """This scope with more variables, which hide those of the same name."""
        return Scope(self.entities, {**self.variables, **variables}, self.own)


@dataclass(frozen=True, eq=False)
class Expression:
    """A typed expression. `needs` names the entities ("unit") and fields ("unit.status") it mentions.

    Compared by identity, so that what is made of an expression can be cached by it.
    """

    text: str
    node: Node
    variables: frozenset[str]
    needs: frozenset[str]
    place: Place | None = None

    @property
    def kind(self) -> Kind:
        """What it evaluates to."""
        return self.node.kind


def parse(source: Scalar, scope: Scope) -> Expression:
    """Read an expression. Raises UserError naming its place, and what is wrong in it."""
    try:
        tree = ast.parse(source.text, mode="eval").body
    except SyntaxError as error:
        source.place.fail(f"{source.text!r} is not an expression: {error.msg}")
    return typed(_Reader(scope, source.place).read(tree), source.text, source.place)


def typed(node: Node, text: str, place: Place | None = None) -> Expression:
    """The expression of a node."""
    needs: set[str] = set()
    for part in walk(node):
        match part:
            case Attribute(_, name):
                needs |= {part.entity, f"{part.entity}.{name}"}
            case Each():
                needs.add(part.entity)
            case _:
                pass
    return Expression(text, node, free_variables(node), frozenset(needs), place)


@lru_cache(maxsize=65536)
def expression_of(node: Node) -> Expression:
    """The expression of a node within another; the same one whenever it is asked for."""
    return typed(node, "")


def free_variables(node: Node) -> frozenset[str]:
    """The variables of a node that are bound outside it."""
    if isinstance(node, Variable):
        return frozenset({node.name})
    inner = frozenset[str]().union(*(free_variables(part) for part in children(node)))
    if isinstance(node, Each):
        return (inner - {node.item}) | ({node.among} if node.among else set())
    return inner


def walk(node: Node) -> Iterator[Node]:
    """A node and everything in it."""
    yield node
    for part in children(node):
        yield from walk(part)


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly in a node."""
    match node:
        case Attribute(base):
            return (base,)
        case Each(condition=condition, value=value):
            return (value,) if condition is None else (condition, value)
        case Arithmetic(_, left, right) | Comparison(_, left, right):
            return (left, right)
        case Membership(left):
            return (left,)
        case Junction(_, parts):
            return parts
        case Negation(part):
            return (part,)
        case Function(_, arguments):
            return arguments
        case _:
            return ()


def conjuncts(node: Node | None) -> tuple[Node, ...]:
    """The parts that must all hold for a condition to hold."""
    if node is None:
        return ()
    if isinstance(node, Junction) and node.op == "and":
        return tuple(inner for part in node.parts for inner in conjuncts(part))
    return (node,)


def mentions(node: Node, variable: str) -> bool:
    """Whether a variable bound outside a node occurs in it."""
    return variable in free_variables(node)


def substitute(node: Node, values: Mapping[str, Node]) -> Node:
    """The node with variables replaced by other nodes."""
    match node:
        case Variable(name):
            return values.get(name, node)
        case Attribute(base, name, kind):
            return Attribute(substitute(base, values), name, kind)
        case Each(function, item, entity, among, condition, value, kind):
            inner = {name: new for name, new in values.items() if name != item}
            renamed = values.get(among) if among else None
            return Each(
                function,
                item,
                entity,
                renamed.name if isinstance(renamed, Variable) else among,
                None if condition is None else substitute(condition, inner),
                substitute(value, inner),
                kind,
            )
        case Arithmetic(op, left, right, kind):
            return Arithmetic(op, substitute(left, values), substitute(right, values), kind)
        case Comparison(op, left, right):
            return Comparison(op, substitute(left, values), substitute(right, values))
        case Membership(left, choices):
            return Membership(substitute(left, values), choices)
        case Junction(op, parts):
            return Junction(op, tuple(substitute(part, values) for part in parts))
        case Negation(part):
            return Negation(substitute(part, values))
        case Function(name, arguments, kind):
            return Function(name, tuple(substitute(part, values) for part in arguments), kind)
        case _:
            return node


def inline_own(node: Node, own: str, values: Mapping[str, Node]) -> Node:
    """A computed field's formula for a row that is not there yet: its own fields replaced by the values it will get."""
    match node:
        case Attribute(Variable(name), field_name) if name == own:
            return values.get(field_name, Literal(None, Kind("none", nullable=True)))
        case Attribute(base, field_name, kind):
            return Attribute(inline_own(base, own, values), field_name, kind)
        case Arithmetic(op, left, right, kind):
            return Arithmetic(op, inline_own(left, own, values), inline_own(right, own, values), kind)
        case Function(name, arguments, kind):
            return Function(name, tuple(inline_own(argument, own, values) for argument in arguments), kind)
        case _:
            return node


_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class _Reader:
    """Turns Python's syntax tree into typed nodes, within a scope."""

    def __init__(self, scope: Scope, place: Place) -> None:
        self.scope, self.place = scope, place

    def read(self, tree: ast.expr) -> Node:
        match tree:
            case ast.Constant(value):
                return self.constant(value)
            case ast.Name(name):
                return self.name(name)
            case ast.Attribute(value, name):
                return self.attribute(self.read(value), name)
            case ast.BoolOp(op, values):
                word = "and" if isinstance(op, ast.And) else "or"
                return Junction(word, tuple(self.read(value) for value in values))
            case ast.UnaryOp(ast.Not(), operand):
                return Negation(self.read(operand))
            case ast.UnaryOp(ast.USub(), operand):
                part = self.number(self.read(operand))
                return Arithmetic("-", Literal(0, Kind("int")), part, part.kind)
            case ast.BinOp(left, op, right) if type(op) in _ARITHMETIC:
                return self.arithmetic(_ARITHMETIC[type(op)], self.read(left), self.read(right))
            case ast.Compare(left, ops, comparators):
                return self.comparisons(left, ops, comparators)
            case ast.Call(ast.Name(name), arguments, []):
                return self.call(name, arguments)
            case ast.ListComp(value, [generator]):
                return self.each("list", value, generator)
            case _:
                return self.place.fail(f"{ast.unparse(tree)!r} is not something an expression here can say")

    def constant(self, value: object) -> Node:
        match value:
            case bool():
                return Literal(value, Kind("bool"))
            case int():
                return Literal(value, Kind("int"))
            case float():
                return Literal(value, Kind("real"))
            case str():
                return Literal(value, Kind("date" if _DAY.fullmatch(value) else "text"))
            case None:
                return Literal(None, Kind("none", nullable=True))
        return self.place.fail(f"{value!r} is not a constant an expression here can have")

    def name(self, name: str) -> Node:
        if name in self.scope.variables:
            return Variable(name, self.scope.variables[name])
        if self.scope.own and name in self.scope.entities[self.scope.variables[self.scope.own].entity]:
            return self.attribute(Variable(self.scope.own, self.scope.variables[self.scope.own]), name)
        hint = " (to go over its rows write: for x in it)" if name in self.scope.entities else ""
        known = ", ".join(sorted(self.scope.variables)) or "none"
        return self.place.fail(f"nothing is called {name} here{hint}; known are {known}")

    def attribute(self, base: Node, name: str) -> Node:
        if base.kind.base != "row":
            self.place.fail(f".{name} is asked of something that is not a row")
        fields = self.scope.entities[base.kind.entity]
        if name not in fields:
            self.place.fail(f"{base.kind.entity} has no field {name}; it has {', '.join(fields)}")
        return Attribute(base, name, fields[name])

    def number(self, node: Node) -> Node:
        if node.kind.base not in NUMBERS:
            self.place.fail(f"a number is needed, not a {node.kind.base}")
        return node

    def arithmetic(self, op: str, left: Node, right: Node) -> Node:
        self.number(left), self.number(right)
        bases = {left.kind.base, right.kind.base}
        base: Base = "int" if op in ("//", "%") or (bases == {"int"} and op != "/") else "real"
        if "money" in bases and op in ("+", "-", "*", "/"):
            base = "money"
        return Arithmetic(op, left, right, Kind(base))

    def comparisons(self, left: ast.expr, ops: list[ast.cmpop], others: list[ast.expr]) -> Node:
        parts: list[Node] = []
        for op, other in zip(ops, others, strict=True):
            parts.append(self.comparison(self.read(left), op, other))
            left = other
        return parts[0] if len(parts) == 1 else Junction("and", tuple(parts))

    def comparison(self, left: Node, op: ast.cmpop, other: ast.expr) -> Node:
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(other, ast.Tuple | ast.List):
                self.place.fail("after `in` a list of constants is needed, such as ('open', 'held')")
            choices = [self.read(element) for element in other.elts]
            found = Membership(left, tuple(c for c in choices if isinstance(c, Literal) and self.comparable(left, c)))
            return Negation(found) if isinstance(op, ast.NotIn) else found
        right = self.read(other)
        self.comparable(left, right)
        return Comparison(_COMPARISONS[type(op)], left, right)

    def comparable(self, left: Node, right: Node) -> bool:
        """Fail unless the two can be equal; a misspelt choice cannot."""
        for one, two in ((left, right), (right, left)):
            if isinstance(two, Literal) and one.kind.choices and two.value not in (*one.kind.choices, None):
                self.place.fail(f"{two.value!r} is not one of {', '.join(one.kind.choices)}")
        bases = {left.kind.base, right.kind.base}
        same = len(bases) == 1 or bases <= NUMBERS or bases <= TEXTS or "none" in bases
        if not same or (left.kind.entity != right.kind.entity and "none" not in bases):
            names = [node.kind.entity or node.kind.base for node in (left, right)]
            self.place.fail(f"a {names[0]} is compared with a {names[1]}")
        return True

    def call(self, name: str, arguments: list[ast.expr]) -> Node:
        match arguments:
            case [ast.GeneratorExp(value, [generator])] if name in EACH:
                return self.each(name, value, generator)
            case [ast.Name(among)] if name == "count":
                kind = self.scope.variables.get(among, Kind("none"))
                if kind.base != "rows":
                    self.place.fail(f"count needs a set of rows, or `count(x for x in … if …)`, not {among}")
                item = Variable("one", Kind("row", kind.entity))
                return Each("count", "one", kind.entity, among, None, item, Kind("int"))
        if name not in FUNCTIONS:
            self.place.fail(f"there is no function {name}; known are {', '.join([*FUNCTIONS, *sorted(EACH)])}")
        result, *wanted = FUNCTIONS[name]
        nodes = tuple(self.read(argument) for argument in arguments)
        if len(nodes) != len(wanted):
            self.place.fail(f"{name} takes {len(wanted)} arguments, not {len(nodes)}")
        for node, base in zip(nodes, wanted, strict=True):
            if base in {"real", "int"}:
                self.number(node)
            elif node.kind.base != base and not (base == "text" and node.kind.base in TEXTS):
                self.place.fail(f"{name} needs a {base}, not a {node.kind.base}")
        return Function(name, nodes, nodes[0].kind if name == "abs" else Kind(result))

    def each(self, function: str, value: ast.expr, generator: ast.comprehension) -> Node:
        match generator:
            case ast.comprehension(ast.Name(item), ast.Name(source), conditions, 0):
                pass
            case _:
                self.place.fail("only `for name in entity if …` can be gone over")
        rows = self.scope.variables.get(source)
        among = source if rows and rows.base == "rows" else None
        entity = rows.entity if rows and among else source
        if entity not in self.scope.entities:
            self.place.fail(f"there is no entity {source}; known are {', '.join(self.scope.entities)}")
        inner = _Reader(self.scope.with_variables({item: Kind("row", entity)}), self.place)
        tests = tuple(inner.read(condition) for condition in conditions)
        node = inner.read(value)
        if function == "any":
            tests, node = (
                (*tests, *(() if node == Literal(True, Kind("bool")) else (node,))),
                Literal(True, Kind("bool")),
            )
        condition = None if not tests else tests[0] if len(tests) == 1 else Junction("and", tests)
        return Each(function, item, entity, among, condition, node, self.each_kind(function, node))

    def each_kind(self, function: str, value: Node) -> Kind:
        match function:
            case "count":
                return Kind("int")
            case "any" | "all":
                return Kind("bool")
            case "list":
                return Kind("list", entity=value.kind.entity, choices=(value.kind.base,))
            case "avg":
                self.number(value)
                return Kind("money" if value.kind.base == "money" else "real", nullable=True)
            case "sum":
                return self.number(value).kind
            case _:
                return Kind(value.kind.base, value.kind.entity, value.kind.choices, nullable=True)
