"""The FastAPI application of a variant: SQLAlchemy models, pydantic models, and one handler an operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pipeline.blueprints.domain import (
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
from pipeline.blueprints.expressions import Each, Kind, Variable
from pipeline.blueprints.interface import LARGEST_ID, Argument, Endpoint, described, result_entity
from pipeline.blueprints.notation import Notation
from pipeline.blueprints.orm_source import OrmSource

HEAD = '''\
"""{title}.

Made by rules from the blueprint domain "{domain}" of awm-studio; no model wrote it.
"""

import os
from datetime import date, datetime, timedelta
from typing import List, Literal, Optional

from fastapi import Body, FastAPI, HTTPException, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Boolean, Column, Date, DateTime, Float, ForeignKey, Integer, String, create_engine
from sqlalchemy.orm import declarative_base, relationship, sessionmaker

DATABASE_PATH = os.getenv("DATABASE_PATH", "sqlite:///{name}.db")
engine = create_engine(DATABASE_PATH, connect_args={{"check_same_thread": False}})
SessionLocal = sessionmaker(bind=engine, expire_on_commit=False)
Base = declarative_base()

CURRENT_USER_ID = 1


def found(session, model, number, noun):
    """The row with this id, or a 404 that says what is missing."""
    row = session.get(model, number)
    if row is None:
        raise HTTPException(status_code=404, detail=f"There is no {{noun}} with id {{number}}.")
    return row


def require(allowed, reason, status_code=409):
    """Refuse with a reason unless something is allowed."""
    if not allowed:
        raise HTTPException(status_code=status_code, detail=reason)
'''

NEXT_CODE = '''

def next_code(session, column, prefix, digits):
    """The code after the highest one there is."""
    numbers = [int(code[len(prefix):]) for (code,) in session.query(column)]
    return f"{prefix}{max(numbers, default=0) + 1:0{digits}d}"
'''

AVERAGE = '''

def average(values):
    """The mean of some values, or None of none."""
    values = list(values)
    return sum(values) / len(values) if values else None
'''

TAIL = """

