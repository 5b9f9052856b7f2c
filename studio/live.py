"""The environments this studio has running: one sandbox host with the last few programs in it, and Datasette.

Every method may take seconds and is called in a thread.
"""

from __future__ import annotations

import tempfile
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import UserError
from pipeline.findings import Finding
from pipeline.model import Environment, Mode, Verifier, content_hash
from pipeline.snapshots import replace_file, snapshot_file, snapshot_key
from studio.datasette import DatasetteServer, Page
from studio.environment_pages import EnvironmentPages, table_texts

if TYPE_CHECKING:
    from curation.audit.probes import Probes
    from pipeline.runtime.host import Host, HostedProgram, Verdict
    from pipeline.stages.step import Step
    from pipeline.workspace import Workspace

KEPT = 4
"""Programs kept loaded; each is a process of some 50 MB."""


class Live:
    """Builds, loads and verifies for the screens of one workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._host: Host | None = None
        self._programs: OrderedDict[tuple[str, str, str], HostedProgram] = OrderedDict()
        self._server: DatasetteServer | None = None
        self._files = tempfile.TemporaryDirectory(prefix="awm-studio-", ignore_cleanup_errors=True)
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

    def verify(self, env: Environment, verifier: Verifier, initial: bytes, final: bytes, answer: str | None) -> Verdict:
        """What a verifier of an environment says about two snapshots and an answer."""
        return self._started().verify(verifier, initial, final, answer, now=env.now)

    def probes(self, env: Environment, task: int, mode: Mode, source: str) -> Probes:
        """Everything an audit tries on one verifier, tried again; `source` says whose its known solution is."""
        from curation.audit.probes import probe_verifier

        return probe_verifier(env, self._started(), task, mode, source=source)

    def check(self, step: Step, content: str) -> Sequence[Finding]:
        """What the checks of a stage's step find in a content."""
        from pipeline.runtime.host import LoadFailed

        try:
            return step.check(content, self._started())
        except LoadFailed as failed:
            return [failed.finding]

    def page(self, env: Environment) -> str:
        """The URL of an environment's database in the browser."""
        return self._serving().url(env.name)

    def changes_page(self, env: Environment, initial: bytes, final: bytes) -> str:
        """The URL of a database as calls left it, with a query a table for what they changed."""
        server = self._serving()
        name = f"{env.name}-calls"
        folder = Path(self._files.name)
        for part, content in (("initial", initial), ("final", final)):
            replace_file(folder / f"{name}-{part}.db", content)
        page = Page(
            path=folder / f"{name}-final.db",
            initial=folder / f"{name}-initial.db",
            title=f"{env.title or env.name}, after calls",
            tables=table_texts(env),
        )
        return server.attach(name, page)

    def close(self) -> None:
        """End all workers and pages; calls that are still running return with an error."""
        with self._lock:
            self._closed = True
            self._programs.clear()
            host, self._host = self._host, None
            server, self._server = self._server, None
        if host is not None:
            host.close()
        if server is not None:
            server.stop()
        self._files.cleanup()

    def _serving(self) -> DatasetteServer:
        with self._lock:
            if self._closed:
                raise UserError("The studio is closing.")
            if self._server is None:
                pages = EnvironmentPages(self._workspace.catalog, self.snapshot)
                server = DatasetteServer(pages, log=self._workspace.logs / "datasette.log")
                server.start()
                self._server = server
            return self._server

    def _started(self) -> Host:
        from pipeline.runtime.host import Host

        with self._lock:
            if self._closed:
                raise UserError("The studio is closing.")
            if self._host is None:
                self._host = Host.from_settings(self._workspace.settings)
            return self._host
