"""`awm-studio serve`."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

import rich_click as click

from studio.commands.options import json_option, now_option, open_workspace, print_json, say, workspace_option

if TYPE_CHECKING:
    from pipeline.model import Environment
    from pipeline.runtime.host import HostedProgram


@click.command("serve")
@click.argument("environment", metavar="ENV")
@click.option(
    "--transport",
    type=click.Choice(["stdio", "http"]),
    default="stdio",
    show_default=True,
    help="`stdio` for a client that starts this command; `http` for clients that connect to a URL.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Port on 127.0.0.1, over http [default: a free one].",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Only this machine can be listened on.")
@click.option("--task", type=click.IntRange(min=0), metavar="N", help="Give the client this task (numbered from 0).")
@now_option
@workspace_option
@json_option
def serve_command(
    *,
    environment: str,
    transport: str,
    port: int | None,
    host: str,
    task: int | None,
    now: datetime | None,
    workspace: str | None,
    as_json: bool,
) -> None:
    """Serve an environment to any MCP client, each session with its own instance.

    Over http it listens on 127.0.0.1 only and has no password. With --task the task's text is part of the server's
    instructions, and a prompt named `task`. `--json` prints the URL as JSON.

    Examples:

        awm-studio serve gofundme

        awm-studio serve gofundme --transport http --port 8002 --task 3
    """
    from pipeline.errors import UserError
    from pipeline.runtime.host import Host

    if host not in ("127.0.0.1", "localhost"):
        raise UserError(
            f"--host {host}: environments are generated code and served without a password, so only on 127.0.0.1; "
            "reach it from elsewhere through ssh -L."
        )
    if transport == "stdio" and (as_json or port is not None):
        raise UserError("--port and --json go with --transport http; over stdio, stdout carries MCP and nothing else.")
    with open_workspace(workspace) as opened, Host.from_settings(opened.settings) as workers:
        env = opened.catalog.environment(environment)
        with workers.program(env, now=now) as program:
            if transport == "stdio":
                _serve_stdio(env, program, task)
            else:
                _serve_http(env, program, task, port or 0, as_json)


def _serve_stdio(env: Environment, program: HostedProgram, task: int | None) -> None:
    from pipeline.runtime.mcp_server import serve_stdio

    # A thread waits for the next line of stdin and cannot be interrupted, so Ctrl-C must end the process itself.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    asyncio.run(serve_stdio(env, program, task=task))


def _serve_http(env: Environment, program: HostedProgram, task: int | None, port: int, as_json: bool) -> None:
    from pipeline.loopback import HOST, listen, port_of
    from pipeline.runtime.mcp_server import http_app, serve_http
    from studio.browser import tunnel_command

    app = http_app(env, program, task=task)
    with listen(port) as listener:
        url = f"http://{HOST}:{port_of(listener)}/mcp"
        if as_json:
            print_json({"url": url, "environment": env.name, "tools": len(program.tools)})
        else:
            click.echo(url)
        if tunnel := tunnel_command(port_of(listener)):
            say(f"From your own machine: {tunnel}")
        with suppress(KeyboardInterrupt):
            asyncio.run(serve_http(app, listener))
