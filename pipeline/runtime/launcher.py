"""Starts workers by way of a fork server, and talks to them with a timer of its own."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pipeline.errors import UserError
from pipeline.runtime import bootstrap
from pipeline.runtime.limits import Limits
from pipeline.runtime.rpc import Channel, Disconnected, Garbled, Message, TimedOut
from pipeline.runtime.sandbox import Layer

START_TIMEOUT_S = 60.0
"""A fork server imports FastAPI, pydantic and SQLAlchemy: a second here, more on a cold or busy disk."""
CONTROL_TIMEOUT_S = 30.0
"""Longest wait for the fork server to fork or to bury a worker; both take milliseconds."""
END_TIMEOUT_S = 5.0

KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""What some interpreters need to start. Nothing else of the environment (keys, tokens) reaches a worker."""


class WorkerLost(Exception):
    """A worker died or was ended; `kind` is `timeout`, `crash` or `interrupted`, the message says how it went."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Launcher:
    """Starts workers. The fork server starts with the first worker, and again if it dies. Safe to use from threads."""

    def __init__(self, python: str, limits: Limits) -> None:
        self._python = python
        self._limits = limits
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self._closed = False

    def start(self, *, keep_writable: bool = False) -> Worker:
        """A new locked-down worker; `keep_writable` as in `sandbox.lock_down`.

        Raises UserError where the interpreter cannot run workers, and WorkerLost where the worker does not come up.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        request = {"op": "fork", "limits": asdict(self._limits), "keep_writable": keep_writable}
        try:
            with theirs, self._lock:
                server = self._running()
                try:
                    pid = server.ask(request, theirs)["pid"]
                except OSError:  # it died since it was last used: its workers died with it, ours can still live
                    server.stop()
                    server = self._running()
                    pid = server.ask(request, theirs)["pid"]
        except OSError as error:
            ours.close()
            raise UserError(f"No worker process can be started: {error.strerror or error}.") from error
        except BaseException:
            ours.close()
            raise
        ours.setblocking(False)
        worker = Worker(Channel(ours, limit=self._limits.reply_mb << 20), pid, lambda: self._bury(server, pid))
        worker.greet(time.monotonic() + self._limits.load_timeout_s)
        return worker

    def close(self) -> None:
        """End the fork server and every worker."""
        with self._lock:
            self._closed = True
            if self._server is not None:
                self._server.stop()
                self._server = None

    @property
    def server_pid(self) -> int | None:
        """The process id of the fork server, if it has been started."""
        return self._server.process.pid if self._server else None

    @property
    def folder(self) -> Path | None:
        """The fork server's folder, if it has been started."""
        return Path(self._server.folder) if self._server else None

    def _running(self) -> _Server:
        if self._closed:
            raise UserError("This host is closed.")
        if self._server is None or self._server.process.poll() is not None:
            if self._server is not None:
                self._server.stop()
            self._server = _Server(self._python)
        return self._server

    def _bury(self, server: _Server, pid: int) -> int | None:
        """End a worker of that fork server; returns its wait status, None where that is no longer known."""
        with self._lock:
            if server.process.poll() is not None:
                return None
            with contextlib.suppress(OSError):
                return server.ask({"op": "end", "pid": pid})["status"]
        return None


class _Server:
    """A running fork server."""

    def __init__(self, python: str) -> None:
        self.folder = tempfile.mkdtemp(prefix="awm-workers-")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.settimeout(START_TIMEOUT_S)
        self._control = ours
        self._remove = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        try:
            with theirs:
                self.process = subprocess.Popen(
                    [python, "-s", bootstrap.__file__, str(theirs.fileno()), self.folder],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    pass_fds=[theirs.fileno()],
                    cwd=self.folder,
                    env=_environment(self.folder),
                    start_new_session=True,  # Ctrl-C in a terminal is for us; we end the workers
                )
        except OSError as error:
            self._control.close()
            self._remove()
            raise UserError(f"{_named(python)} cannot be started: {error.strerror}.") from error
        try:
            hello = self._line()
        except OSError:
            self.stop()
            raise UserError(f"{_named(python)} cannot run workers: {_last_words(self.process)}.") from None
        except BaseException:
            self.stop()
            raise
        if "error" in hello:
            self.stop()
            raise UserError(f"{_named(python)} cannot run workers: {hello['error']}.")
        ours.settimeout(CONTROL_TIMEOUT_S)
        assert self.process.stderr is not None
        self.process.stderr.close()  # the server writes to nowhere from now on

    def ask(self, request: Mapping[str, Any], passed: socket.socket | None = None) -> dict[str, Any]:
        """Send one request and return its answer. Raises OSError where the server does not answer."""
        line = json.dumps(request).encode() + b"\n"
        try:
            socket.send_fds(self._control, [line], [passed.fileno()] if passed else [])
            return self._line()
        except BaseException:
            self.process.kill()  # half a conversation cannot be continued
            raise

    def stop(self) -> None:
        """End the server; the kernel ends its workers with it."""
        self._control.close()  # it notices, ends its workers and goes
        try:
            self.process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._remove()

    def _line(self) -> dict[str, Any]:
        received = b""
        while not received.endswith(b"\n"):
            chunk = self._control.recv(1 << 16)
            if not chunk:
                raise ConnectionResetError("the fork server is gone")
            received += chunk
        return json.loads(received)


