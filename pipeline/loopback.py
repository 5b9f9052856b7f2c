"""Ports that only this machine can reach.

What we serve has no password and shows or runs generated environments, so it listens on 127.0.0.1 and nowhere else;
from another machine it is reached through SSH.
"""

from __future__ import annotations

import errno
import socket

from pipeline.errors import UserError

HOST = "127.0.0.1"


def listen(port: int = 0) -> socket.socket:
    """A listening socket on 127.0.0.1, on a free port if `port` is 0.

    Raises UserError where the port is taken or not allowed.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise UserError(
                f"port {port} is taken; choose another with --port, or leave it out for a free one."
            ) from None
        raise UserError(f"cannot listen on port {port}: {error.strerror}; leave --port out for a free one.") from None
    return listener


def port_of(listener: socket.socket) -> int:
    """The port a socket listens on."""
    return listener.getsockname()[1]
