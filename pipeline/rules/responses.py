"""Rules about replies: they are what the spec, and the application's own response models, promise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipeline.findings import Finding
from pipeline.model import Operation
from pipeline.rules.called import Called

SHOWN = 5
"""Differences that one finding lists."""

TYPES: Mapping[str, tuple[type, ...]] = {
    "integer": (int,),
    "int": (int,),
    "number": (int, float),
    "float": (int, float),
    "string": (str,),
    "boolean": (bool,),
    "bool": (bool,),
    "array": (list,),
    "object": (dict,),
}
"""The Python types of decoded JSON, by the words specs use. Other words (datetime, date) promise nothing here."""


def response_findings(operations: Iterable[Operation], made: Iterable[Called]) -> Iterator[Finding]:
    """Replies that lack a field the spec promises, or have another type there: one finding for each tool."""
    declared = {operation.operation_id: operation.response for operation in operations}
    told = set()
    for called in made:
        promised = declared.get(called.tool.operation_id)
        if not promised or not called.reply.ok or called.tool.name in told or called.reply.body_json is None:
            continue
        problems = list(dict.fromkeys(differences(called.reply.body, promised)))
        if problems:
            told.add(called.tool.name)
            more = f", and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
            yield Finding(
                "response_differs",
                "warn",
                f"code: {called.tool.name}",
                f"{called.tool.name} answers something else than its spec promises: "
                f"{'; '.join(problems[:SHOWN])}{more}",
                evidence=called.shown,
                remedy="return what the spec promises, or correct the spec: agents are told what it says",
            )


def differences(body: Any, promised: Mapping[str, Any]) -> Iterator[str]:
    """How a reply differs from a spec's `response`: its fields, or one schema with a `type`."""
    if isinstance(promised.get("type"), str):
        yield from _of_schema(body, promised, "the reply")
    else:
        yield from _of_fields(body, promised, "the reply")


def _of_schema(value: Any, schema: Mapping[str, Any], where: str) -> Iterator[str]:
    """NULL is taken for any type: specs have no word for what may be missing."""
    kind = schema.get("type")
    types = TYPES.get(kind) if isinstance(kind, str) else None
    if value is None or types is None:
        return
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        yield f"{where} is {_kind(value)}, not {kind}"
    elif isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, Mapping) and items:
            is_schema = isinstance(items.get("type"), str)
            for item in value:
                yield from (_of_schema if is_schema else _of_fields)(item, items, f"{where}[]")
    elif isinstance(value, dict) and isinstance(schema.get("properties"), Mapping):
        yield from _of_fields(value, schema["properties"], where)


def _of_fields(value: Any, fields: Mapping[str, Any], where: str) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, dict):
        yield f"{where} is {_kind(value)}, not object"
        return
    for name, schema in fields.items():
        at = name if where == "the reply" else f"{where}.{name}"
        if name not in value:
            yield f"{at} is missing"
        elif isinstance(schema, Mapping):
            yield from _of_schema(value[name], schema, at)


def _kind(value: Any) -> str:
    names: Sequence[tuple[type, str]] = (
        (bool, "boolean"),
        (int, "integer"),
        (float, "number"),
        (str, "string"),
        (list, "array"),
        (dict, "object"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "null")