if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host=os.getenv("HOST", "127.0.0.1"), port=int(os.getenv("PORT", "8000")))
"""

ORM_TYPES = {
    "row": "Integer",
    "int": "Integer",
    "money": "Float",
    "real": "Float",
    "bool": "Boolean",
    "date": "Date",
    "stamp": "DateTime",
}
PYTHON_TYPES = {
    "row": "int",
    "int": "int",
    "money": "float",
    "real": "float",
    "bool": "bool",
    "date": "date",
    "stamp": "datetime",
}


def application(domain: Domain, offered: tuple[Endpoint, ...], *, name: str, title: str) -> str:
    """The source of the application."""
    return _Writer(domain, offered).source(name, title)


class _Writer:
    def __init__(self, domain: Domain, offered: tuple[Endpoint, ...]) -> None:
        self.domain, self.offered = domain, offered

    def source(self, name: str, title: str) -> str:
        models = [self.model(entity) for entity in self.domain.entities.values()]
        shapes = [self.shape(entity) for entity in self.domain.entities.values()]
        handlers = [self.handler(endpoint) for endpoint in self.offered]
        body = "".join((*models, f"\n\napp = FastAPI(title={_quoted(title)})\n", *shapes, *handlers))
        return "".join(
            (
                HEAD.format(title=title, domain=self.domain.name, name=name),
                NEXT_CODE if "next_code(" in body else "",
                AVERAGE if "average(" in body else "",
                body,
                TAIL,
            )
        )

    # Models

    def model(self, entity: Entity) -> str:
        lines = [f"\n\nclass {entity.model}(Base):", f'    __tablename__ = "{entity.table}"', ""]
        lines.append("    id = Column(Integer, primary_key=True)")
        lines += [f"    {one.column} = {self.column(one)}" for one in entity.fields.values()]
        for one in entity.fields.values():
            if one.reference:
                target = self.domain.entities[one.reference]
                remote = ", remote_side=[id]" if target is entity else ""
                lines.append(f'    {one.word} = relationship("{target.model}", foreign_keys=[{one.column}]{remote})')
        return "\n".join(lines) + "\n"

    def column(self, one: Field) -> str:
        kind = one.notation.kind
        words = [ORM_TYPES.get(kind.base, "String")]
        if one.reference:
            words.append(f'ForeignKey("{self.domain.entities[one.reference].table}.id")')
        if one.notation.unique:
            words.append("unique=True")
        if not kind.nullable:
            words.append("nullable=False")
        if one.notation.form == "stamp":
            words.append("default=datetime.utcnow")
        return f"Column({', '.join(words)})"

    def shape(self, entity: Entity) -> str:
        """The pydantic models that rows of an entity, a page of them and one in detail are given back as."""
        lines = [f"\n\nclass {entity.model}Out(BaseModel):", "    model_config = ConfigDict(from_attributes=True)", ""]
        lines.append(f'    id: int = Field(..., description="Id of the {entity.noun}")')
        for one in entity.fields.values():
            kind = python_type(one.notation.kind)
            default = "None" if one.notation.kind.nullable else "..."
            lines.append(
                f"    {one.column}: {kind} = Field({default}, description={_quoted(described(self.domain, one))})"
            )
        text = "\n".join(lines) + "\n"
        forms = {endpoint.form for endpoint in self.offered if result_entity(self.domain, endpoint) == entity.name}
        if forms & {"list", "find"}:
            text += (
                f"\n\nclass {entity.model}Page(BaseModel):\n"
                f'    total: int = Field(..., description="How many {entity.nouns} fit, before paging")\n'
                f"    {entity.table}: List[{entity.model}Out]\n"
            )
        labels = list(self.labels(entity))
        if "get" in forms and labels:
            text += f"\n\nclass {entity.model}Detail({entity.model}Out):\n"
            for name, one, label in labels:
                text += f"    {name}: Optional[str] = Field(None, description={_quoted(self.label_text(one, label))})\n"
        return text

    def labels(self, entity: Entity) -> Iterator[tuple[str, Field, Field]]:
        """What an entity's details say of the rows it refers to: (key, reference, label of what it refers to)."""
        for one in entity.fields.values():
            label = self.domain.entities[one.reference].label if one.reference else None
            if label and f"{one.word}_{label.word}" not in {other.column for other in entity.fields.values()}:
                yield f"{one.word}_{label.word}", one, label

    def label_text(self, one: Field, label: Field) -> str:
        assert one.reference
        return f"The {label.word.replace('_', ' ')} of the {self.domain.entities[one.reference].noun}"

    # Handlers

    def handler(self, endpoint: Endpoint) -> str:
        match endpoint.form:
            case "list":
                return self.list_handler(endpoint)
            case "get":
                return self.get_handler(endpoint)
            case "do":
                return self.do_handler(endpoint)
            case _:
                return self.question_handler(endpoint)

    def opening(self, endpoint: Endpoint, response: str | None) -> list[str]:
        """The decorator and the signature."""
        lines = [
            f"\n\n@app.{endpoint.method.lower()}(",
            f'    "{endpoint.path}",',
            f"    summary={_quoted(endpoint.summary)},",
            f"    description={_quoted(endpoint.description)},",
            f"    tags=[{_quoted(endpoint.group)}],",
            f'    operation_id="{endpoint.operation_id}",',
        ]
        if response:
            lines.append(f"    response_model={response},")
        lines += [")", f"async def {endpoint.operation_id}("]
        lines += [f"    {a.name}: {argument_type(a)} = {parameter(a)}," for a in (*endpoint.in_("path"),)]
        lines += [f"    {a.name}: {argument_type(a)} = {parameter(a)}," for a in endpoint.in_("query")]
        if endpoint.in_("body"):
            lines.append(f"    body: {body_model(endpoint)} = Body(...),")
        return [*lines, "):"] if endpoint.arguments else [*lines[:-1], f"async def {endpoint.operation_id}():"]

    def list_handler(self, endpoint: Endpoint) -> str:
        entity = self.domain.entities[endpoint.entity or ""]
        lines = [*self.opening(endpoint, f"{entity.model}Page"), "    with SessionLocal() as session:"]
        lines.append(f"        query = session.query({entity.model})")
        for a in endpoint.arguments:
            if a.role in ("limit", "offset"):
                continue
            column = f"{entity.model}.{entity.fields[a.field].column}"
            test = {
                "equals": f"{column} == {a.name}",
                "from": f"{column} >= {a.name}",
                "to": f"{column} <= {a.name}",
                "search": f"{column}.contains({a.name}, autoescape=True)",
            }[a.role]
            lines += [f"        if {a.name} is not None:", f"            query = query.filter({test})"]
        lines += [
            "        total = query.count()",
            f"        rows = query.order_by({entity.model}.id).offset(offset).limit(limit).all()",
            f'        return {{"total": total, "{entity.table}": rows}}',
        ]
        return "\n".join(lines) + "\n"

    def get_handler(self, endpoint: Endpoint) -> str:
        entity = self.domain.entities[endpoint.entity or ""]
        row = endpoint.arguments[0].name
        labels = list(self.labels(entity))
        response = f"{entity.model}Detail" if labels else f"{entity.model}Out"
        lines = [*self.opening(endpoint, response), "    with SessionLocal() as session:"]
        get = f'found(session, {entity.model}, {row}, "{entity.noun}")'
        if not labels:
            return "\n".join((*lines, f"        return {get}")) + "\n"
        lines += [f"        row = {get}", f"        detail = {entity.model}Out.model_validate(row).model_dump()"]
        for name, one, label in labels:
            value = f"row.{one.word}.{label.word}"
            if one.notation.kind.nullable:
                value += f" if row.{one.word} else None"
            lines.append(f'        detail["{name}"] = {value}')
        return "\n".join((*lines, "        return detail")) + "\n"

    def question_handler(self, endpoint: Endpoint) -> str:
        action = self.domain.actions[endpoint.action or ""]
        orm = OrmSource(self.domain)
        lines = self.opening(endpoint, self.question_response(endpoint))
        lines += ["    with SessionLocal() as session:", *self.arrivals(action, endpoint), *self.rules(action.rules)]
        if action.gives:
            return "\n".join((*lines, f'        return {{"value": {orm.top(action.gives.node)}}}')) + "\n"
        each = action.finds.node if action.finds else None
        assert isinstance(each, Each)
        query, test = orm.query(each)
        entity = self.domain.entities[each.entity]
        ordered = f"{query}.order_by({entity.model}.id)"
        item = orm.name(each.item)
        chosen = f"[{item} for {item} in {ordered} if {test}]" if test else f"{ordered}.all()"
        lines += [f"        rows = {chosen}", f'        return {{"total": len(rows), "{entity.table}": rows}}']
        return "\n".join(lines) + "\n"

    def question_response(self, endpoint: Endpoint) -> str | None:
        if endpoint.form == "give":
            return None
        return f"{self.domain.entities[result_entity(self.domain, endpoint) or ''].model}Page"

    def do_handler(self, endpoint: Endpoint) -> str:
        action = self.domain.actions[endpoint.action or ""]
        shown = self.domain.entities[result_entity(self.domain, endpoint) or self.domain.user]
        gone = next((e for e in action.does if isinstance(e, Delete)), None)
        text = self.body(endpoint)
        lines = self.opening(endpoint, None if gone else f"{shown.model}Out")
        lines += ["    with SessionLocal() as session:", *self.arrivals(action, endpoint), *self.rules(action.rules)]
        for number, effect in enumerate(action.does):
            lines += self.effect(effect, "        ", number, bind=effect is action.created)
        lines += self.checks(action.does)
        lines.append("        session.commit()")
        if gone:
            lines.append(f'        return {{"deleted": True, "id": {OrmSource(self.domain).value(gone.row.node)}.id}}')
        else:
            lines.append(f"        return {self.returned(action)}")
        return text + "\n".join(lines) + "\n"

    def returned(self, action: Action) -> str:
        if action.created:
            return action.created.bind or "created_row"
        return OrmSource(self.domain).name(next((p.name for p in action.takes if p.entity), "me"))

    def body(self, endpoint: Endpoint) -> str:
        """The pydantic model of the request's body."""
        arguments = endpoint.in_("body")
        if not arguments:
            return ""
        lines = [f"\n\nclass {body_model(endpoint)}(BaseModel):"]
        lines += [f"    {a.name}: {argument_type(a)} = {parameter(a)}" for a in arguments]
        return "\n".join(lines) + "\n"

    def arrivals(self, action: Action, endpoint: Endpoint) -> Iterator[str]:
        """The rows and values that a handler works with, under the names the domain file gives them."""
        by_name = {a.field: a for a in endpoint.arguments}
        if self.mentions_me(action):
            yield f"        me = session.get({self.domain.entities[self.domain.user].model}, CURRENT_USER_ID)"
        for p in action.takes:
            argument = by_name[p.name]
            source = f"body.{argument.name}" if argument.where == "body" else argument.name
            if p.entity:
                entity = self.domain.entities[p.entity]
                get = f'found(session, {entity.model}, {source}, "{entity.noun}")'
                yield f"        {OrmSource(self.domain).name(p.name)} = {get}" + (
                    f" if {source} is not None else None" if p.optional else ""
                )
            elif source != p.name:
                yield f"        {p.name} = {source}"

    def mentions_me(self, action: Action) -> bool:
        parts = [*(rule.test for rule in action.rules), *effect_expressions(action.does)]
        parts += [e for rule in action.rules for e in rule.message.expressions]
        parts += [question for question in (action.finds, action.gives) if question]
        return any("me" in part.variables for part in parts)

    def rules(self, rules: Iterable[Rule], indent: str = "        ") -> Iterator[str]:
        orm = OrmSource(self.domain)
        for rule in rules:
            status = ", 403" if rule.own else ""
            test, reason = orm.top(rule.test.node), orm.message(rule.message)
            one_line = f"{indent}require({test}, {reason}{status})"
            if len(one_line) <= 118:
                yield one_line
            else:
                yield f"{indent}require(\n{indent}    {test},\n{indent}    {reason}{status},\n{indent})"

    def effect(self, effect: Effect, indent: str, number: int, *, bind: bool = False) -> Iterator[str]:
        orm = OrmSource(self.domain)
        match effect:
            case Assign(owner, target, value):
                text = orm.top(value.node)
                if target.kind.base == "money":
                    text = f"round({text}, 2)"
                yield f"{indent}{orm.value(owner.node)}.{orm.word(target.entity, target.field)} = {text}"
            case Create(_, _, name):
                variable = name or ("created_row" if bind else f"row_{number}")
                yield from self.create(effect, indent, variable)
            case Delete(row):
                yield f"{indent}session.delete({orm.value(row.node)})"
            case When(condition, inner):
                yield f"{indent}if {orm.top(condition.node)}:"
                yield from self.effect(inner, indent + "    ", number)
            case ForEach(item, entity, condition, inner):
                node = condition.node if condition else None
                each = Each("list", item, entity, None, node, Variable(item, Kind("row", entity)), Kind("list"))
                query, test = orm.query(each)
                yield f"{indent}for {orm.name(item)} in {query}.all():"
                if test:
                    yield f"{indent}    if {test}:"
                yield from self.effect(inner, indent + ("        " if test else "    "), number)

    def create(self, create: Create, indent: str, variable: str) -> Iterator[str]:
        orm = OrmSource(self.domain)
        entity = self.domain.entities[create.entity]
        computed = [f for f in entity.fields.values() if f.notation.formula and not f.notation.deferred]
        yield f"{indent}{variable} = {entity.model}("
        for name, one in entity.fields.items():
            if name in create.values:
                yield f"{indent}    {one.word}={orm.top(create.values[name].node)},"
            elif one not in computed and (value := self.filled(entity, one)) is not None:
                yield f"{indent}    {one.word}={value},"
        yield f"{indent})"
        for one in computed:
            assert one.notation.formula
            formula = substitute_own(one.notation, entity.name, variable)
            yield f"{indent}{variable}.{one.word} = {orm.top(formula)}"
        yield f"{indent}session.add({variable})"
        yield f"{indent}session.flush()"

    def filled(self, entity: Entity, one: Field) -> str | None:
        """What a new row gets in a field that the action does not give; None where the column sees to it."""
        match one.notation.form:
            case "code":
                prefix, _, digits = one.notation.pattern.partition("#")
                return f'next_code(session, {entity.model}.{one.column}, "{prefix}", {len(digits) + 1})'
            case "state":
                return _quoted(one.notation.kind.choices[0])
            case "bool":
                return "False"
            case "computed":
                return "0"
        return None

    def checks(self, does: Iterable[Effect]) -> Iterator[str]:
        """The rules of the data that an action may have broken, tested before anything is kept."""
        touched: dict[tuple[str, str | None], set[str]] = {}
        for effect in does:
            self.touched(effect, touched, bind=True)
        lines: list[str] = []
        for (entity_name, row), fields in touched.items():
            entity = self.domain.entities[entity_name]
            rules = [rule for rule in entity.rules if not fields or rule.needs & fields]
            if not rules:
                continue
            own = OrmSource(self.domain).name(entity_name)
            if row is None:
                lines.append(f"        for {own} in session.query({entity.model}).all():")
                lines += self.rules(rules, "            ")
            else:
                if row != own:
                    lines.append(f"        {own} = {row}")
                lines += self.rules(rules)
        if lines:
            yield "        session.flush()"
            yield from lines

    def touched(self, effect: Effect, found: dict[tuple[str, str | None], set[str]], *, bind: bool) -> None:
        """The rows an effect touches, by entity and variable (None: any of its rows), and which fields it sets.

        No fields means that all of a row is new.
        """
        match effect:
            case Assign(owner, target):
                fields = found.setdefault((target.entity, OrmSource(self.domain).value(owner.node)), set())
                fields.add(f"{target.entity}.{target.field}")
            case Create(entity, _, name):
                found[entity, name or ("created_row" if bind else None)] = set()
            case When(_, inner):
                self.touched(inner, found, bind=False)
            case ForEach(_, _, _, Assign(_, target)):
                found.setdefault((target.entity, None), set()).add(f"{target.entity}.{target.field}")
            case ForEach(_, _, _, Create(entity)):
                found[entity, None] = set()
            case _:
                pass


