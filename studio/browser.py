"""Whether a page can be opened here, and how to reach it from another machine where it cannot."""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Mapping

from pipeline.loopback import HOST


def has_browser(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether opening a URL shows it to the person: there is a desktop, and it is not behind SSH."""
    if "SSH_CONNECTION" in environ:
        return False
    return sys.platform == "darwin" or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def tunnel_command(port: int, environ: Mapping[str, str] = os.environ) -> str | None:
    """The `ssh -L` line a person types on their own machine to reach `port` here; None outside an SSH session.

    SSH_CONNECTION holds "client-address client-port server-address server-port" (sshd(8)).
    """
    fields = environ.get("SSH_CONNECTION", "").split()
    if len(fields) != 4:
        return None
    server, server_port = fields[2:]
    option = "" if server_port == "22" else f"-p {server_port} "
    return f"ssh -N {option}-L {port}:{HOST}:{port} {getpass.getuser()}@{server}"
