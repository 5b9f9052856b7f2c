"""What a task means, as Python over SQLite: what it is about in the initial database, and what is done to it.

The lines go into a verifier. They follow the domain's effects, so they describe an end and no way to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.blueprints.language.domain import (
    Assign,
    Create,
    Delete,
    Domain,
    Effect,
    Field,
    Find,
    ForEach,
    Given,
    Step,
    When,
)
from pipeline.blueprints.language.expressions import Attribute, Each, Expression, Node, Variable, inline_own
from pipeline.blueprints.rows.world import Row, World
from pipeline.blueprints.tasks.meaning import Meaning
from pipeline.blueprints.verifiers.sql_source import SqlSource, literal

NOTHING = "nothing"
"""The parameter that stands for what was not given."""


def about(meaning: Meaning, world: World) -> list[str]:
    """The body of `about(db)`: binds what the task names and describes, and yields once for every acceptable choice."""
    domain = world.domain
    lines = [f'v = {{"{NOTHING}": None}}', _named("me", world.me, domain)]
    for item in meaning.form.given:
        lines.append(_given(item, meaning.variables[item.name], domain))
    choice = ""
    for found in meaning.form.find:
        query = _query(found, domain)
        if found.how == "all":
            lines.append(f'v["{found.name}"] = json.dumps(column(db, {quoted(query)}, v))')
        elif found.how == "any":
            choice = f'for v["{found.name}"] in column(db, {quoted(query)}, v):'
        else:
            lines.append(f'v["{found.name}"] = value(db, {quoted(query)}, v)')
    return [*lines, choice, "    yield dict(v)"] if choice else [*lines, "yield v"]


def _given(item: Given, value: Any, domain: Domain) -> str:
    if item.formula:
        query = SqlSource(domain).value(item.formula.node)
        return f'v["{item.name}"] = value(db, {quoted(f"SELECT {query}")}, v)'
    if isinstance(value, Row):
        return _named(item.name, value, domain)
    return f'v["{item.name}"] = {value!r}'


def _named(name: str, row: Row, domain: Domain) -> str:
    """Find a row by what people call it."""
    entity = domain.entities[row.entity]
    assert entity.label
    label = literal(getattr(row, entity.label.name))
    query = f"SELECT id FROM {entity.table} WHERE {entity.label.column} = {label}"
    return f'v["{name}"] = value(db, {quoted(query)}, v)'


def _query(found: Find, domain: Domain) -> str:
    sql = SqlSource(domain).within(found.item)
    where = sql.test(found.condition.node) if found.condition else "1"
    query = f"SELECT {found.item}.id FROM {sql.rows(found.entity, found.item)} WHERE {where}"
    if found.by:
        query += f" ORDER BY {sql.value(found.by.node)}{' DESC' if found.how == 'last' else ''} LIMIT 1"
    return query


@dataclass
class Doing:
    """Writes the body of `meaning(db, v)`. `free` collects columns whose value in new rows is left to the agent."""

    domain: Domain
    free: dict[str, set[str]] = field(default_factory=dict)
    binds: int = 0

    def lines(self, meaning: Meaning) -> list[str]:
        """The statements that do what the task means to a copy of the initial database."""
        found: list[str] = []
        for step in meaning.form.steps:
            found += self.step(step)
        return found or ["pass  # nothing is to change"]

    def step(self, step: Step) -> Iterator[str]:
        """One action of the goal, for one row or each of a set."""
        indent = ""
        if step.each:
            yield f'for v["{step.each[0]}"] in json.loads(v["{step.each[1]}"]):'
            indent = "    "
        action = self.domain.actions[step.action]
        names: dict[str, str] = {}
        for p in action.takes:
            given = step.arguments.get(p.name)
            if given is None:
                names[p.name] = NOTHING
                self._leave_free(p.name, action.does)
            elif isinstance(given.node, Variable):
                names[p.name] = given.node.name
            else:
                self.binds += 1
                names[p.name] = f"{p.name}_{self.binds}"
                query = SqlSource(self.domain).value(given.node)
                yield f'{indent}v["{names[p.name]}"] = value(db, {quoted(f"SELECT {query}")}, v)'
        created = action.created
        for effect in action.does:
            for line in self.effect(effect, names, step.bind if effect is created else None):
                yield indent + line

    def _leave_free(self, parameter: str, does: tuple[Effect, ...]) -> None:
        """A text that the task does not speak of may be anything."""
        for effect in does:
            if isinstance(effect, Create):
                for name, value in effect.values.items():
                    node, one = value.node, self.domain.entities[effect.entity].fields[name]
                    if isinstance(node, Variable) and node.name == parameter and one.notation.form == "text":
                        self.free.setdefault(self.domain.entities[effect.entity].table, set()).add(one.column)

    def effect(self, effect: Effect, names: dict[str, str], bind: str | None) -> Iterator[str]:
        """One effect; `names` are the parameters that variables stand under, `bind` the name of what it makes."""
        sql = SqlSource(self.domain, names=names)
        match effect:
            case Assign(owner, target, value):
                yield f"db.execute({quoted(self.update(owner.node, target, value.node, sql))}, v)"
            case Create():
                bind = bind or (f"made_{effect.bind}" if effect.bind else None)
                if bind and effect.bind:
                    names[effect.bind] = bind
                made = f"db.execute({quoted(self.insert(effect, sql))}, v)"
                yield f'v["{bind}"] = {made}.lastrowid' if bind else made
            case Delete(row):
                table = self.domain.entities[row.kind.entity].table
                yield f"db.execute({quoted(f'DELETE FROM {table} WHERE id = {sql.value(row.node)}')}, v)"
            case When(condition, inner):
                yield f"if value(db, {quoted(f'SELECT {sql.value(condition.node)}')}, v):"
                yield from (f"    {line}" for line in self.effect(inner, names, None))
            case ForEach(item, entity, condition, inner):
                query = SqlSource(self.domain, names=names).within(item)
                where = query.test(condition.node) if condition else "1"
                rows = f"SELECT {item}.id FROM {query.rows(entity, item)} WHERE {where}"
                each = f"each_{item}"
                yield f'for v["{each}"] in column(db, {quoted(rows)}, v):'
                yield from (f"    {line}" for line in self.effect(inner, {**names, item: each}, None))

    def update(self, row: Node, target: Attribute, value: Node, sql: SqlSource) -> str:
        """The UPDATE of one field of one row."""
        entity = self.domain.entities[target.entity]
        where, table = f"id = {sql.value(row)}", entity.table
        if isinstance(row, Variable):  # then the row's own columns can be said by name
            where, table, sql = f"{row.name}.{where}", f"{table} AS {row.name}", sql.within(row.name)
        text = f"ROUND({sql.value(value)}, 2)" if target.kind.base == "money" else sql.value(value)
        return f"UPDATE {table} SET {entity.fields[target.field].column} = {text} WHERE {where}"

    def insert(self, create: Create, sql: SqlSource) -> str:
        """The INSERT of a new row, with what such a row gets by itself."""
        entity = self.domain.entities[create.entity]
        columns: list[str] = []
        values: list[str] = []
        nodes = {name: value.node for name, value in create.values.items()}
        for name, one in entity.fields.items():
            text = sql.value(nodes[name]) if name in nodes else self.default(one, entity.name, nodes, sql)
            if text is not None:
                columns.append(one.column)
                values.append(f"ROUND({text}, 2)" if one.notation.kind.base == "money" else text)
        return f"INSERT INTO {entity.table} ({', '.join(columns)}) VALUES ({', '.join(values)})"

    def default(self, one: Field, entity: str, nodes: Mapping[str, Node], sql: SqlSource) -> str | None:
        """What a new row has in a field it is not given; None where the column's own default does."""
        table = self.domain.entities[entity].table
        match one.notation.form:
            case "code":
                self.free.setdefault(table, set()).add(one.column)
                return f"'new ' || (SELECT COUNT(*) FROM {table})"
            case "stamp":
                self.free.setdefault(table, set()).add(one.column)
                return None
            case "state":
                return literal(one.notation.kind.choices[0])
            case "bool":
                return "0"
            case "computed" if not one.notation.deferred:
                assert one.notation.formula
                return sql.value(inline_own(one.notation.formula.node, entity, nodes))
            case "computed":
                return "0"
            case _:
                return None


