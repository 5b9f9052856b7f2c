"""Reading replies that should be JSON of a given shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from pipeline.llm.text import Unreadable, problems_with, read_json


def read_document(text: str, schema: Mapping[str, Any]) -> Any:
    """The JSON value in a reply. Raises Unreadable, with the places, where it is not of the schema's shape."""
    value = read_json(text).value
    if problems := problems_with(value, dict(schema)):
        raise Unreadable("The JSON is not of the shape that was asked for: " + "; ".join(problems) + ".")
    return value


def content_of(value: Any) -> str:
    """A value as a part's content. Raises Unreadable where it holds what no JSON reader has to take."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        raise Unreadable("The JSON holds a number of more than 64 bits, or half a character. Leave it out.") from None


def record(**properties: Any) -> dict[str, Any]:
    """The schema of a closed object with all these properties required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def array(items: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a list."""
    return {"type": "array", "items": items}


TEXT = {"type": "string"}
"""The schema of a text."""
