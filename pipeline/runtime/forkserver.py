"""The fork server: a small process that has imported everything and forks a worker when asked.

It runs no generated code and has one thread, so what it forks is clean. Requests are JSON lines on a Unix socket,
each answered by one line: `{"op": "fork", …}` with one end of a socket pair attached, `{"op": "end", "pid": N}`.
When its parent goes away, it ends its workers, removes its folder and goes too.
"""

from __future__ import annotations

import gc
import json
import os
import select
import shutil
import signal
import socket
from pathlib import Path
from typing import Any

from pipeline.runtime.limits import Limits

REQUEST_SIZE = 1 << 16
PARENT_CHECK_S = 2.0
"""How often to look whether the parent still lives, in case another process holds its end of the socket open."""


def serve(control_handle: int, folder: str) -> None:
    """Serve requests until the other side goes away. `folder` is where workers have their private folders."""
    from pipeline.runtime import worker

    parent = os.getppid()
    control = socket.socket(fileno=control_handle)
    worker.preload()
    _silence()
    gc.collect()
    gc.freeze()  # what is imported is never garbage: collections in workers need not touch, and so copy, its pages
    _answer(control, {"ready": os.getpid()})
    workers: set[int] = set()
    try:
        while os.getppid() == parent:
            if not select.select([control], [], [], PARENT_CHECK_S)[0]:
                continue
            line, handles, *_ = socket.recv_fds(control, REQUEST_SIZE, 1)
            if not line:
                break
            request = json.loads(line)
            if request["op"] == "fork":
                pid = _fork(handles[0], Path(folder), request)
                workers.add(pid)
                os.close(handles[0])
                _answer(control, {"pid": pid})
            else:
                _answer(control, {"status": _end(request["pid"], Path(folder))})
                workers.discard(request["pid"])
    finally:
        for pid in workers:
            _end(pid, Path(folder))
        shutil.rmtree(folder, ignore_errors=True)


def _fork(connection: int, folder: Path, request: dict[str, Any]) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        from pipeline.runtime import worker

        # Keeps the standard streams (all of them /dev/null) and the connection; the control socket goes.
        os.closerange(3, connection)
        os.closerange(connection + 1, os.sysconf("SC_OPEN_MAX"))
        worker.run(
            connection, folder, Limits(**request["limits"]), keep_writable=request["keep_writable"], parent=parent
        )
    finally:
        os._exit(1)  # never back into the server's loop, whatever happened


def _end(pid: int, folder: Path) -> int:
    """Kill a worker, wait for it, remove its folder. Returns its wait status: what it died of, if it was dead."""
    os.kill(pid, signal.SIGKILL)  # a worker that is already dead keeps its pid until it is waited for
    _, status = os.waitpid(pid, 0)
    shutil.rmtree(folder / str(pid), ignore_errors=True)
    return status


def _silence() -> None:
    """Send what anything prints to nowhere, once the server can no longer fail to start."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.close(null)


def _answer(control: socket.socket, message: dict[str, Any]) -> None:
    control.sendall(json.dumps(message).encode() + b"\n")