def substitute_own(notation: Notation, own: str, variable: str):
    """A computed field's formula over the row that a variable holds."""
    from pipeline.blueprints.expressions import substitute

    assert notation.formula
    return substitute(notation.formula.node, {own: Variable(variable, Kind("row", own))})


def effect_expressions(does: Iterable[Effect]) -> Iterator:
    """Every expression within effects."""
    for effect in does:
        match effect:
            case Assign(owner, _, value):
                yield from (owner, value)
            case Create(_, values):
                yield from values.values()
            case Delete(row):
                yield row
            case When(condition, inner):
                yield condition
                yield from effect_expressions((inner,))
            case ForEach(_, _, condition, inner):
                if condition:
                    yield condition
                yield from effect_expressions((inner,))


def body_model(endpoint: Endpoint) -> str:
    """The name of an operation's request model."""
    return "".join(part.capitalize() for part in endpoint.operation_id.split("_")) + "Request"


def python_type(kind: Kind) -> str:
    """The annotation of a value."""
    text = (
        f"Literal[{', '.join(_quoted(choice) for choice in kind.choices)}]"
        if kind.choices
        else PYTHON_TYPES.get(kind.base, "str")
    )
    return f"Optional[{text}]" if kind.nullable else text


def argument_type(a: Argument) -> str:
    """The annotation of an argument."""
    if a.role == "search":
        return "Optional[str]"
    kind = Kind(a.notation.kind.base, "", a.notation.kind.choices, nullable=False)
    return python_type(kind) if a.required or a.role in ("limit", "offset") else f"Optional[{python_type(kind)}]"


def parameter(a: Argument) -> str:
    """The Path(…), Query(…) or Field(…) of an argument."""
    function = {"path": "Path", "query": "Query", "body": "Field"}[a.where]
    default = "..." if a.required else {"limit": "50", "offset": "0"}.get(a.role, "None")
    words = [default, f"description={_quoted(a.description)}", *_bounds(a)]
    return f"{function}({', '.join(words)})"


def _bounds(a: Argument) -> Iterator[str]:
    """Limits that no sensible value breaks: the rules of the domain are said by the domain."""
    notation = a.notation
    if a.role in ("limit", "offset"):
        yield f"ge={int(notation.low)}, le={int(notation.high)}"
    elif notation.kind.base == "row" or a.role == "row":
        yield f"ge=1, le={LARGEST_ID}"
    elif notation.kind.base in ("int", "money", "real"):
        low = -1_000_000 if notation.low < 0 else 0
        yield f"ge={low}, le=1000000"
    elif notation.kind.base == "time":
        yield 'pattern=r"^([01]\\d|2[0-3]):[0-5]\\d$"'
    elif notation.kind.base == "text" and a.role != "search":
        yield "min_length=1, max_length=200"


def _quoted(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)
