"""The operations of a variant: a list of every record, one record of some, and every action of the domain."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from pipeline.blueprints.language.domain import Action, Delete, Domain, Entity, Field
from pipeline.blueprints.language.expressions import Kind
from pipeline.blueprints.language.notation import Notation
from pipeline.blueprints.rows.seeding import TODAY
from pipeline.blueprints.tasks.wording import said, spoken
from pipeline.blueprints.variant import Size, Style
from pipeline.model import Operation

TOOLS: Mapping[Size, tuple[int, int]] = {"small": (12, 20), "paper": (32, 36)}
"""How many tools an environment has. AWM's have about 35 on average (arXiv 2602.10090)."""

Role = Literal["value", "row", "equals", "from", "to", "search", "limit", "offset"]

LARGEST_ID = 2**31 - 1
"""Ids above this are refused as invalid; SQLite would take eight bytes, and Python's larger numbers would fail."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of an operation. `role` says what the handler does with it, `field` which field a filter is on."""

    name: str
    where: Literal["path", "query", "body"]
    notation: Notation
    required: bool
    description: str
    role: Role
    field: str = ""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One operation, with what its handler is written from."""

    operation_id: str
    method: str
    path: str
    group: str
    summary: str
    description: str
    form: Literal["list", "get", "do", "find", "give"]
    entity: str | None
    action: str | None
    arguments: tuple[Argument, ...]

    def in_(self, where: str) -> tuple[Argument, ...]:
        """The arguments in one place (path, query or body)."""
        return tuple(argument for argument in self.arguments if argument.where == where)

    def filter(self, field: str, role: Role = "equals") -> str | None:
        """The argument of a list that filters by a field."""
        return next((a.name for a in self.arguments if a.role == role and a.field == field), None)


def endpoints(domain: Domain, style: Style, size: Size, rng: random.Random) -> tuple[Endpoint, ...]:
    """All operations, in the order of the file; single records only while there is room for their tools."""
    lists = [_list(domain, entity, style) for entity in domain.entities.values()]
    paths: set[tuple[str, str]] = set()
    doing = [_action(domain, action, style, paths) for action in domain.actions.values()]
    room = rng.randint(*TOOLS[size]) - len(lists) - len(doing)
    taken = [p.entity for action in domain.actions.values() for p in action.takes if p.entity]
    useful = sorted(domain.entities, key=lambda name: (-taken.count(name), list(domain.entities).index(name)))
    single = set(useful[: max(0, min(room, len(set(taken)) if size == "small" else room))])
    gets = [_get(domain, entity, style) for entity in domain.entities.values() if entity.name in single]
    return (*lists, *gets, *doing)


def _list(domain: Domain, entity: Entity, style: Style) -> Endpoint:
    filters = tuple(_filters(domain, entity))
    words = f"{entity.nouns[0].upper()}{entity.nouns[1:]}, oldest first"
    paging = (
        Argument("limit", "query", _whole(1, 200), False, "At most this many (50 if not given)", "limit"),
        Argument("offset", "query", _whole(0, LARGEST_ID), False, "Leave out this many at the start", "offset"),
    )
    return Endpoint(
        f"{style.listing}_{entity.table}",
        "GET",
        f"{style.root}/{entity.table}",
        entity.table,
        f"{style.listing.capitalize()} {entity.nouns}",
        f"{words}; every filter that is given must fit. The total is counted before paging.",
        "list",
        entity.name,
        None,
        filters + paging,
    )


def _filters(domain: Domain, entity: Entity) -> Iterator[Argument]:
    label = entity.label
    if label:
        yield Argument(
            "search", "query", label.notation, False, f"Part of the {spoken(label.word)}", "search", label.name
        )
    dates = 0
    for one in entity.fields.values():
        base = one.notation.kind.base
        if base in {"choice", "bool"}:
            text = f"Only those whose {spoken(one.word)} is this"
            yield Argument(one.column, "query", one.notation, False, text, "equals", one.name)
        elif one.reference:
            text = f"Only those of the {domain.entities[one.reference].noun} with this id"
            yield Argument(one.column, "query", one.notation, False, text, "equals", one.name)
        elif base == "date" and dates < 2:
            dates += 1
            for role, word in (("from", "or later"), ("to", "or earlier")):
                text = f"Only those whose {spoken(one.word)} is this day {word}"
                yield Argument(f"{one.column}_{role}", "query", one.notation, False, text, role, one.name)


def _get(domain: Domain, entity: Entity, style: Style) -> Endpoint:
    row = Argument(f"{entity.word}_id", "path", _whole(1, LARGEST_ID), True, f"The {entity.noun}'s id", "row")
    return Endpoint(
        f"{style.reading}_{entity.word}",
        "GET",
        f"{style.root}/{entity.table}/{{{row.name}}}",
        entity.table,
        f"{style.reading.capitalize()} one {entity.noun}",
        f"One {entity.noun} by its id, with the names of what it refers to.",
        "get",
        entity.name,
        None,
        (row,),
    )


def _action(domain: Domain, action: Action, style: Style, paths: set[tuple[str, str]]) -> Endpoint:
    says = said(domain, action.says)
    owner = next((p for p in action.takes if p.entity and not p.optional), None)
    if not action.does:
        form = "find" if action.finds else "give"
        path = f"{style.root}/{action.word.replace('_', '-')}"
        arguments = tuple(_argument(domain, action, p.name, "query") for p in action.takes)
        group = domain.entities[action.finds.kind.entity].table if action.finds else _group(domain, action)
        return Endpoint(action.word, "GET", path, group, says, f"{says}.", form, None, action.name, arguments)
    method, tail = "POST", action.word.replace("_", "-")
    if owner is None:
        path = f"{style.root}/{domain.entities[action.created.entity].table if action.created else tail}"
    else:
        assert owner.entity
        entity = domain.entities[owner.entity]
        path = f"{style.root}/{entity.table}/{{{owner.argument}}}"
        short = tail.replace(f"-{entity.word.replace('_', '-')}", "") or tail
        if len(action.takes) == 1 and any(isinstance(effect, Delete) for effect in action.does):
            method = "DELETE"
        else:
            path += f"/{short if ('POST', f'{path}/{short}') not in paths else tail}"
    if (method, path) in paths:
        path += f"/{tail}"
    paths.add((method, path))
    arguments = tuple(_argument(domain, action, p.name, "path" if p is owner else "body") for p in action.takes)
    refused = ". It is refused, with the reason, where a rule does not allow it." if action.rules else "."
    return Endpoint(
        action.word, method, path, _group(domain, action), says, says + refused, "do", None, action.name, arguments
    )


def _group(domain: Domain, action: Action) -> str:
    rows = [p.entity for p in action.takes if p.entity]
    name = rows[0] if rows else action.created.entity if action.created else domain.subject
    return domain.entities[name].table


def _argument(domain: Domain, action: Action, name: str, where: Literal["path", "query", "body"]) -> Argument:
    parameter = next(p for p in action.takes if p.name == name)
    if parameter.entity:
        text = f"Id of the {domain.entities[parameter.entity].noun}"
    else:
        text = spoken(parameter.word)[0].upper() + spoken(parameter.word)[1:] + _format_hint(parameter.notation)
    role: Role = "row" if parameter.entity else "value"
    return Argument(parameter.argument, where, parameter.notation, not parameter.optional, text, role, name)


def _format_hint(notation: Notation) -> str:
    return {"date": ", as YYYY-MM-DD", "time": ", as HH:MM"}.get(notation.kind.base, "")


def _whole(low: int, high: int) -> Notation:
    return Notation("int", Kind("int"), low, high)


# The spec, as AWM writes it

JSON_TYPES = {"row": "integer", "int": "integer", "money": "number", "real": "number", "bool": "boolean"}
"""The JSON type of a value by kind; everything else is a string."""


def operations(domain: Domain, offered: tuple[Endpoint, ...]) -> tuple[Operation, ...]:
    """The API spec's operations, group by group."""
    groups = list(dict.fromkeys(endpoint.group for endpoint in offered))
    return tuple(_operation(domain, e) for e in sorted(offered, key=lambda endpoint: groups.index(endpoint.group)))