class Worker:
    """One locked-down process. Not safe to use from several threads at once."""

    def __init__(self, channel: Channel, pid: int, bury: Callable[[], int | None]) -> None:
        self.pid = pid
        self.layers: Mapping[str, Layer] = {}
        self._channel = channel
        self._bury = bury
        self._ended = False
        self._asking = threading.Lock()  # held around changes of the next two
        self._asked = self._interrupted = False

    @property
    def alive(self) -> bool:
        """Whether it has not been ended; one that died by itself is noticed at the next request."""
        return not self._ended

    def greet(self, deadline: float) -> None:
        """Wait until the worker is locked down, and note what holds. Raises WorkerLost."""
        try:
            hello = self._channel.receive(deadline=deadline).header
        except (Disconnected, TimedOut, Garbled) as error:
            raise self.lost(error, "a new worker", START_TIMEOUT_S) from error
        except BaseException:
            self.end()
            raise
        if "failed" in hello:
            self.end()
            raise WorkerLost("crash", f"a new worker could not be locked down: {hello['failed']}")
        self.layers = {name: Layer(**layer) for name, layer in hello["layers"].items()}

    def request(
        self, header: Mapping[str, Any], attachments: Sequence[bytes] = (), *, timeout_s: float, what: str
    ) -> Message:
        """Ask the worker for something and wait for its reply. `what` names it in messages.

        Raises WorkerLost where it dies, misbehaves or takes longer; it is ended then, also if we are interrupted.
        """
        nonce = secrets.token_hex(8)
        deadline = time.monotonic() + timeout_s
        try:
            if self._ended:
                raise Disconnected
            if not self._channel.idle:
                raise Garbled("it wrote when it was not asked")
            reply = self._exchange(Message(dict(header), attachments, nonce), deadline)
            if not secrets.compare_digest(reply.nonce, nonce):
                raise Garbled("a reply to nothing that was asked")
        except (Disconnected, TimedOut, Garbled) as error:
            raise self.lost(error, what, timeout_s) from error
        except BaseException:
            self.end()
            raise
        if "failed" in reply.header:
            self.end()
            raise WorkerLost("crash", f"{what} brought its worker into disorder ({reply.header['failed']})")
        return reply

    def interrupt(self) -> bool:
        """End the worker if another thread waits for its reply, and say whether one does; it gets a WorkerLost."""
        with self._asking:
            if self._asked:
                self._interrupted = True
                self._channel.hang_up()
            return self._asked

    def _exchange(self, message: Message, deadline: float) -> Message:
        with self._asking:
            self._asked = True
        try:
            self._channel.send(message, deadline=deadline)
            return self._channel.receive(deadline=deadline)
        finally:
            with self._asking:
                self._asked = False

    def end(self) -> int | None:
        """Kill the worker. Returns its wait status, or None where that is not known."""
        if self._ended:
            return None
        self._ended = True
        self._channel.close()
        return self._bury()

    def lost(self, error: Exception, what: str, timeout_s: float = 0.0) -> WorkerLost:
        """End the worker because of what it did or said, and say so."""
        status = self.end()
        if self._interrupted:
            return WorkerLost("interrupted", f"{what} was stopped before it answered")
        match error:
            case TimedOut():
                return WorkerLost("timeout", f"{what} did not end within {timeout_s:g} s; its process was killed")
            case Garbled():
                return WorkerLost("crash", f"{what} did not keep to the protocol ({error}); its process was killed")
            case _:
                return WorkerLost("crash", f"{what} ended its process{_how(status)}")


def _how(status: int | None) -> str:
    if status is None:
        return ""
    if os.WIFSIGNALED(status):
        return f" ({signal.Signals(os.WTERMSIG(status)).name})"
    return f" (exit code {os.waitstatus_to_exitcode(status)})"


def _last_words(process: subprocess.Popen[bytes]) -> str:
    """What a process that did not come up said: the exception of a traceback, else its first line."""
    assert process.stderr is not None
    with process.stderr:
        lines = process.stderr.read().decode(errors="replace").strip().splitlines() or ["it ended without a word"]
    return lines[-1 if lines[0].startswith(("Traceback", "File")) else 0].strip().rstrip(".")


def _named(python: str) -> str:
    if python == sys.executable:
        return f"The interpreter {python}"
    return f"The interpreter {python} (worker_python in the settings)"


def _environment(folder: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    fixed = {
        "HOME": folder,
        "TMPDIR": folder,
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",  # sets and dicts of strings in the same order in every worker
        "PYTHONUTF8": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return {**kept, **fixed}


def default_python() -> str:
    """The interpreter that runs us."""
    return sys.executable or str(Path(sys.prefix) / "bin" / "python3")
