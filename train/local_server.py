"""A server on 127.0.0.1 in a thread of this process, for as long as a block of code needs it."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from pipeline.errors import UserError
from pipeline.loopback import HOST, listen, port_of

STARTS_WITHIN_S = 30.0
"""Seconds a server may take to begin."""


@contextmanager
def local_server(app: Any, port: int = 0) -> Generator[str]:
    """Serve an ASGI application; yields its address, which ends in the port (a free one for 0).

    Raises UserError where the port is taken or the application does not start.
    """
    import uvicorn

    with listen(port) as listener:
        config = uvicorn.Config(app, log_level="critical", access_log=False, timeout_graceful_shutdown=2)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True, name="awm-server")
        thread.start()
        try:
            _wait_for(server, thread)
            yield f"http://{HOST}:{port_of(listener)}"
        finally:
            server.should_exit = True
            thread.join()


def _wait_for(server: Any, thread: threading.Thread) -> None:
    for _ in range(int(STARTS_WITHIN_S / 0.01)):
        if server.started:
            return
        thread.join(0.01)
        if not thread.is_alive():
            break
    raise UserError("The local server did not start.")
