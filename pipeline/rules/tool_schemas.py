"""Rules about the schemas of tools: what the servers of model providers refuse, with the whole request they come in.

Each rule names the providers that refuse it, as their own errors in public reports say:

- parameters are an object at the top, without oneOf, allOf, anyOf beside it: OpenAI ("schema must be type object"),
  Anthropic (anthropics/claude-code#5319), Gemini
- an array says what its items are: OpenAI (streamnative/streamnative-mcp-server#26), Gemini
  (NousResearch/hermes-agent#69924)
- names of properties match ``^[a-zA-Z0-9_.-]{1,64}$``: Anthropic (beautyfree/appstore-connect-mcp#2)
- what is required is among the properties: Gemini (Kilo-Org/kilocode#11955)
- no reference is left that leads nowhere: all, since none can follow it
- at most 10 levels of objects and 5,000 properties: OpenAI's guide to structured outputs, "supported schemas" (strict
  mode; looked up in 2026)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.findings import Finding
from pipeline.runtime.tools import Tool

PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
DEEPEST = 10
"""Objects within each other, the top one included."""
MOST_PROPERTIES = 5000

EVERYONE = ("OpenAI", "Anthropic", "Gemini")
Problem = tuple[str, tuple[str, ...]]
"""What is wrong, and which providers refuse it."""


def tool_schema_findings(tools: Sequence[Tool]) -> Iterator[Finding]:
    """Tools that providers refuse: an error where no provider takes the schema, a warning where some do."""
    for tool in tools:
        problems = list(dict.fromkeys(schema_problems(tool.input_schema)))
        if not problems:
            continue
        refusing = [provider for provider in EVERYONE if any(provider in by for _, by in problems)]
        nobody = len(refusing) == len(EVERYONE)
        yield Finding(
            "tool_schema_refused",
            "error" if nobody else "warn",
            f"code: {tool.name}",
            f"the input schema of {tool.name}, and any request that offers it, is refused by "
            f"{'every provider' if nobody else ' and '.join(refusing)}",
            evidence=f"code:{tool.line}: {'; '.join(problem for problem, _ in problems)}",
            remedy="declare parameters with plain types: items for lists, names of letters, digits, _, . and -",
        )


def schema_problems(schema: Mapping[str, Any]) -> Iterator[Problem]:
    """Everything in an input schema that a provider refuses."""
    if schema.get("type") != "object":
        yield "the top is not an object", EVERYONE
    for word in ("oneOf", "allOf", "anyOf"):
        if word in schema:
            yield f"{word} at the top", ("OpenAI", "Anthropic")
    definitions = schema.get("$defs", {})
    count = 0
    for part, where, depth in _parts(schema, "the top", 1):
        properties = part.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        count += len(properties)
        if depth > DEEPEST and "object" in _types(part):
            yield f"more than {DEEPEST} levels of objects", ("OpenAI",)
        if "array" in _types(part) and "items" not in part:
            yield f"{where} is an array without items", ("OpenAI", "Gemini")
        reference = part.get("$ref")
        if isinstance(reference, str) and reference.rpartition("/")[2] not in definitions:
            yield f"{where} refers to {reference}, which is not there", EVERYONE
        for name in properties:
            if not PROPERTY.fullmatch(name):
                yield f"{where} has a property named {name!r}", ("Anthropic",)
        required = part.get("required")
        lost = [name for name in required if name not in properties] if isinstance(required, list) else []
        if lost:
            yield f"{where} requires {', '.join(map(repr, lost))}, which it does not declare", ("Gemini",)
    if count > MOST_PROPERTIES:
        yield f"{count:,} properties", ("OpenAI",)


def _parts(schema: Any, where: str, depth: int) -> Iterator[tuple[Mapping[str, Any], str, int]]:
    """A schema and all schemas in it, with where they are and how many objects are around them."""
    if not isinstance(schema, Mapping):
        return
    yield schema, where, depth
    inner = depth + ("object" in _types(schema))
    for name, member in _members(schema.get("properties")):
        yield from _parts(member, name if where == "the top" else f"{where}.{name}", inner)
    for word in ("items", "additionalProperties"):
        yield from _parts(schema.get(word), f"{where}[]", inner)
    for word in ("anyOf", "oneOf", "allOf", "prefixItems"):
        members = schema.get(word)
        for member in members if isinstance(members, list) else ():
            yield from _parts(member, where, depth)
    for name, member in _members(schema.get("$defs")):
        yield from _parts(member, name, depth)


def _members(value: Any) -> Sequence[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, Mapping) else []


def _types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    kind = schema.get("type")
    return tuple(kind) if isinstance(kind, list) else (kind,) if isinstance(kind, str) else ()
