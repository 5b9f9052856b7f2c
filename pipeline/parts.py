"""Part contents as text, and the typed view of them.

Structured parts are JSON in one canonical spelling (compact, keys in the order given), so that the same value is
the same content whatever its white space. Reading is lenient: what a generator wrote with a wrong type is left out
of the view and named in `problems`, never raised, because the rest of the environment is still worth having.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from pipeline.errors import UserError
from pipeline.model import (
    Call,
    Mode,
    Operation,
    Part,
    Solution,
    TableRows,
    TableSchema,
    Verifier,
)

SOURCE_PARTS = frozenset({Part.code, Part.verifier})
"""Parts whose content is source text; all others are JSON."""

_TOP = {
    Part.scenario: dict,
    Part.tasks: list,
    Part.schema: dict,
    Part.sample: dict,
    Part.spec: dict,
    Part.solution: dict,
}
_WORDS = {
    dict: "an object",
    list: "a list",
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


def kind_of(value: object) -> str:
    """A JSON value's type in words, for messages: "an object", "text", "null" …"""
    return _WORDS.get(type(value), "null")


def dumps(value: object) -> str:
    """The canonical JSON text of a value."""
    return orjson.dumps(value).decode()


def canonical(part: Part, content: str) -> str:
    """A part's content in the spelling it is stored in.

    Raises UserError where a structured part is not JSON or not of the kind the part needs.
    """
    if part in SOURCE_PARTS:
        return content
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise UserError(f"The {part} is not JSON: {error}.") from None
    if not isinstance(value, _TOP[part]):
        raise UserError(f"The {part} must be {_WORDS[_TOP[part]]}, not {kind_of(value)}.")
    return dumps(value)


def verifier_slot(task: int, mode: Mode) -> str:
    """The slot a verifier is kept under: "3/code"."""
    return f"{task}/{mode}"


def read_tasks(value: list[Any], problems: list[str]) -> tuple[str, ...]:
    """The instructions, in order. One that is not text is shown as its JSON, so that the others keep their number."""
    tasks = []
    for number, task in enumerate(value):
        if not isinstance(task, str):
            problems.append(f"tasks[{number}] is {kind_of(task)}, not text")
        tasks.append(task if isinstance(task, str) else dumps(task))
    return tuple(tasks)


def read_schema(value: Mapping[str, Any], problems: list[str]) -> tuple[TableSchema, ...]:
    """The tables' DDL, in order."""
    return tuple(
        TableSchema(table["name"], table["ddl"], _texts(table, "indexes", where, problems))
        for where, table in _objects(value, "tables", "", problems)
        if _has_texts(table, ("name", "ddl"), where, problems)
    )


def read_sample(value: Mapping[str, Any], problems: list[str]) -> tuple[TableRows, ...]:
    """The tables' INSERT statements, in order."""
    return tuple(
        TableRows(table["table_name"], _texts(table, "insert_statements", where, problems))
        for where, table in _objects(value, "tables", "", problems)
        if _has_texts(table, ("table_name",), where, problems)
    )


def read_spec(value: Mapping[str, Any], problems: list[str]) -> tuple[Operation, ...]:
    """The operations of all groups, in order."""
    return tuple(
        Operation(
            operation_id=endpoint["operation_id"],
            method=endpoint["method"].upper(),
            path=endpoint["path"],
            group=_text(group, "group_name", at, problems),
            summary=_text(endpoint, "summary", where, problems),
            description=_text(endpoint, "description", where, problems),
            parameters=_object(endpoint, "request_params", where, problems),
            response=_object(endpoint, "response", where, problems),
            tables=_texts(endpoint, "required_tables", where, problems),
            fields=_object(endpoint, "required_fields", where, problems),
        )
        for at, group in _objects(value, "api_groups", "", problems)
        for where, endpoint in _objects(group, "endpoints", f"{at}.", problems)
        if _has_texts(endpoint, ("operation_id", "method", "path"), where, problems)
    )


def read_solution(task: int, value: Mapping[str, Any], problems: list[str]) -> Solution:
    """The calls and the answer that solve a task."""
    calls = tuple(
        Call(call["tool"], _object(call, "arguments", where, problems))
        for where, call in _objects(value, "calls", "", problems)
        if _has_texts(call, ("tool",), where, problems)
    )
    return Solution(task, calls, _text(value, "answer", "", problems) if value.get("answer") is not None else None)


def read_view(contents: Mapping[tuple[Part, str], str]) -> dict[str, Any]:
    """The fields of `Environment` that an environment's part contents give, by (part, slot)."""
    problems: list[str] = []
    fields: dict[str, Any] = {"verifiers": [], "solutions": []}
    for (part, slot), content in contents.items():
        value: Any = content if part in SOURCE_PARTS else orjson.loads(content)
        match part:
            case Part.scenario:
                fields["description"] = _text(value, "description", "", problems)
            case Part.tasks:
                fields["tasks"] = read_tasks(value, problems)
            case Part.schema:
                fields["schema"] = read_schema(value, problems)
            case Part.sample:
                fields["sample"] = read_sample(value, problems)
            case Part.spec:
                fields["operations"] = read_spec(value, problems)
            case Part.code:
                fields["code"] = value
            case Part.verifier:
                task, mode = slot.split("/")
                fields["verifiers"].append(Verifier(int(task), Mode(mode), value))
            case Part.solution:
                fields["solutions"].append(read_solution(int(slot), value, problems))
    fields["verifiers"] = tuple(sorted(fields["verifiers"], key=lambda v: (v.task, v.mode)))
    fields["solutions"] = tuple(sorted(fields["solutions"], key=lambda s: s.task))
    return fields


def _objects(
    holder: Mapping[str, Any], key: str, where: str, problems: list[str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects in a list field, with where each one stands ("tables[3]")."""
    items = holder.get(key, [])
    if not isinstance(items, list):
        problems.append(f"{where}{key} is {kind_of(items)}, not a list")
        return
    for number, item in enumerate(items):
        if isinstance(item, dict):
            yield f"{where}{key}[{number}]", item
        else:
            problems.append(f"{where}{key}[{number}] is {kind_of(item)}, not an object")


def _has_texts(item: Mapping[str, Any], keys: tuple[str, ...], where: str, problems: list[str]) -> bool:
    wrong = [key for key in keys if not isinstance(item.get(key), str)]
    for key in wrong:
        problems.append(f"{where}.{key} is {kind_of(item[key]) + ', not text' if key in item else 'missing'}")
    return not wrong


def _text(item: Mapping[str, Any], key: str, where: str, problems: list[str]) -> str:
    value = item.get(key)
    if value is None or isinstance(value, str):
        return value or ""
    problems.append(f"{where}{'.' if where else ''}{key} is {kind_of(value)}, not text")
    return ""


def _texts(item: Mapping[str, Any], key: str, where: str, problems: list[str]) -> tuple[str, ...]:
    value = item.get(key)
    if value is None:
        return ()
    if not isinstance(value, list):
        problems.append(f"{where}.{key} is {kind_of(value)}, not a list")
        return ()
    for number, text in enumerate(value):
        if not isinstance(text, str):
            problems.append(f"{where}.{key}[{number}] is {kind_of(text)}, not text")
    return tuple(text for text in value if isinstance(text, str))


def _object(item: Mapping[str, Any], key: str, where: str, problems: list[str]) -> Mapping[str, Any]:
    value = item.get(key)
    if value is None or isinstance(value, dict):
        return value or {}
    problems.append(f"{where}.{key} is {kind_of(value)}, not an object")
    return {}
