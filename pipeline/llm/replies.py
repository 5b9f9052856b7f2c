"""Every request and the reply to it, kept in the workspace so that nothing is asked, or paid for, twice."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import zlib
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from pipeline.errors import UserError
from pipeline.llm.faults import FaultKind, ModelFault
from pipeline.llm.request import Reply, Tokens, ToolCall, Usage

FILE_NAME = "replies.db"
"""The file in a workspace; copy it into another workspace to replay a run there."""

_VERSION = 1
_TABLES = """
CREATE TABLE IF NOT EXISTS text (sha BLOB PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS exchange (
    key TEXT PRIMARY KEY, request BLOB NOT NULL, reply BLOB NOT NULL, at TEXT NOT NULL
) WITHOUT ROWID;
"""


class Replies:
    """Requests and replies by the request's key, in one SQLite file that several processes may share.

    Message texts are stored once each: the twenty requests for one environment's verifiers share most of theirs.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, making it if it is not there. Raises UserError where it is not ours."""
        self.path = path
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode=WAL")
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version > _VERSION:
                raise UserError(f"{path} was written by a newer awm-studio: update this one to read it.")
            self._db.executescript(_TABLES)
            self._db.execute(f"PRAGMA user_version={_VERSION}")
        except sqlite3.DatabaseError as error:
            raise UserError(f"{path} cannot be used as the store of model replies: {error}.") from error

    def get(self, key: str) -> Reply | None:
        """The reply to a request, marked as replayed, or None if it was never asked."""
        with self._lock:
            row = self._db.execute("SELECT reply, at FROM exchange WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        reply = orjson.loads(zlib.decompress(row[0]))
        return Reply(
            text=reply["text"],
            thinking=reply["thinking"],
            finish=reply["finish"],
            refusal=reply["refusal"],
            model=reply["model"],
            usage=Usage(**reply["usage"]),
            at=datetime.fromisoformat(row[1]),
            keys=(key,),
            replayed=True,
            calls=tuple(ToolCall(**call) for call in reply.get("calls", ())),
            tokens=Tokens(**{name: tuple(ids) for name, ids in reply.get("tokens", {}).items()}),
        )

    def request(self, key: str) -> dict[str, Any] | None:
        """The request document that a reply answered (see `Request.document`), or None."""
        with self._lock:
            row = self._db.execute("SELECT request FROM exchange WHERE key = ?", (key,)).fetchone()
            if row is None:
                return None
            document = orjson.loads(zlib.decompress(row[0]))
            for message in document["messages"]:
                sha = bytes.fromhex(message.pop("sha"))
                body = self._db.execute("SELECT body FROM text WHERE sha = ?", (sha,)).fetchone()[0]
                message["content"] = zlib.decompress(body).decode()
        return document

    def put(self, key: str, document: dict[str, Any], reply: Reply) -> None:
        """Keep a reply; the first one for a key stays. Raises ModelFault where the disk is full."""
        texts, messages = [], []
        for message in document["messages"]:
            body = message["content"].encode()
            sha = hashlib.sha256(body).digest()
            texts.append((sha, zlib.compress(body)))
            messages.append({name: value for name, value in message.items() if name != "content"} | {"sha": sha.hex()})
        answer = {
            "text": reply.text,
            "thinking": reply.thinking,
            "finish": reply.finish,
            "refusal": reply.refusal,
            "model": reply.model,
            "usage": {name: getattr(reply.usage, name) for name in Usage.__slots__},
        }
        if reply.calls:
            answer["calls"] = [asdict(call) for call in reply.calls]
        if reply.tokens != Tokens():
            answer["tokens"] = asdict(reply.tokens)
        row = (
            key,
            zlib.compress(orjson.dumps({**document, "messages": messages})),
            zlib.compress(orjson.dumps(answer)),
            (reply.at or datetime.now(UTC)).isoformat(),
        )
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.executemany("INSERT OR IGNORE INTO text VALUES (?, ?)", texts)
                self._db.execute("INSERT OR IGNORE INTO exchange VALUES (?, ?, ?, ?)", row)
                self._db.execute("COMMIT")
            except sqlite3.OperationalError as error:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise disk_fault(error, self.path) from error

    def keep(self, content: str) -> str:
        """Keep a text by itself; returns the digest to ask for it by. Raises ModelFault where the disk is full."""
        body = content.encode()
        sha = hashlib.sha256(body).digest()
        with self._lock:
            try:
                self._db.execute("INSERT OR IGNORE INTO text VALUES (?, ?)", (sha, zlib.compress(body)))
            except sqlite3.OperationalError as error:
                raise disk_fault(error, self.path) from error
        return sha.hex()

    def text(self, digest: str) -> str:
        """A text that was kept. Raises KeyError where there is none."""
        with self._lock:
            row = self._db.execute("SELECT body FROM text WHERE sha = ?", (bytes.fromhex(digest),)).fetchone()
        if row is None:
            raise KeyError(digest)
        return zlib.decompress(row[0]).decode()

    def count(self) -> int:
        """How many exchanges are kept."""
        with self._lock:
            return self._db.execute("SELECT count(*) FROM exchange").fetchone()[0]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()


def disk_fault(error: Exception, path: Path) -> ModelFault:
    """The fault of a reply that was received and cannot be written."""
    return ModelFault(
        FaultKind.disk_full,
        f"{path} cannot be written ({error}).",
        "Free some space (or the file from what locks it), then resume: what was written before is kept.",
    )
