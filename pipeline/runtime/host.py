"""Runs generated environments: builds, loads and calls them, and verifies rollouts, in locked-down processes.

What a program or a verifier does can end its own process and nothing else: each has one, forked ready-made, and the
host keeps a timer over every request. See `sandbox` for what such a process cannot do.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pipeline.errors import UserError
from pipeline.model import DEFAULT_NOW, Environment, Verifier
from pipeline.runtime import verify
from pipeline.runtime.build import Build
from pipeline.runtime.edits import Edit, edit_in
from pipeline.runtime.hosted import HostedProgram, Instance
from pipeline.runtime.launcher import Launcher, Worker, WorkerLost, default_python
from pipeline.runtime.limits import Limits
from pipeline.runtime.loading import LoadFailed, build_in, load_in, start_worker
from pipeline.runtime.replies import CallError, Reply
from pipeline.runtime.sandbox import Layer
from pipeline.runtime.verify import Case, Verdict

if TYPE_CHECKING:
    from pipeline.settings import Settings

__all__ = ["CallError", "Case", "Edit", "Host", "HostedProgram", "Instance", "LoadFailed", "Reply", "Verdict"]

Now = datetime | Literal["live"] | None


class Host:
    """Starts workers for programs and verifiers. A context manager; safe to use from threads.

    `python` is the interpreter of the workers (None: our own), `cache_mb` what each program's transition cache may
    use. Nothing is started before it is needed. Closing ends every process.
    """

    def __init__(self, *, python: str | None = None, limits: Limits | None = None, cache_mb: int = 64) -> None:
        self._limits = limits or Limits()
        self._launcher = Launcher(python or default_python(), self._limits)
        self._cache_bytes = cache_mb << 20
        self._programs: set[HostedProgram] = set()

    @classmethod
    def from_settings(cls, settings: Settings) -> Host:
        """A host as a person's settings want it."""
        limits = Limits(call_timeout_s=settings.call_timeout_s, memory_mb=settings.memory_mb)
        return cls(python=settings.worker_python, limits=limits)

    def build(self, env: Environment, *, now: Now = None, strict: bool = False) -> Build:
        """Build an environment's database. `now` as in `program`, `strict` as in `build.build`.

        Statements that fail are in the result. Raises LoadFailed where the build ends or hangs its process.
        """
        worker = start_worker(self._launcher, env)
        try:
            return build_in(worker, env, now=_moment(env, now), strict=strict, limits=self._limits)
        finally:
            worker.end()

    def program(
        self, env: Environment, *, now: Now = None, snapshot: bytes | None = None, cache: bool = True
    ) -> HostedProgram:
        """Load an environment's program, on its freshly built database or on `snapshot`.

        `now` is the time its instances begin at: None for the environment's own, "live" for the machine's clock,
        with which nothing can be repeated and so nothing is cached. Raises LoadFailed where its code does not load.
        """
        if env.code is None:
            raise LoadFailed(env, "no_code", "code", "it has no code.")
        moment = _moment(env, now)
        worker = start_worker(self._launcher, env)
        try:
            build = None
            if snapshot is None:
                build = build_in(worker, env, now=moment, strict=False, limits=self._limits)
            state = build.snapshot if build is not None else snapshot or b""
            loaded = load_in(worker, env, state, now=moment, limits=self._limits)
        except BaseException:
            worker.end()
            raise
        program = HostedProgram(
            env.name,
            worker,
            loaded,
            build,
            reload=lambda: self._reload(env, state, moment),
            on_close=self._programs.discard,
            limits=self._limits,
            cache_bytes=self._cache_bytes if cache and moment is not None else 0,
        )
        self._programs.add(program)
        return program

    def initial(self, env: Environment, *, now: Now = None) -> tuple[bytes, Build]:
        """The database that instances start with, and how it was built: with the tables that the code itself adds.

        Raises LoadFailed as `program` does, except that an environment without code is only built.
        """
        if env.code is None:
            build = self.build(env, now=now)
            return build.snapshot, build
        with self.program(env, now=now) as program:
            assert program.build is not None
            return program.template, program.build

    def verify(
        self,
        verifier: Verifier,
        initial: bytes,
        final: bytes,
        answer: str | None = None,
        *,
        now: datetime = DEFAULT_NOW,
    ) -> Verdict:
        """What a verifier says about two snapshots and an answer; `now` is the time it sees."""
        return verify.ask(self._launcher, verifier, Case(initial, final, answer, now), limits=self._limits)

    def verdicts(self, verifier: Verifier, cases: Iterable[Case]) -> Generator[Verdict]:
        """What one verifier says about many cases, in order: as `verify`, but quicker. See `verify.ask_all`."""
        return verify.ask_all(self._launcher, verifier, cases, limits=self._limits)

    def edit(
        self, snapshot: bytes, changes: Sequence[Sequence[Edit]], *, now: datetime = DEFAULT_NOW
    ) -> list[bytes | None]:
        """Copies of a database, each with its changes made; None where the tables' own rules forbid them.

        `now` is the time that the tables' own expressions see. Raises WorkerLost where the database ends its worker.
        """
        worker = self._launcher.start()
        try:
            return edit_in(worker, snapshot, changes, now=now, limits=self._limits)
        finally:
            worker.end()

    def sandbox(self) -> Mapping[str, Layer]:
        """What the sandbox does on this machine, by layer, tried in a worker. Raises UserError if none can start."""
        worker = self._launcher.start()
        try:
            refused = worker.request({"op": "probe"}, timeout_s=self._limits.load_timeout_s, what="the probe").header
        except WorkerLost as lost:
            raise UserError(f"The sandbox cannot be tried: {lost}.") from lost
        finally:
            worker.end()
        return {
            name: Layer(False, "it did not prevent what it should") if refused["refused"].get(name) is False else layer
            for name, layer in worker.layers.items()
        }

    @property
    def server_pid(self) -> int | None:
        """The process id of the fork server, once a worker has been needed."""
        return self._launcher.server_pid

    @property
    def folder(self) -> Path | None:
        """Where workers' private folders are, once a worker has been needed. It is removed at the end."""
        return self._launcher.folder

    def close(self) -> None:
        """End every process. Calls that are running come back with an error."""
        self._launcher.close()
        for program in list(self._programs):
            program.close()

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _reload(self, env: Environment, snapshot: bytes, moment: datetime | None) -> Worker:
        worker = self._launcher.start()
        try:
            load_in(worker, env, snapshot, now=moment, limits=self._limits)
        except BaseException as error:
            worker.end()
            if isinstance(error, LoadFailed):
                raise WorkerLost("crash", f"{env.name} could not be loaded again: {error.finding.message}") from error
            raise
        return worker


def _moment(env: Environment, now: Now) -> datetime | None:
    if now == "live":
        return None
    return env.now if now is None else now
