"""The usual way to run an environment, to measure ours against: one server process an instance, called over MCP.

`python -m pipeline.runtime.baseline FD FOLDER` reads the program (`code.py`) and its database (`initial.db`) from a
folder, locks itself down as workers are, but for serving the inherited socket FD, and runs the file under uvicorn with
an MCP server at `/mcp` that passes each call to the application through its HTTP interface, as upstream's FastApiMCP
does. It is started by `pipeline.runtime.baseline_client` and by nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sqlite3
import sys
import time
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

FLOOR_PATH = "/awm-studio/floor"
"""A request here answers with the CPU seconds that the SQL of all requests so far takes by itself."""

FLOOR_ROUNDS = 5
"""How often the recorded statements are repeated for one figure; one round is too short to time."""


POOL_WAIT_S = 0.2
"""How long a call waits for a connection when a handler has kept all of them. SQLAlchemy's usual 30 s would make the
measuring of a program that loses sessions take hours, and changes no CPU time."""


class Floor:
    """Records the statements a program runs, to run them again by bare sqlite3."""

    def __init__(self, snapshot: bytes) -> None:
        self._snapshot = snapshot
        self._statements: list[tuple[str, Any]] = []

    def record(self, _connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        """Take note of a statement (a listener for SQLAlchemy's `before_cursor_execute`)."""
        self._statements.append((statement, parameters))

    def seconds(self) -> float:
        """CPU seconds that the recorded statements take, in order, on a fresh copy of the database in memory."""
        total = 0.0
        for _ in range(FLOOR_ROUNDS):
            connection = sqlite3.connect(":memory:")
            connection.deserialize(self._snapshot)
            began = time.process_time()
            for statement, parameters in self._statements:
                try:
                    connection.execute(statement, parameters).fetchall()
                except sqlite3.Error:  # on another order of rows a statement may fail that did not
                    continue
            total += time.process_time() - began
            connection.close()
        return total / FLOOR_ROUNDS


def mcp_application(application: Any) -> Any:
    """An ASGI application at `/mcp` with one tool, `request`, that makes an HTTP request of the application."""
    import httpx
    import mcp_types as types
    from mcp.server.lowlevel import Server

    client = httpx.AsyncClient(transport=httpx.ASGITransport(application, raise_app_exceptions=False))

    async def list_tools(_: Any, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="request", input_schema={"type": "object"})])

    async def call_tool(_: Any, call: types.CallToolRequestParams) -> types.CallToolResult:
        asked = call.arguments or {}
        url = f"http://environment{asked['path']}"
        reply = await client.request(asked["method"], url, params=asked["query"], json=asked["body"])
        text = json.dumps(reply.json(), indent=2, ensure_ascii=False) if reply.is_success else reply.text
        return types.CallToolResult(content=[types.TextContent(text=text)], is_error=not reply.is_success)

    return Server("baseline", on_list_tools=list_tools, on_call_tool=call_tool).streamable_http_app()


def impatient(create_engine: Callable[..., Any]) -> Callable[..., Any]:
    """`create_engine`, but that a pool without free connections is waited for only so long."""

    def create(*arguments: Any, **options: Any) -> Any:
        try:
            return create_engine(*arguments, **{"pool_timeout": POOL_WAIT_S} | options)
        except TypeError:  # a kind of pool that never waits
            return create_engine(*arguments, **options)

    return create


def main(descriptor: int, folder: Path) -> None:
    """Serve the program in `folder` on the listening socket `descriptor` until the process is killed."""
    import sqlalchemy
    import uvicorn
    from sqlalchemy import Engine, event

    from pipeline.runtime.limits import Limits
    from pipeline.runtime.loop import inline_threads
    from pipeline.runtime.sandbox import lock_down

    source = (folder / "code.py").read_text("utf-8", "surrogatepass")
    snapshot = (folder / "initial.db").read_bytes()
    listener = socket.socket(fileno=descriptor)
    loop = asyncio.new_event_loop()
    lock_down(folder, Limits(), keep_writable=True, serving=True)
    Path("awm.db").write_bytes(snapshot)
    os.environ["DATABASE_PATH"] = "sqlite:///awm.db"

    warnings.simplefilter("ignore")
    floor = Floor(snapshot)
    event.listen(Engine, "before_cursor_execute", floor.record)
    vars(sqlalchemy)["create_engine"] = impatient(sqlalchemy.create_engine)
    module = sys.modules["environment"] = types.ModuleType("environment")
    exec(compile(source, "environment.py", "exec"), module.__dict__)
    application = module.__dict__["app"]
    over_mcp = mcp_application(application)

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan" or scope["path"].startswith("/mcp"):
            await over_mcp(scope, receive, send)
        elif scope["path"] == FLOOR_PATH:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": str(floor.seconds()).encode()})
        else:
            await application(scope, receive, send)

    server = uvicorn.Server(uvicorn.Config(answer, log_level="critical", access_log=False))
    with inline_threads():  # the sandbox allows no threads
        loop.run_until_complete(server.serve(sockets=[listener]))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
