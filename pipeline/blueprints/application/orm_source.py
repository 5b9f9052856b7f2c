"""Expressions as the generated application writes them: Python over SQLAlchemy models and a `session`."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pipeline.blueprints.language.domain import Domain, Message, Noun
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
    conjuncts,
    mentions,
)
from pipeline.blueprints.tasks.wording import articles, noun


@dataclass(frozen=True)
class OrmSource:
    """Writes expressions for one variant of a domain."""

    domain: Domain

    def value(self, node: Node) -> str:
        """The Python expression of a node."""
        match node:
            case Literal(str(value), kind):
                return f'date.fromisoformat("{value}")' if kind.base == "date" else json.dumps(value)
            case Literal(value):
                return repr(value)
            case Variable(name):
                return self.name(name)
            case Attribute(base, name):
                return f"{self.value(base)}.{self.word(node.entity, name)}"
            case Each():
                return self._each(node)
            case Arithmetic(op, left, right):
                return f"({self.value(left)} {op} {self.value(right)})"
            case Comparison(op, left, right):
                return self._comparison(op, left, right)
            case Membership(left, (choice,)):
                return f"{self.value(left)} == {self.value(choice)}"
            case Membership(left, choices):
                return f"{self.value(left)} in {self._constants(choices)}"
            case Negation(Each(function="any") as each) if not self.query(each)[1]:
                return f"{self.query(each)[0]}.first() is None"
            case Junction(op, parts):
                return f"({f' {op} '.join(self.value(part) for part in parts)})"
            case Negation(part):
                return f"not ({self.value(part)})"
            case Function(name, arguments):
                return self._function(name, [self.value(argument) for argument in arguments])

    def top(self, node: Node) -> str:
        """The Python expression of a node where nothing stands around it."""
        text = self.value(node)
        return text[1:-1] if isinstance(node, Junction | Arithmetic) and text.startswith("(") else text

    def name(self, variable: str) -> str:
        """A variable's name: one that is called like an entity follows the entity's name in this environment."""
        entity = self.domain.entities.get(variable)
        return entity.word if entity and entity.word not in self.domain.variables else variable

    def word(self, entity: str, name: str) -> str:
        """The attribute of a model that holds a field."""
        return name if name == "id" else self.domain.entities[entity].fields[name].word

    def identity(self, node: Node) -> str:
        """The id of a row, without loading the row where a column has it."""
        if isinstance(node, Attribute):
            return f"{self.value(node)}_id"
        return f"{self.value(node)}.id"

    def query(self, node: Each) -> tuple[str, str]:
        """The query for an Each's rows, and what of its condition has to be tested in Python ("" for nothing)."""
        filters: list[str] = []
        rest: list[Node] = []
        model = self.domain.entities[node.entity].model
        for part in conjuncts(node.condition):
            text = self._filter(part, node.item, model) if node.among is None else None
            if text is None:
                rest.append(part)
            else:
                filters.append(text)
        test = "" if not rest else self.top(rest[0] if len(rest) == 1 else Junction("and", tuple(rest)))
        if node.among:
            return self.name(node.among), test
        return f"session.query({model})" + (f".filter({', '.join(filters)})" if filters else ""), test

    def message(self, message: Message) -> str:
        """A message as an f-string (or a plain string, where nothing is filled in)."""
        text = articles("".join(self._message_part(part) for part in message.parts))
        quoted = json.dumps(text, ensure_ascii=False)
        return f"f{quoted}" if message.expressions else quoted

    def _message_part(self, part: str | Noun | Expression) -> str:
        match part:
            case Noun():
                return noun(self.domain, part)
            case Expression():
                return "{" + self.value(part.node) + (":.2f" if part.kind.base == "money" else "") + "}"
            case text:
                return text.replace("{", "{{").replace("}", "}}")

    def _comparison(self, op: str, left: Node, right: Node) -> str:
        if isinstance(right, Literal) and right.value is None:
            row = isinstance(left, Attribute) and left.kind.base == "row"
            return f"{self.identity(left) if row else self.value(left)} is {'not ' if op == '!=' else ''}None"
        if left.kind.base == "row" and right.kind.base == "row":
            return f"{self.identity(left)} {op} {self.identity(right)}"
        return f"{self._operand(left)} {op} {self._operand(right)}"

    def _operand(self, node: Node) -> str:
        text = self.value(node)
        return f"({text})" if isinstance(node, Comparison | Membership | Negation) else text

    def _constants(self, choices: tuple[Literal, ...]) -> str:
        return f"({', '.join(self.value(choice) for choice in choices)}{',' if len(choices) == 1 else ''})"

    def _filter(self, part: Node, item: str, model: str) -> str | None:
        """A condition on a row's own columns as SQLAlchemy says it, or None where it is not just that."""
        match part:
            case Comparison(op, left, right):
                for one, other, sign in ((left, right, op), (right, left, _MIRRORED[op])):
                    column = self._column(one, item, model)
                    if column and not mentions(other, item):
                        return self._column_test(column, sign, other)
                return None
            case Membership(left, choices) if column := self._column(left, item, model):
                return f"{column}.in_({self._constants(choices)})"
            case Negation(Membership(left, choices)) if column := self._column(left, item, model):
                return f"{column}.not_in({self._constants(choices)})"
            case Negation(inner) if column := self._column(inner, item, model):
                return f"{column}.is_(False)"
            case Attribute() if column := self._column(part, item, model):
                return f"{column}.is_(True)"
        return None

    def _column(self, node: Node, item: str, model: str) -> str | None:
        match node:
            case Attribute(Variable(name), field) if name == item:
                column = field if field == "id" else self.domain.entities[node.entity].fields[field].column
                return f"{model}.{column}"
            case Variable(name) if name == item:
                return f"{model}.id"
        return None

    def _column_test(self, column: str, op: str, other: Node) -> str:
        if isinstance(other, Literal) and other.value is None:
            return f"{column}.is_(None)" if op == "==" else f"{column}.is_not(None)"
        return f"{column} {op} {self.identity(other) if other.kind.base == 'row' else self.value(other)}"

    def _each(self, node: Each) -> str:
        query, test = self.query(node)
        item = self.name(node.item)
        over = f"for {item} in {query}" + (f" if {test}" if test else "")
        value = self.value(node.value)
        match node.function:
            case "count" if node.among and not test:
                return f"len({query})"
            case "count":
                return f"sum(1 {over})" if test else f"{query}.count()"
            case "any":
                return f"any({test} for {item} in {query})" if test else f"({query}.first() is not None)"
            case "list":
                return f"[{value} {over}]"
            case "min" | "max":
                return f"{node.function}(({value} {over}), default=None)"
            case "sum" if node.kind.base == "money":
                return f"round(sum({value} {over}), 2)"
            case "avg":
                return f"average({value} {over})"
            case function:
                return f"{function}({value} {over})"

    def _function(self, name: str, arguments: list[str]) -> str:
        match name:
            case "plus_days":
                return f"({arguments[0]} + timedelta(days={arguments[1]}))"
            case "days_between":
                return f"({arguments[0]} - {arguments[1]}).days"
            case "lower":
                return f"{arguments[0]}.lower()"
            case _:
                return f"{name}({arguments[0]})"


_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
