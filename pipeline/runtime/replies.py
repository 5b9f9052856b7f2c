"""What a tool call comes back with."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from pipeline.runtime.tools import error_text

ErrorKind = Literal[
    "tool_not_found", "invalid_arguments", "client_error", "server_error", "timeout", "crash", "interrupted"
]


@dataclass(frozen=True, slots=True)
class CallError:
    """Why a call was not ok.

    `tool_not_found`; `invalid_arguments` (refused by the tool's schema, 422); `client_error` (any other 4xx);
    `server_error` (5xx: the handler raised); `timeout`; `crash` (the call ended its process); `interrupted` (a person
    stopped it). `detail` is what is known beyond the message: of a server error the exception and the line of the
    generated code, else what the program answered.
    """

    kind: ErrorKind
    message: str
    detail: Any = None

    @property
    def exception(self) -> str | None:
        """The class name of the exception that the handler raised, if that is what happened."""
        return self.detail.get("exception") if isinstance(self.detail, dict) else None


@dataclass(frozen=True, slots=True)
class Reply:
    """One call's reply: HTTP status, JSON body, and the text an agent is shown.

    `body_json` is None where there is no JSON body. `ms` is what this call took here; replies that are equal
    otherwise count as equal.
    """

    status: int
    body_json: str | None
    text: str
    error: CallError | None = None
    ms: float = field(default=0.0, compare=False)

    @property
    def ok(self) -> bool:
        """Whether the call succeeded."""
        return self.error is None

    @property
    def body(self) -> Any:
        """The body, decoded anew each time, so that changing it changes no other reply.

        JSON that Python cannot hold (nested a thousand deep, numbers of thousands of digits) is given as text.
        """
        try:
            return None if self.body_json is None else json.loads(self.body_json)
        except (ValueError, RecursionError):
            return self.body_json


def server_error_text(tool: str) -> str:
    """What an agent is shown when a tool fails without an answer: upstream's text for any error in a handler."""
    return error_text(tool, 500, "Internal Server Error")
