"""An environment as an MCP server over stdio or streamable HTTP, with a separate instance for each client session.

What a client sees of a tool (name, description, input schema, result and error texts) is what upstream's FastApiMCP
server shows, so agents trained there work here.

The protocol revision of 2026-07-28 has no sessions over HTTP, and an environment without sessions would share its
state between clients. Over HTTP it is therefore refused by naming the revisions that are served, which is how a
client is told to shake hands instead (the SDK's own does so by itself). Over stdio a process is one session, so
every revision is served.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.applications import Starlette

from pipeline.errors import UserError
from pipeline.model import Environment
from pipeline.runtime.host import HostedProgram, Instance

IDLE_SECONDS = 30 * 60
"""An HTTP session with no request and no open stream for this long is over. A client that is killed never says
goodbye; one that thinks for minutes between two calls must not lose its state."""

MAX_SESSIONS = 1024
"""HTTP sessions at once, the number of instances that `bench runtime` holds alive."""

Context = ServerRequestContext[Any, Any]
InstanceOf = Callable[[Context], Instance]


async def serve_stdio(env: Environment, program: HostedProgram, *, task: int | None = None) -> None:
    """Serve one session over this process's stdin and stdout, until stdin ends.

    Raises UserError where there is no such task.
    """
    instance = program.instance()
    try:
        server = _server(env, program, task, lambda _: instance)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())
    finally:
        instance.close()


def http_app(
    env: Environment, program: HostedProgram, *, task: int | None = None, idle_s: float = IDLE_SECONDS
) -> Starlette:
    """An ASGI application that serves any number of sessions at `/mcp`.

    A session's instance is freed when the client ends the session, or when nothing was heard of it for `idle_s`
    seconds. Requests whose Host or Origin is not local are refused. Raises UserError where there is no such task.
    """
    server = _server(env, program, task, lambda context: _session_instance(context, program))
    server.middleware.append(_require_session)
    return server.streamable_http_app(session_idle_timeout=idle_s, max_sessions=MAX_SESSIONS)


async def serve_http(app: Starlette, listener: socket.socket) -> None:
    """Serve such an application on a listening socket, until SIGINT, SIGTERM or cancellation."""
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="warning", access_log=False, proxy_headers=False, timeout_graceful_shutdown=1)
    )
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        await asyncio.shield(serving)
    finally:
        # Cancelled itself, uvicorn would leave its connections and sessions behind.
        server.should_exit = True
        await serving


def _server(env: Environment, program: HostedProgram, task: int | None, instance_of: InstanceOf) -> Server[Any]:
    text = _task_text(env, task)

    async def list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(name=tool.name, description=tool.description, input_schema=tool.input_schema)
                for tool in program.tools
            ]
        )

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        reply = await instance_of(context).acall(params.name, params.arguments)
        return types.CallToolResult(content=[types.TextContent(text=reply.text)], is_error=not reply.ok)

    async def list_prompts(_: Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[types.Prompt(name="task", title=f"Task {task}", description=text)])

    async def get_prompt(_: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name != "task":
            raise MCPError(types.INVALID_PARAMS, f"There is no prompt {params.name!r}; there is 'task'.")
        message = types.PromptMessage(role="user", content=types.TextContent(text=text or ""))
        return types.GetPromptResult(description=f"Task {task} of {env.title}", messages=[message])

    return Server(
        env.name,
        version=version("awm-studio"),
        title=env.title or env.name,
        description=env.description or None,
        instructions="\n\n".join(filter(None, [env.description, text and f"Task: {text}"])) or None,
        get_tool_input_schema={tool.name: tool.input_schema for tool in program.tools}.get,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts if text else None,
        on_get_prompt=get_prompt if text else None,
    )


def _task_text(env: Environment, task: int | None) -> str | None:
    if task is None:
        return None
    if 0 <= task < len(env.tasks):
        return env.tasks[task]
    has = f"tasks 0 to {len(env.tasks) - 1}" if env.tasks else "no tasks"
    raise UserError(f"{env.name} has no task {task}; it has {has}.")


def _session_instance(context: Context, program: HostedProgram) -> Instance:
    """The instance of an HTTP session, made at its first call and closed with its connection."""
    # The SDK keeps a session's state and teardown on its Connection, which mcp 2.3 gives handlers no public way to.
    connection = context.session._connection
    if "instance" not in connection.state:
        instance = program.instance()
        connection.state["instance"] = instance
        connection.exit_stack.callback(instance.close)
    return connection.state["instance"]


async def _require_session(ctx: Context, call_next: CallNext) -> HandlerResult:
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return await call_next(ctx)
    refusal = types.UnsupportedProtocolVersionErrorData(
        supported=list(HANDSHAKE_PROTOCOL_VERSIONS), requested=ctx.protocol_version
    )
    raise MCPError(
        types.UNSUPPORTED_PROTOCOL_VERSION,
        "This environment keeps state for each session, so it needs a client that starts with `initialize`.",
        refusal.model_dump(mode="json"),
    )
