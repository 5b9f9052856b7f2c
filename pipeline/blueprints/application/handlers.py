"""The handlers of an application: a list, one record, a question, or an action with its rules and effects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pipeline.blueprints.application.effect_source import EffectSource, expressions_in
from pipeline.blueprints.application.interface import LARGEST_ID, Argument, Endpoint, result_entity
from pipeline.blueprints.application.orm_source import OrmSource
from pipeline.blueprints.language.domain import Action, Delete, Domain, Entity, Field, Rule
from pipeline.blueprints.language.expressions import Comparison, Each, Kind, Membership, Negation, Node
from pipeline.blueprints.verifiers.goal_source import quoted

PYTHON_TYPES = {
    "row": "int",
    "int": "int",
    "money": "float",
    "real": "float",
    "bool": "bool",
    "date": "date",
    "stamp": "datetime",
}
"""The annotation of a value by kind; everything else is a str."""


def handler(domain: Domain, endpoint: Endpoint) -> str:
    """The source of an operation's handler, with the model of its request."""
    write = {"list": _list, "get": _get, "do": _do, "find": _find, "give": _give}[endpoint.form]
    return "\n".join((*_request(endpoint), *write(domain, endpoint))) + "\n"


def _list(domain: Domain, endpoint: Endpoint) -> Iterator[str]:
    entity = domain.entities[endpoint.entity or ""]
    yield from _opening(endpoint, f"{entity.model}Page")
    yield f"        query = session.query({entity.model})"
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
        yield f"        if {a.name} is not None:"
        yield f"            query = query.filter({test})"
    yield "        total = query.count()"
    yield f"        rows = query.order_by({entity.model}.id).offset(offset).limit(limit).all()"
    yield f'        return {{"total": total, "{entity.table}": rows}}'


def _get(domain: Domain, endpoint: Endpoint) -> Iterator[str]:
    entity = domain.entities[endpoint.entity or ""]
    labels = detail_labels(domain, entity)
    found = f'found(session, {entity.model}, {endpoint.arguments[0].name}, "{entity.noun}")'
    yield from _opening(endpoint, f"{entity.model}Detail" if labels else f"{entity.model}Out")
    if not labels:
        yield f"        return {found}"
        return
    yield f"        row = {found}"
    yield f"        detail = {entity.model}Out.model_validate(row).model_dump()"
    for name, one, label in labels:
        absent = f" if row.{one.word} else None" if one.notation.kind.nullable else ""
        yield f'        detail["{name}"] = row.{one.word}.{label.word}{absent}'
    yield "        return detail"


def detail_labels(domain: Domain, entity: Entity) -> list[tuple[str, Field, Field]]:
    """What an entity's details say of the rows it refers to: (key, reference, label of what it refers to)."""
    columns = {one.column for one in entity.fields.values()}
    found: list[tuple[str, Field, Field]] = []
    for one in entity.fields.values():
        label = domain.entities[one.reference].label if one.reference else None
        if label and f"{one.word}_{label.word}" not in columns:
            found.append((f"{one.word}_{label.word}", one, label))
    return found


def _find(domain: Domain, endpoint: Endpoint) -> Iterator[str]:
    action, orm = domain.actions[endpoint.action or ""], OrmSource(domain)
    each = action.finds.node if action.finds else None
    assert isinstance(each, Each)
    entity = domain.entities[each.entity]
    query, test = orm.query(each)
    ordered, item = f"{query}.order_by({entity.model}.id)", orm.name(each.item)
    yield from _opening(endpoint, f"{entity.model}Page")
    yield from _arrivals(domain, action, endpoint)
    yield from refusals(orm, action.rules)
    yield f"        rows = [{item} for {item} in {ordered} if {test}]" if test else f"        rows = {ordered}.all()"
    yield f'        return {{"total": len(rows), "{entity.table}": rows}}'


def _give(domain: Domain, endpoint: Endpoint) -> Iterator[str]:
    action, orm = domain.actions[endpoint.action or ""], OrmSource(domain)
    assert action.gives
    yield from _opening(endpoint, None)
    yield from _arrivals(domain, action, endpoint)
    yield from refusals(orm, action.rules)
    yield f'        return {{"value": {orm.top(action.gives.node)}}}'


def _do(domain: Domain, endpoint: Endpoint) -> Iterator[str]:
    action, orm = domain.actions[endpoint.action or ""], OrmSource(domain)
    shown = domain.entities[result_entity(domain, endpoint) or domain.user]
    gone = next((effect for effect in action.does if isinstance(effect, Delete)), None)
    yield from _opening(endpoint, None if gone else f"{shown.model}Out")
    yield from _arrivals(domain, action, endpoint)
    yield from refusals(orm, action.rules)
    source = EffectSource(domain, action)
    yield from source.lines()
    if checks := source.checks():
        yield "        session.flush()"
        for check in checks:
            yield from check.opening
            yield from refusals(orm, check.rules, check.indent)
    if gone:
        yield f"        gone = {orm.value(gone.row.node)}.id"
    yield "        session.commit()"
    if gone:
        yield '        return {"deleted": True, "id": gone}'
    else:
        first = next((p.name for p in action.takes if p.entity), "me")
        yield f"        return {source.created or orm.name(first)}"