def answer(meaning: Meaning, domain: Domain) -> list[str]:
    """The conditions an answer has to meet, as Python over `said` (the answer), `db` and `v`."""
    return [_answer(expression, domain) for expression in meaning.form.answer]


def _answer(expression: Expression, domain: Domain) -> str:
    sql = SqlSource(domain)
    kind = expression.kind
    if kind.base == "list":
        universe = universe_of(expression.node, domain)
        wanted = f"column(db, {quoted(sql.value(expression.node))}, v)"
        return f"names(said, {wanted}, {universe})"
    wanted = f"value(db, {quoted(f'SELECT {sql.value(expression.node)}')}, v)"
    match kind.base:
        case "int" | "money" | "real":
            return f"number(said, {wanted})"
        case "bool":
            return f"yes_or_no(said, {wanted})"
        case "date":
            return f"day(said, {wanted})"
        case _:
            return f"names(said, [{wanted}], {universe_of(expression.node, domain)})"


def universe_of(node: Node, domain: Domain) -> str:
    """What else an answer might have named: all values of the field that the right one is a value of."""
    node = node.value if isinstance(node, Each) else node
    if isinstance(node, Attribute):
        entity = domain.entities[node.entity]
        return f'column(db, "SELECT DISTINCT {entity.fields[node.field].column} FROM {entity.table}", v)'
    return repr(list(node.kind.choices))


def quoted(text: str) -> str:
    """A Python string literal of one line."""
    return json.dumps(text, ensure_ascii=False)
