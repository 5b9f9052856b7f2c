"""A worker: the process that one untrusted program, or one verifier, runs in."""

from __future__ import annotations

import contextlib
import importlib
import os
import socket
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from pipeline.model import TableRows, TableSchema
from pipeline.runtime import probe, verifier_worker
from pipeline.runtime.build import build
from pipeline.runtime.limits import Limits
from pipeline.runtime.rpc import Channel, Disconnected, Message
from pipeline.runtime.sandbox import lock_down, readable_paths

PRELOADED = (
    "_strptime",
    "csv",
    "decimal",
    "email_validator",
    "encodings.idna",
    "fastapi.middleware.cors",
    "fastapi.responses",
    "fastapi.security",
    "fastapi.testclient",
    "python_multipart",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "sqlalchemy.ext.asyncio",
    "sqlalchemy.ext.declarative",
    "sqlalchemy.ext.hybrid",
    "statistics",
    "zoneinfo",
)
"""What generated code imports: once, in the fork server, rather than in every worker. So are the modules that Python
itself imports late (dates, host names), which a locked-down process might not reach."""

Reply = tuple[dict[str, Any], Sequence[bytes]]
OUT_OF_MEMORY = 3
"""Exit code of a worker without the memory to say so."""


def preload() -> None:
    """Do once what every worker would do; modules that this interpreter lacks are left out."""
    readable_paths()
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def run(connection: int, folder: Path, limits: Limits, *, keep_writable: bool, parent: int) -> None:
    """Lock this process down and answer requests until the host goes away. Does not return."""
    os.environ.update(HOME=str(folder), TMPDIR=str(folder))
    layers = lock_down(folder, limits, keep_writable=keep_writable)
    if os.getppid() != parent:  # it died before the kernel was told to kill us with it
        os._exit(0)
    channel = Channel(socket.socket(fileno=connection), limit=limits.reply_mb << 20)
    channel.send(Message({"layers": {name: asdict(layer) for name, layer in layers.items()}}))
    service = Service(folder, limits)
    try:
        while True:
            request = channel.receive()
            header, attachments = service.answer(request)
            channel.send(Message(header, attachments, request.nonce))
    except Disconnected:
        os._exit(0)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


class Service:
    """Answers the host's requests; holds at most one program."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder = folder
        self._limits = limits
        self._engine: Any = None

    def answer(self, request: Message) -> Reply:
        """The reply to a request, by its `op`. What a request is and gives is said at the methods."""
        header, attachments = getattr(self, f"_{request.header['op']}")(request.header, *request.attachments)
        if sum(map(len, attachments)) > self._limits.reply_mb << 20:
            return {"too_large": sum(map(len, attachments))}, ()
        return header, attachments

    def _probe(self, header: dict[str, Any]) -> Reply:
        """What the sandbox prevents here, by layer."""
        return {"refused": probe.attempts(self._limits)}, ()

    def _build(self, header: dict[str, Any]) -> Reply:
        """A database from `schema` and `sample`; its snapshot is the attachment."""
        schema = [TableSchema(**{**table, "indexes": tuple(table["indexes"])}) for table in header["schema"]]
        sample = [TableRows(rows["table"], tuple(rows["inserts"])) for rows in header["sample"]]
        made = asdict(build(schema, sample, now=_time(header["now"]), strict=header["strict"]))
        snapshot = made.pop("snapshot")
        return {"build": made}, (snapshot,)

    def _verify(self, header: dict[str, Any], code: bytes, initial: bytes, final: bytes, answer: bytes) -> Reply:
        """One verdict; the evidence is the attachment."""
        task = verifier_worker.Task(
            code=code.decode("utf-8", "surrogatepass"),
            mode=header["mode"],
            initial=initial,
            final=final,
            answer=answer.decode("utf-8", "surrogatepass"),
            now=datetime.fromisoformat(header["now"]),
            timeout_s=header["timeout_s"],
        )
        verdict = verifier_worker.judge(task, self._folder)
        evidence = verdict.pop("evidence")
        return verdict, () if evidence is None else (evidence.encode(),)


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
