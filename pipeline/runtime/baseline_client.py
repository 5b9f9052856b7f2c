"""Measures a baseline server: starts it, calls it over HTTP and over MCP, reads its CPU time and memory."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from pipeline.errors import UserError
from pipeline.runtime.baseline import FLOOR_PATH
from pipeline.runtime.tools import Tool

START_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class TimedCall:
    """A tool call that does not fail, as it is made of an instance and as an HTTP request."""

    tool: Tool
    arguments: dict[str, Any]
    path: str
    query: dict[str, Any]
    body: dict[str, Any] | None
    changes: bool


@dataclass(frozen=True, slots=True)
class HttpFigures:
    """CPU seconds of starting a server, and of a call over MCP and over plain HTTP (client and server together); the
    server's private memory; the CPU seconds that the SQL of a call takes by itself; and how many of the calls
    succeeded as they do in our runtime.

    `mcp_session_call_cpu_s` is a call in a session of its own, which is how AWM's agent (awm/core/agent.py,
    MCPToolExecutor.call_tool) and verl's MCP tools (McpClientManager.call_tool) make every call; `mcp_call_cpu_s` is a
    call in a session that stays open.
    """

    start_cpu_s: float
    mcp_session_call_cpu_s: float
    mcp_call_cpu_s: float
    http_call_cpu_s: float
    memory_bytes: int
    floor_cpu_s: float
    same_status: int


def http_figures(source: str, snapshot: bytes, calls: Sequence[TimedCall], *, rounds: int) -> HttpFigures:
    """Figures of one server process for this program, called `rounds` times with all calls, one after another."""
    with tempfile.TemporaryDirectory(prefix="awm-baseline-") as name, socket.socket() as listener:
        folder = Path(name)
        (folder / "code.py").write_text(source, "utf-8", "surrogatepass")
        (folder / "initial.db").write_bytes(snapshot)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        command = [sys.executable, "-m", "pipeline.runtime.baseline", str(listener.fileno()), name]
        safe = {"PATH": os.environ.get("PATH", ""), "TZ": "UTC", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        server = subprocess.Popen(command, pass_fds=[listener.fileno()], env=safe, stderr=subprocess.PIPE)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=30) as client:
                return _measured(client, server, calls, rounds)
        finally:
            server.kill()
            server.communicate()


def _measured(
    client: httpx.Client, server: subprocess.Popen[bytes], calls: Sequence[TimedCall], rounds: int
) -> HttpFigures:
    process = psutil.Process(server.pid)
    _await_start(client, server)
    start = _cpu_seconds(process)
    same = sum(_request(client, call) for call in calls)
    count = rounds * len(calls)
    before = time.process_time() + _cpu_seconds(process)
    for _ in range(rounds):
        for call in calls:
            _request(client, call)
    over_http = (time.process_time() + _cpu_seconds(process) - before) / count
    floor = float(client.get(FLOOR_PATH, timeout=120).text) / (count + len(calls))
    before = time.process_time() + _cpu_seconds(process)
    asyncio.run(_over_mcp(f"{client.base_url}/mcp", calls, rounds))
    over_mcp = (time.process_time() + _cpu_seconds(process) - before) / count
    before = time.process_time() + _cpu_seconds(process)
    asyncio.run(_in_sessions_of_their_own(f"{client.base_url}/mcp", calls))
    in_session = (time.process_time() + _cpu_seconds(process) - before) / len(calls)
    return HttpFigures(start, in_session, over_mcp, over_http, process.memory_full_info().uss, floor, same)


def _request(client: httpx.Client, call: TimedCall) -> bool:
    """Make a call over plain HTTP; whether it succeeded."""
    try:
        return client.request(call.tool.method, call.path, params=call.query, json=call.body).is_success
    except httpx.TransportError:  # uvicorn hangs up on a handler that raises
        return False


async def _over_mcp(url: str, calls: Sequence[TimedCall], rounds: int) -> None:
    """Make all calls `rounds` times over MCP, in one session."""
    from mcp import Client

    requests = [_over(call) for call in calls]
    async with Client(url) as client:
        for _ in range(rounds):
            for request in requests:
                await client.call_tool("request", request)


async def _in_sessions_of_their_own(url: str, calls: Sequence[TimedCall]) -> None:
    """Make each call over MCP once, in a session that is opened for it."""
    from mcp import Client

    for call in calls:
        async with Client(url) as client:
            await client.call_tool("request", _over(call))


def _over(call: TimedCall) -> dict[str, Any]:
    """The arguments of the baseline's one tool."""
    return {"method": call.tool.method, "path": call.path, "query": call.query, "body": call.body}


def _await_start(client: httpx.Client, server: subprocess.Popen[bytes]) -> None:
    """Wait for the first answer: the socket is open from the start, so the request waits in its queue."""
    try:
        client.get("/awm-studio/started", timeout=START_TIMEOUT_S)
    except httpx.HTTPError as error:
        server.kill()
        said = ""
        with suppress(ValueError):
            said = server.communicate()[1].decode(errors="replace").strip().splitlines()[-1:] or [""]
            said = said[0]
        raise UserError(f"The server to compare with did not start: {said or error}") from error


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system
