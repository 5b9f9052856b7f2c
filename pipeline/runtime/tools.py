"""Tools: one operation of an environment as an agent sees it, and what the agent is told about a call.

All texts are those of upstream's server, fastapi-mcp 0.4.0 on FastAPI 0.115 and mcp 1.x, because released agents were
trained on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.runtime.accepting import acceptor

MAX_NAME = 64
"""Characters a tool's name may have: the limit of OpenAI's and Anthropic's tool calling interfaces."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One operation as an agent sees it, and where it comes from.

    `name` is the operation id, cleaned where agents could not call it. `line` is the handler's line in the source
    (0 if unknown); `writes` tells whether calling it is meant to change something (its method is not GET).
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    method: str
    path: str
    operation_id: str
    tags: tuple[str, ...]
    line: int

    @property
    def writes(self) -> bool:
        """Whether a call is meant to change something."""
        return self.method != "GET"

    @property
    def group(self) -> str:
        """The first tag."""
        return self.tags[0] if self.tags else ""


class ArgumentCheck:
    """Upstream's check of arguments against a tool's input schema, before anything is called.

    `error` gives the text an agent is shown, or None where the arguments pass.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        from jsonschema.exceptions import best_match
        from jsonschema.validators import validator_for

        self._accepts = acceptor(schema)
        self._best_match = best_match
        self._validator = validator_for(schema)(schema)

    def error(self, arguments: Mapping[str, Any]) -> str | None:
        """What is wrong with the arguments, in upstream's words."""
        if self._accepts is not None and self._accepts(arguments):
            return None
        error = self._best_match(self._validator.iter_errors(arguments))
        return None if error is None else f"Input validation error: {error.message}"


def unknown_tool_text(name: str) -> str:
    """What an agent is told when it calls a tool that does not exist."""
    return f"Unknown tool: {name}"


def error_text(tool: str, status: int, content: str) -> str:
    """What an agent is told when a tool answered with an HTTP error."""
    return f"Error calling {tool}. Status code: {status}. Response: {content}"
