"""Has a worker build an environment's database and load its code, and says plainly where that fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, TypeVar

from pipeline.errors import UserError
from pipeline.findings import Finding
from pipeline.model import Environment
from pipeline.runtime import wire
from pipeline.runtime.build import Build
from pipeline.runtime.launcher import Launcher, Worker, WorkerLost
from pipeline.runtime.limits import Limits
from pipeline.runtime.rpc import Garbled, Message
from pipeline.runtime.tools import Tool

T = TypeVar("T")

REMEDIES = {
    "syntax": "Correct the code.",
    "newer_python": "Choose a newer interpreter as worker_python in the settings.",
    "missing_module": "Install the package for the workers' interpreter, or do without it in the code.",
    "async_engine": "Use sqlalchemy.create_engine and synchronous sessions.",
    "no_app": "Define `app = FastAPI()` in the code.",
    "exception": "Correct the code so that importing it does not fail.",
    "timeout": "Make it take less time.",
    "crash": "Correct it so that it does not end its process.",
}
"""What to do about each kind of fault."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a worker says about a program it has loaded."""

    tools: tuple[Tool, ...]
    findings: tuple[Finding, ...]
    template: bytes
    tables_added: tuple[str, ...]


class LoadFailed(UserError):
    """An environment's database cannot be built or its code not be loaded; `finding` says why."""

    def __init__(self, env: Environment, kind: str, where: str, message: str, evidence: str = "") -> None:
        super().__init__(f"{env.name} cannot be run: {message}")
        self.finding = Finding(
            f"load_{kind}",
            "error",
            where,
            message,
            evidence=evidence,
            remedy=REMEDIES.get(kind, "Correct it."),
            tasks=tuple(range(len(env.tasks))),
        )


def start_worker(launcher: Launcher, env: Environment) -> Worker:
    """A worker for an environment. Raises LoadFailed where none comes up."""
    try:
        return launcher.start()
    except WorkerLost as lost:
        raise LoadFailed(env, lost.kind, "worker", f"{lost}.") from lost


def build_in(worker: Worker, env: Environment, *, now: datetime | None, strict: bool, limits: Limits) -> Build:
    """Build an environment's database in a worker that has not loaded code. Raises LoadFailed."""
    tables = {"schema": [asdict(table) for table in env.schema], "sample": [asdict(rows) for rows in env.sample]}
    header = {"op": "build", "now": now and now.isoformat(), "strict": strict}
    return _ask(worker, env, "database", header, json.dumps(tables).encode(), limits=limits, read=wire.read_build)


def load_in(worker: Worker, env: Environment, snapshot: bytes, *, now: datetime | None, limits: Limits) -> Loaded:
    """Load an environment's code, which must exist, on a database. Raises LoadFailed."""
    header = {"op": "load", "name": env.name, "now": now and now.isoformat()}
    code = (env.code or "").encode("utf-8", "surrogatepass")

    def read(message: Message) -> Loaded:
        fault = message.header.get("fault")
        if fault is not None:
            raise _load_failed(env, wire.read_fault(fault))
        return Loaded(
            wire.read_tools(message),
            wire.read_findings(message),
            wire.read_snapshot(message),
            wire.read_names(message, "tables_added"),
        )

    return _ask(worker, env, "code", header, code, snapshot, limits=limits, read=read)


def _ask(
    worker: Worker,
    env: Environment,
    part: str,
    header: dict[str, Any],
    *attachments: bytes,
    limits: Limits,
    read: Callable[[Message], T],
) -> T:
    what = {"database": "building the database", "code": "loading the code"}[part]
    try:
        reply = worker.request(header, attachments, timeout_s=limits.load_timeout_s, what=what)
        return read(reply)
    except Garbled as error:
        lost = worker.lost(error, what)
        raise LoadFailed(env, lost.kind, part, f"{lost}.") from error
    except WorkerLost as lost:
        raise LoadFailed(env, lost.kind, part, f"{lost}.") from lost


def _load_failed(env: Environment, fault: wire.Fault) -> LoadFailed:
    where = "code" if fault.line is None else f"code:{fault.line}"
    return LoadFailed(env, fault.kind, where, fault.message, evidence=fault.code_line)