def _arrivals(domain: Domain, action: Action, endpoint: Endpoint) -> Iterator[str]:
    """The rows and values that a handler works with, under the names the domain file gives them."""
    orm, by_name = OrmSource(domain), {a.field: a for a in endpoint.arguments}
    mentioned = {name for expression in expressions_in(action) for name in expression.variables}
    gives_back_me = bool(action.does) and not action.created and not any(p.entity for p in action.takes)
    if "me" in mentioned or gives_back_me:
        yield f"        me = session.get({domain.entities[domain.user].model}, CURRENT_USER_ID)"
    for p in action.takes:
        argument = by_name[p.name]
        source = f"body.{argument.name}" if argument.where == "body" else argument.name
        if p.entity:
            entity = domain.entities[p.entity]
            found = f'found(session, {entity.model}, {source}, "{entity.noun}")'
            absent = f" if {source} is not None else None" if p.optional else ""
            yield f"        {orm.name(p.name)} = {found}{absent}"
        elif source != p.name:
            yield f"        {p.name} = {source}"


def refusals(orm: OrmSource, rules: Iterable[Rule], indent: str = "        ") -> Iterator[str]:
    """A refusal with its reason for each rule that does not hold."""
    for rule in rules:
        yield f"{indent}if {orm.top(negated(rule.test.node))}:"
        status, reason = 403 if rule.own else 409, orm.message(rule.message)
        yield f"{indent}    raise HTTPException(status_code={status}, detail={reason})"


def negated(node: Node) -> Node:
    """The opposite of a condition, said as plainly as it can be."""
    match node:
        case Negation(part):
            return part
        case Comparison(op, left, right):
            return Comparison(_OPPOSITE[op], left, right)
        case Membership(left, (choice,)):
            return Comparison("!=", left, choice)
        case _:
            return Negation(node)


_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def _opening(endpoint: Endpoint, response: str | None) -> Iterator[str]:
    """The decorator, the signature, and the session."""
    yield f"\n\n@app.{endpoint.method.lower()}("
    yield f'    "{endpoint.path}",'
    yield f"    summary={quoted(endpoint.summary)},"
    yield f"    description={quoted(endpoint.description)},"
    yield f"    tags=[{quoted(endpoint.group)}],"
    yield f'    operation_id="{endpoint.operation_id}",'
    if response:
        yield f"    response_model={response},"
    yield ")"
    if endpoint.arguments:
        yield f"async def {endpoint.operation_id}("
        for a in (*endpoint.in_("path"), *endpoint.in_("query")):
            yield f"    {a.name}: {_annotation(a)} = {_parameter(a)},"
        if endpoint.in_("body"):
            yield f"    body: {_request_model(endpoint)} = Body(...),"
        yield "):"
    else:
        yield f"async def {endpoint.operation_id}():"
    yield "    with SessionLocal() as session:"


def _request(endpoint: Endpoint) -> Iterator[str]:
    """The pydantic model of the request's body."""
    arguments = endpoint.in_("body")
    if arguments:
        yield f"\n\nclass {_request_model(endpoint)}(BaseModel):"
        yield from (f"    {a.name}: {_annotation(a)} = {_parameter(a)}" for a in arguments)


def _request_model(endpoint: Endpoint) -> str:
    return "".join(part.capitalize() for part in endpoint.operation_id.split("_")) + "Request"


def python_type(kind: Kind) -> str:
    """The annotation of a value."""
    text = PYTHON_TYPES.get(kind.base, "str")
    if kind.choices:
        text = f"Literal[{', '.join(quoted(choice) for choice in kind.choices)}]"
    return f"Optional[{text}]" if kind.nullable else text


def _annotation(a: Argument) -> str:
    if a.role == "search":
        return "Optional[str]"
    optional = not a.required and a.role not in ("limit", "offset")
    return python_type(Kind(a.notation.kind.base, "", a.notation.kind.choices, nullable=optional))


def _parameter(a: Argument) -> str:
    """The Path(…), Query(…) or Field(…) of an argument."""
    function = {"path": "Path", "query": "Query", "body": "Field"}[a.where]
    default = "..." if a.required else {"limit": "50", "offset": "0"}.get(a.role, "None")
    return f"{function}({', '.join((default, f'description={quoted(a.description)}', *_bounds(a)))})"


def _bounds(a: Argument) -> Iterator[str]:
    """Limits that no sensible value breaks: the rules of the domain are said by the domain."""
    notation = a.notation
    if a.role in ("limit", "offset"):
        yield f"ge={int(notation.low)}, le={int(notation.high)}"
    elif notation.kind.base == "row" or a.role == "row":
        yield f"ge=1, le={LARGEST_ID}"
    elif notation.kind.base in ("int", "money", "real"):
        yield f"ge={-1_000_000 if notation.low < 0 else 0}, le=1000000"
    elif notation.kind.base == "time":
        yield 'pattern=r"^([01]\\d|2[0-3]):[0-5]\\d$"'
    elif notation.kind.base == "text" and a.role != "search":
        yield "min_length=1, max_length=200"
