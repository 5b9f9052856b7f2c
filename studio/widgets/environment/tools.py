"""The tools: grouped, their arguments in readable form, and what a model is told about them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from textual import work
from textual.message import Message

from pipeline.model import Environment
from studio.actions import bindings
from studio.schema_fields import MISSING, fields_of
from studio.widgets.environment.dossier import Dossier
from studio.widgets.grid import Column
from studio.widgets.lines import Piece
from studio.widgets.listing import Listing, Text
from studio.widgets.source import highlight

if TYPE_CHECKING:
    from pipeline.runtime.tools import Tool
    from studio.app import Studio
    from studio.live import Live


class Tools(Listing):
    """Every tool the loaded program has, by group; below, its arguments and documentation."""

    BINDINGS = bindings("tools")
    COLUMNS = (
        Column("method", "", lambda tool: (tool.method, "warn" if tool.writes else "ok"), width=6),
        Column("name", "tool", lambda tool: tool.name, width=22, flex=2),
        Column("group", "group", lambda tool: (tool.group, "muted"), width=12, flex=1, drop=1),
        Column("arguments", "arguments", lambda tool: _arguments(tool.input_schema), width=14, flex=2, drop=2),
    )

    class CallWanted(Message):
        """A person wants to call this tool."""

        def __init__(self, tool: str) -> None:
            super().__init__()
            self.tool = tool

    class CodeWanted(Message):
        """A person wants to see the source from this line on."""

        def __init__(self, line: int) -> None:
            super().__init__()
            self.line = line

    def __init__(self) -> None:
        super().__init__()
        self._wanted = ""

    def show_dossier(self, dossier: Dossier) -> None:
        """Load the environment's program and show its tools."""
        self._say("The code is being loaded …")
        self._load(dossier.env)

    @work(exclusive=True)
    async def _load(self, env: Environment) -> None:
        studio = cast("Studio", self.app)
        if studio.live is None:
            return
        if env.code is None:
            self._say("This environment has no code, so it has no tools.")
            return
        tools = await studio.ask(_tools, studio.live, env)
        if tools is None:
            self._say("The code could not be loaded.")
            return
        self._say("The code defines no tools.")
        self.show_rows(sorted(tools, key=lambda tool: tool.group))
        self.grid.go_to(lambda tool: tool.name == self._wanted)

    def go_to(self, tool: str) -> None:
        """Show a tool, as soon as the code is loaded."""
        self._wanted = tool
        self.grid.go_to(lambda known: known.name == tool)

    def _say(self, text: str) -> None:
        self.grid.empty = text
        self.show_rows(())

    def explain(self, row: Tool) -> Text:
        """Arguments as a form would ask for them, then exactly what a model gets."""
        return list(_explained(row))

    def action_find_code(self) -> None:
        """Go to the handler of the current tool."""
        if self.grid.row is not None:
            self.post_message(self.CodeWanted(self.grid.row.line))


def _tools(live: Live, env: Environment) -> tuple[Tool, ...]:
    return live.program(env).tools


def _arguments(schema: Mapping[str, Any]) -> str:
    return ", ".join(field.name if field.required else f"{field.name}?" for field in fields_of(schema))


def _explained(tool: Tool) -> Iterator[list[Piece]]:
    yield [(tool.name, "strong"), (f"   {tool.method} {tool.path}", "muted")]
    yield [("changes the database" if tool.writes else "only reads", "warn" if tool.writes else "ok")]
    yield []
    fields = fields_of(tool.input_schema)
    yield [("Arguments" if fields else "No arguments.", "strong")]
    for field in fields:
        yield [
            (field.name, "name"),
            (" *" if field.required else "", "accent"),
            (f"  {field.says}", "keyword"),
            ("" if field.default is MISSING else f"  default {json.dumps(field.default)}", "muted"),
        ]
        if field.choices:
            yield [("    one of ", "muted"), (", ".join(map(str, field.choices)), "string")]
        if field.description:
            yield [(f"    {field.description}", "")]
    yield []
    yield [("What a model is told", "strong")]
    for line in tool.description.splitlines():
        yield [(line, "")]
    yield from highlight(json.dumps(tool.input_schema, indent=2, ensure_ascii=False), "json")
