"""`awm-studio --web`: the studio in a browser of this machine, through textual-serve."""

from __future__ import annotations

import shlex
import sys

from aiohttp import web
from textual_serve.server import Server

from pipeline.loopback import HOST, listen, port_of
from studio.browser import tunnel_command
from studio.commands.options import say

OURS = ("127.0.0.1", "localhost", "[::1]")
"""The names under which a browser may know us, also at the near end of an SSH tunnel."""


class StudioServer(Server):
    """A studio a browser tab. Only pages we served ourselves may connect.

    textual-serve asks nobody who they are, and any web page may try to reach 127.0.0.1: without this check a page open
    in another tab could steer a studio here.
    """

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Connect a browser to a new studio."""
        origin = request.headers.get("Origin", "")
        if _host(request.headers.get("Host", "")) not in OURS or _host(origin.partition("://")[2]) not in OURS:
            raise web.HTTPForbidden(text="This page was not served by awm-studio on this machine.")
        return await super().handle_websocket(request)

    async def on_startup(self, app: web.Application) -> None:
        """Say where it is and what it lacks."""
        say(
            f"The studio is at {self.public_url} until Ctrl-C. It has no password: everybody who can log in to this "
            "machine can open it."
        )
        if tunnel := tunnel_command(self.port):
            say(f"From your own machine: {tunnel}")


def serve_studio(workspace: str | None, port: int) -> None:
    """Serve until interrupted. Raises UserError where the port is taken."""
    command = [sys.executable, "-m", "studio.cli", *(["--workspace", workspace] if workspace else [])]
    with listen(port) as listener:
        server = StudioServer(shlex.join(command), host=HOST, port=port_of(listener), title="awm-studio")
        web.run_app(server._make_app(), sock=listener, print=None, access_log=None)


def _host(authority: str) -> str:
    """The host of `host:port`."""
    return authority if authority.endswith("]") else authority.rpartition(":")[0] or authority
