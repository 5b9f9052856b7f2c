"""A worker: the process that one untrusted program, or one verifier, runs in."""

from __future__ import annotations

import contextlib
import importlib
import json
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
from pipeline.runtime.edits import apply_edits
from pipeline.runtime.engine import Engine
from pipeline.runtime.limits import Limits
from pipeline.runtime.program import LoadError, load
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
    "sqlalchemy.ext.declarative",
    "sqlalchemy.ext.hybrid",
    "statistics",
    "zoneinfo",
)
"""What generated code imports: once, in the fork server, rather than in every worker. So are the modules that Python
itself imports late (dates, host names), which a locked-down process might not reach."""

Answer = tuple[dict[str, Any], Sequence[bytes]]
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode

OUT_OF_MEMORY = 3
"""Exit code of a worker without the memory to say so."""


def preload() -> None:
    """Do once what every worker would do; modules that this interpreter lacks are left out."""
    readable_paths()
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def run(connection: int, shared: Path, limits: Limits, *, keep_writable: bool, parent: int) -> None:
    """Lock this process down (see `lock_down`) and answer requests until the host goes away. Does not return."""
    channel = Channel(socket.socket(fileno=connection), limit=limits.reply_mb << 20)
    try:
        layers = lock_down(shared, limits, keep_writable=keep_writable)
    except Exception as error:  # our own fault, or a kernel's that nobody has met yet: let it be known
        channel.send(Message({"failed": f"{type(error).__name__}: {error}"}))
        os._exit(1)
    if os.getppid() != parent:  # it died before the kernel was told to kill us with it
        os._exit(0)
    channel.send(Message({"layers": {name: asdict(layer) for name, layer in layers.items()}}))
    service = Service(Path.cwd(), limits)
    request = Message({})
    try:
        while True:
            request = channel.receive()
            header, attachments = service.answer(request)
            channel.send(Message(header, attachments, request.nonce))
    except Disconnected:
        os._exit(0)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except Exception as error:  # nothing generated code raises comes this far, so this process cannot be relied on
        channel.send(Message({"failed": f"{type(error).__name__}: {error}"}, nonce=request.nonce))
        os._exit(1)


class Service:
    """Answers the host's requests; holds at most one program."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder = folder
        self._limits = limits
        self._engine: Engine | None = None

    def answer(self, request: Message) -> Answer:
        """The reply to a request, by its `op`. What a request is and gives is said at the methods."""
        if self._engine is not None:
            self._engine.drop(request.header.get("drop", ()))
        header, attachments = getattr(self, f"_{request.header['op']}")(request.header, *request.attachments)
        size = sum(map(len, attachments))
        if size > self._limits.reply_mb << 20:
            return {**header, "too_large": size}, ()
        return header, attachments

    def _probe(self, header: dict[str, Any]) -> Answer:
        """What the sandbox prevents here, by layer."""
        return {"refused": probe.attempts(self._limits)}, ()

    def _build(self, header: dict[str, Any], tables: bytes) -> Answer:
        """A database from JSON of `schema` and `sample`; its snapshot is the attachment."""
        given = json.loads(tables)
        schema = [TableSchema(t["name"], t["ddl"], tuple(t["indexes"])) for t in given["schema"]]
        sample = [TableRows(t["table"], tuple(t["inserts"])) for t in given["sample"]]
        made = asdict(build(schema, sample, now=_time(header["now"]), strict=header["strict"]))
        snapshot = made.pop("snapshot")
        return {"build": made}, (snapshot,)

    def _load(self, header: dict[str, Any], source: bytes, template: bytes) -> Answer:
        """Load the program this worker is for; the attachment is its first state."""
        text = source.decode("utf-8", "surrogatepass")
        try:
            program = load(text, name=header["name"], template=template, now=_time(header["now"]))
        except LoadError as error:
            fault = {"kind": error.kind, "message": error.message, "line": error.line, "code_line": error.code_line}
            return {"fault": fault}, ()
        self._engine = Engine(program)
        known = {
            "tools": [asdict(tool) for tool in program.tools],
            "findings": [asdict(finding) for finding in program.findings],
            "tables_added": program.tables_added,
        }
        return known, (program.template,)

    def _call(self, header: dict[str, Any], arguments: bytes) -> Answer:
        """Call a tool in a state; the attachments are the body's JSON and the text shown to agents."""
        engine = self._loaded
        state, reply = engine.call(
            header["state"], header["tick"], header["tool"], json.loads(arguments), timeout=header["timeout_s"]
        )
        body = _encode(reply["body"]).encode("utf-8", "replace")
        text = reply["text"].encode("utf-8", "replace")  # a lone surrogate can be sent to nobody
        size = len(engine.get(state))
        return {"state": state, "size": size, "status": reply["status"], "error": reply["error"]}, (body, text)

    def _put(self, header: dict[str, Any], snapshot: bytes) -> Answer:
        """Keep a snapshot as a state."""
        return {"state": self._loaded.put(snapshot)}, ()

    def _get(self, header: dict[str, Any]) -> Answer:
        """The snapshot of a state."""
        return {}, (self._loaded.get(header["state"]),)

    def _stats(self, header: dict[str, Any]) -> Answer:
        """What the engine counts."""
        return {"stats": self._loaded.stats()}, ()

    def _edit(self, header: dict[str, Any], snapshot: bytes) -> Answer:
        """Copies of a database with changes made; `made` says which could be, and those are the attachments."""
        copies = list(apply_edits(snapshot, header["changes"], now=datetime.fromisoformat(header["now"])))
        return {"made": [copy is not None for copy in copies]}, [copy for copy in copies if copy is not None]

    def _verify(self, header: dict[str, Any], code: bytes, initial: bytes, final: bytes, answer: bytes) -> Answer:
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

    @property
    def _loaded(self) -> Engine:
        assert self._engine is not None, "the host loads before it calls"
        return self._engine


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