def _operation(domain: Domain, endpoint: Endpoint) -> Operation:
    tables = _tables(domain, endpoint)
    return Operation(
        operation_id=endpoint.operation_id,
        method=endpoint.method,
        path=endpoint.path,
        group=endpoint.group,
        summary=endpoint.summary,
        description=endpoint.description,
        parameters={
            a.name: {
                "type": JSON_TYPES.get(a.notation.kind.base, "string") if a.role != "search" else "string",
                "param_type": a.where,
                "required": a.required,
                "description": a.description,
                "example": example(a.notation),
            }
            for a in endpoint.arguments
        },
        response=_response(domain, endpoint),
        tables=tuple(domain.entities[name].table for name in tables),
        fields={
            domain.entities[n].table: ["id", *(f.column for f in domain.entities[n].fields.values())] for n in tables
        },
    )


def _tables(domain: Domain, endpoint: Endpoint) -> list[str]:
    """The entities an operation reads or writes, the one it is about first."""
    if endpoint.entity:
        return [endpoint.entity]
    assert endpoint.action
    action = domain.actions[endpoint.action]
    needs = [p.entity for p in action.takes if p.entity]
    parts = [*action.does, *action.rules, *(part for part in (action.finds, action.gives) if part)]
    needs += [name for part in parts for name in sorted(part.needs) if "." not in name]
    if action.created:
        needs.insert(0, action.created.entity)
    return list(dict.fromkeys(need for need in needs if need))


