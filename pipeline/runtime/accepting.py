"""A quick test of arguments against a schema, for the usual case that they fit.

jsonschema interprets a schema anew for every value, which takes longer than many a query. Here a schema becomes a
function once. It says yes only where jsonschema would; where it says no, jsonschema has the word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Test = Callable[[Any], bool]

_TYPES: Mapping[str, frozenset[type]] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
    "null": frozenset({type(None)}),
    "array": frozenset({list}),
    "object": frozenset({dict}),
}
"""JSON's types as Python's decoder makes them. That 1.0 is an integer too is left to jsonschema."""

_SILENT = frozenset({"title", "description", "default", "example", "examples", "deprecated", "format"})
"""Keywords that refuse no value; upstream does not check formats."""

_LIMITS: Mapping[str, tuple[str, Callable[[Any], Test]]] = {
    "minimum": ("number", lambda limit: lambda value: not value < limit),
    "maximum": ("number", lambda limit: lambda value: not value > limit),
    "exclusiveMinimum": ("number", lambda limit: lambda value: not value <= limit),
    "exclusiveMaximum": ("number", lambda limit: lambda value: not value >= limit),
    "minLength": ("string", lambda limit: lambda value: len(value) >= limit),
    "maxLength": ("string", lambda limit: lambda value: len(value) <= limit),
    "pattern": ("string", lambda pattern: lambda value: re.search(pattern, value) is not None),
    "minItems": ("array", lambda limit: lambda value: len(value) >= limit),
    "maxItems": ("array", lambda limit: lambda value: len(value) <= limit),
}
"""Keywords about values of one type, with what makes a test of them. They refuse no value of another type."""

_ABOUT_MEMBERS = frozenset({"properties", "required", "additionalProperties"})


class _Unknown(Exception):
    """A schema says what only jsonschema understands."""


def acceptor(schema: Any) -> Test | None:
    """A test of decoded JSON that is true only of what fits the schema; None where the schema is beyond it.

    False says nothing: ask jsonschema.
    """
    try:
        return _test(schema)
    except (_Unknown, RecursionError, TypeError, AttributeError):  # the last two: what is no schema at all
        return None


def _test(schema: Any) -> Test:
    if not isinstance(schema, dict):
        raise _Unknown
    tests = [_of_keyword(name, said) for name, said in schema.items() if name not in _SILENT | _ABOUT_MEMBERS]
    if not _ABOUT_MEMBERS.isdisjoint(schema):
        tests.append(_of_members(schema))
    return tests[0] if len(tests) == 1 else lambda value: all(test(value) for test in tests)


def _of_keyword(name: str, said: Any) -> Test:
    if name in _LIMITS:
        kind, make = _LIMITS[name]
        kinds, test = _TYPES[kind], make(said)
        return lambda value: type(value) not in kinds or test(value)
    match name:
        case "type" if isinstance(said, str) and said in _TYPES:
            kinds = _TYPES[said]
            return lambda value: type(value) in kinds
        case "enum" if isinstance(said, list):
            words = frozenset(word for word in said if type(word) is str)
            return lambda value: type(value) is str and value in words
        case "anyOf":
            choices = [_test(choice) for choice in said]
            return lambda value: any(choice(value) for choice in choices)
        case "allOf":
            parts = [_test(part) for part in said]
            return lambda value: all(part(value) for part in parts)
        case "items":
            item = _test(said)
            return lambda value: type(value) is not list or all(map(item, value))
        case _:
            raise _Unknown


def _of_members(schema: Mapping[str, Any]) -> Test:
    members = {name: _test(member) for name, member in schema.get("properties", {}).items()}
    required = frozenset(schema.get("required", ()))
    others = schema.get("additionalProperties", True)
    other = None if isinstance(others, bool) else _test(others)

    def fits(value: Any) -> bool:
        if type(value) is not dict:
            return True
        for name, member in value.items():
            test = members.get(name, other)
            if not (others is True if test is None else test(member)):
                return False
        return required <= value.keys()

    return fits
