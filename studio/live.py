"""The environments this studio has running: one sandbox host, and the last few programs loaded in it.

Every method may take seconds and is called in a thread.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.model import Environment, Verifier, content_hash
from pipeline.snapshots import snapshot_file, snapshot_key
from pipeline.workspace import Workspace

if TYPE_CHECKING:
    from pipeline.runtime.host import Host, HostedProgram, Verdict

KEPT = 4
"""Programs kept loaded; each is a process of some 50 MB."""


class Live:
    """Builds, loads and verifies for the screens of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._host: Host | None = None
        self._programs: OrderedDict[tuple[str, str, str], HostedProgram] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False

    def snapshot(self, env: Environment) -> Path:
        """The file with an environment's initial database, built first if need be."""
        return snapshot_file(self._workspace, env, self._started())

    def program(self, env: Environment) -> HostedProgram:
        """The environment's program, loaded first if need be. Raises LoadFailed where its code cannot be loaded."""
        key = (env.name, snapshot_key(env), content_hash(env.code or ""))
        with self._lock:
            if key in self._programs:
                self._programs.move_to_end(key)
                return self._programs[key]
        program = self._started().program(env)
        with self._lock:
            self._programs[key] = program
            old = [self._programs.popitem(last=False)[1] for _ in range(len(self._programs) - KEPT)]
        for forgotten in old:
            forgotten.close()
        return program

    def verify(self, verifier: Verifier, initial: bytes, final: bytes, answer: str | None) -> Verdict:
        """What a verifier says about two snapshots and an answer."""
        return self._started().verify(verifier, initial, final, answer)

    def close(self) -> None:
        """End all workers; calls that are still running return with an error."""
        with self._lock:
            self._closed = True
            self._programs.clear()
            host, self._host = self._host, None
        if host is not None:
            host.close()

    def _started(self) -> Host:
        from pipeline.runtime.host import Host

        from pipeline.runtime.limits import Limits

        settings = self._workspace.settings
        with self._lock:
            if self._closed:
                raise UserError("The studio is closing.")
            if self._host is None:
                limits = Limits(call_timeout_s=settings.call_timeout_s, memory_mb=settings.memory_mb)
                self._host = Host(python=settings.worker_python, limits=limits)
            return self._host