def result_entity(domain: Domain, endpoint: Endpoint) -> str | None:
    """The entity of the row (or rows) an operation gives back; None for a single value."""
    if endpoint.entity:
        return endpoint.entity
    assert endpoint.action
    action = domain.actions[endpoint.action]
    if action.created:
        return action.created.entity
    if action.does:
        return next((p.entity for p in action.takes if p.entity), None)
    return action.finds.kind.entity if action.finds else None


def _response(domain: Domain, endpoint: Endpoint) -> dict[str, Any]:
    if endpoint.form == "give":
        action = domain.actions[endpoint.action or ""]
        assert action.gives
        return {"value": {"type": JSON_TYPES.get(action.gives.kind.base, "string"), "description": endpoint.summary}}
    name = result_entity(domain, endpoint)
    assert name
    entity = domain.entities[name]
    row = {"id": {"type": "integer", "description": f"Id of the {entity.noun}", "example": 1}}
    row |= {
        one.column: {
            "type": JSON_TYPES.get(one.notation.kind.base, "string"),
            "description": described(domain, one),
            "example": example(one.notation),
        }
        for one in entity.fields.values()
    }
    if endpoint.form in ("list", "find"):
        return {"total": {"type": "integer"}, entity.table: {"type": "array", "items": row}}
    return row


def described(domain: Domain, one: Field) -> str:
    """A field in words."""
    if one.reference:
        return f"Id of the {domain.entities[one.reference].noun} it refers to"
    text = spoken(one.word)
    return text[0].upper() + text[1:] + _format_hint(one.notation)


def example(notation: Notation) -> Any:
    """A value such as the notation gives."""
    match notation.form:
        case "int" | "row":
            return max(1, int(notation.low))
        case "money" | "real":
            return round(notation.low + notation.step, 2)
        case "date":
            return (TODAY + timedelta(days=int(notation.low))).isoformat()
        case "time":
            return f"{int(notation.low) // 60:02d}:{int(notation.low) % 60:02d}"
        case "one of" | "state":
            return notation.kind.choices[0]
        case "text":
            return notation.phrases[0]
        case "person" | "somebody":
            return "Ada Winter"
        case "bool":
            return True
        case "stamp":
            return f"{TODAY.isoformat()} 09:00:00"
        case "code":
            return notation.pattern.replace("#", "1")
        case "computed":
            return {"int": 1, "money": 1.5, "real": 1.5, "bool": True}.get(notation.kind.base, notation.kind.base)
        case form:
            return form.capitalize()
