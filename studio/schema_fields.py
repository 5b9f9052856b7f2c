"""A tool's JSON schema as a person meets it: fields to read, fields to fill in."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MISSING = object()
"""The default of a field that has none (None is a value)."""

DEEPEST = 8
"""How many references and alternatives inside one another are followed."""

_MERGED = ("type", "format", "minimum", "maximum", "maxLength", "minLength", "pattern", "enum", "const", "items",
           "properties", "title")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Field:
    """One argument of a tool. `kind` is a JSON type, or "any" where several are allowed."""

    name: str
    kind: str
    required: bool
    nullable: bool
    choices: tuple[Any, ...]
    default: Any
    description: str
    says: str
    """The type in words, with its limits: "integer, 1 to 100", "array of string"."""


def fields_of(schema: Mapping[str, Any]) -> tuple[Field, ...]:
    """The arguments a tool's input schema asks for, required ones first, otherwise in its order.

    Schemas come from generated code: what is not of the shape JSON Schema gives it is taken as not there.
    """
    definitions = _mapping(schema.get("$defs")) or _mapping(schema.get("definitions"))
    required = [name for name in _list(schema.get("required")) if isinstance(name, str)]
    fields = [
        _field(name, _resolved(described, definitions), name in required)
        for name, described in _mapping(schema.get("properties")).items()
        if isinstance(described, Mapping)
    ]
    return tuple(sorted(fields, key=lambda field: not field.required))


def read_value(field: Field, text: str) -> Any:
    """The value a person typed for a field. Raises ValueError with a sentence where it is not one.

    Text is taken as it is, so that names need no quotes; objects, arrays and values of several types are JSON.
    """
    if field.kind == "string":
        return "" if text == '""' else text
    if field.nullable and text.strip() == "null":
        return None
    try:
        value = json.loads(text)
    except ValueError:
        if field.kind == "any":
            return text
        raise ValueError(f"{field.name} must be {_a(field.kind)}; {text!r} is not.") from None
    if not _is_a(value, field.kind):
        raise ValueError(f"{field.name} must be {_a(field.kind)}; {text!r} is not.")
    return value


def written(field: Field, value: Any) -> str:
    """How a person would type a value, so that `read_value` gives it back."""
    if field.kind == "string" and isinstance(value, str):
        return value or '""'
    if field.kind == "any" and isinstance(value, str):
        try:
            json.loads(value)
        except ValueError:
            return value
    return json.dumps(value, ensure_ascii=False)


def _field(name: str, schema: Mapping[str, Any], required: bool) -> Field:
    choices = _list(schema.get("enum")) or ([schema["const"]] if "const" in schema else [])
    kind = schema.get("type")
    return Field(
        name=name,
        kind=kind if isinstance(kind, str) else "any",
        required=required,
        nullable=bool(schema.get("nullable")),
        choices=tuple(choice for choice in choices if choice is not None),
        default=schema.get("default", MISSING),
        description=str(schema.get("description") or ""),
        says=", ".join(_words(schema)),
    )


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """The schema with references followed and `anyOf [X, null]` made X, nullable."""
    merged: dict[str, Any] = dict(schema)
    reference = merged.pop("$ref", None)
    if isinstance(reference, str) and depth < DEEPEST:
        target = _mapping(definitions.get(reference.rpartition("/")[2]))
        merged = {**_resolved(target, definitions, depth + 1), **merged}
    options = [option for word in ("anyOf", "oneOf", "allOf") for option in _list(merged.pop(word, None))]
    if isinstance(merged.get("type"), list):
        options = [{"type": kind} for kind in merged.pop("type")]
    if options and depth < DEEPEST:
        read = [_resolved(option, definitions, depth + 1) for option in options if isinstance(option, Mapping)]
        others = [option for option in read if option.get("type") != "null"]
        merged["nullable"] = len(others) < len(read)
        if len(others) == 1:
            merged = {**{key: value for key, value in others[0].items() if key in _MERGED}, **merged}
        else:
            merged["options"] = others
    return merged


def _words(schema: Mapping[str, Any]) -> Iterator[str]:
    kind, items = schema.get("type"), _mapping(schema.get("items"))
    if kind == "array" and isinstance(items.get("type"), str):
        yield f"array of {items['type']}"
    elif isinstance(kind, str):
        yield f"{kind} or null" if schema.get("nullable") else kind
    else:
        options = [option.get("type") for option in _list(schema.get("options")) if isinstance(option, Mapping)]
        yield " or ".join(option for option in options if isinstance(option, str)) or "any"
    if isinstance(schema.get("format"), str):
        yield schema["format"]
    low, high = (_bound(schema.get(key)) for key in ("minimum", "maximum"))
    if low and high:
        yield f"{low} to {high}"
    elif low or high:
        yield f"at least {low}" if low else f"at most {high}"
    if isinstance(schema.get("maxLength"), int):
        yield f"at most {schema['maxLength']} characters"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _bound(value: Any) -> str:
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return ""
    return str(int(value)) if value == int(value) else str(value)


def _is_a(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind in ("boolean", "any")
    kinds = {"integer": int, "number": (int, float), "array": list, "object": dict, "boolean": bool}
    return kind == "any" or kind not in kinds or isinstance(value, kinds[kind])


def _a(kind: str) -> str:
    words = {
        "integer": "a whole number",
        "number": "a number",
        "boolean": "true or false",
        "array": "a JSON array",
        "object": "a JSON object",
    }
    return words.get(kind, kind)
