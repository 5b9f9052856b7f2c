"""What a verifier gets in place of `sqlite3.connect`: the two databases, read only, every statement recorded."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from pipeline.runtime.clock import Clock, pin_sql_time

STATEMENTS_KEPT = 1000
"""Statements recorded for one verdict; those that failed are kept beyond that, up to as many again."""
SQL_KEPT = 2000
"""Characters kept of one statement's text."""
READS_KEPT = 5000
"""Columns noted as read for one verdict."""
STEPS_BETWEEN_CHECKS = 100_000
"""Virtual machine instructions of SQLite (some 5 ms) between two looks at the time limit."""

FACTORY_POSITION = 5
"""Where `sqlite3.connect` takes `factory` when everything is passed by position, `database` being 0."""

MEMORY = ":memory:"
OTHER = "other"
"""The `db` of statements on a database that is neither the initial nor the final one."""

Statement = dict[str, Any]
"""`db`, `sql`, `ok`, `error` of one statement."""


class Databases:
    """Opens databases for a verifier: `connect` and `factory` replace `sqlite3.connect` and `sqlite3.Connection`.

    `statements` are those that ran; `reads` the (label, table, column) they looked at, with an empty column where only
    the number of rows mattered.

    `paths` are the names under which a verifier knows its databases, with their labels. Where `snapshots` has a
    label, opening that path gives a copy of these bytes in memory that refuses writes; otherwise the file there is
    opened. `deadline` (of `time.monotonic`) ends SQL that runs too long, which `interrupted` then says.
    """

    def __init__(
        self,
        paths: Mapping[str, str],
        snapshots: Mapping[str, bytes],
        clock: Clock,
        *,
        deadline: float,
        real_connect: Callable[..., sqlite3.Connection] = sqlite3.connect,
    ) -> None:
        self._paths = {os.path.realpath(path): label for path, label in paths.items()}
        self._snapshots = snapshots
        self._clock = clock
        self._deadline = deadline
        self.interrupted = False
        self._real_connect = real_connect
        self.statements: list[Statement] = []
        self.reads: set[tuple[str, str, str]] = set()
        self.factory = type("Connection", (_TracedConnection,), {"databases": self})

    def connect(self, database: Any, *arguments: Any, **options: Any) -> sqlite3.Connection:
        """As `sqlite3.connect`."""
        if len(arguments) < FACTORY_POSITION:
            options.setdefault("factory", self.factory)
        return self._real_connect(database, *arguments, **options)

    def expired(self) -> bool:
        """Whether the time limit has passed."""
        return time.monotonic() > self._deadline

    def _interrupts(self) -> bool:
        self.interrupted = self.interrupted or self.expired()
        return self.interrupted

    def label(self, database: Any, *, is_uri: bool) -> str:
        """`initial`, `final` or `other`, from what was passed to `connect`."""
        if isinstance(database, int):
            return OTHER
        name = os.fsdecode(database)
        if is_uri and name.startswith("file:"):
            parts = urlsplit(name)
            if parse_qs(parts.query).get("mode") == ["memory"]:
                return OTHER
            name = unquote(parts.path)
        return self._paths.get(os.path.realpath(name), OTHER)

    def prepare(self, connection: sqlite3.Connection, label: str) -> None:
        """Fill a new connection with what it stands for."""
        if label in self._snapshots:
            connection.deserialize(self._snapshots[label])
            sqlite3.Cursor(connection).execute("PRAGMA query_only = ON")
        sqlite3.Cursor(connection).execute("PRAGMA temp_store = MEMORY")  # there is nowhere to write
        pin_sql_time(connection, self._clock)
        connection.set_progress_handler(self._interrupts, STEPS_BETWEEN_CHECKS)
        connection.set_authorizer(partial(self._note_read, label))

    def _note_read(self, label: str, action: int, table: str | None, column: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_READ and table is not None and len(self.reads) < READS_KEPT:
            self.reads.add((label, table, column or ""))
        return sqlite3.SQLITE_OK

    @contextmanager
    def recorded(self, label: str, sql: object) -> Generator[Statement]:
        """Record a statement that runs inside."""
        statement: Statement = {"db": label, "sql": str(sql)[:SQL_KEPT], "ok": True, "error": None}
        if len(self.statements) < STATEMENTS_KEPT:
            self.statements.append(statement)
        try:
            yield statement
        except sqlite3.Error as error:
            self.failed(statement, error)
            raise

    def failed(self, statement: Statement, error: sqlite3.Error) -> None:
        """Note that a recorded statement failed, when it ran or while its rows were fetched."""
        statement.update(ok=False, error=str(error))
        if len(self.statements) < 2 * STATEMENTS_KEPT and not any(known is statement for known in self.statements):
            self.statements.append(statement)


class _TracedConnection(sqlite3.Connection):
    databases: Databases

    def __init__(self, database: Any, *arguments: Any, **options: Any) -> None:
        is_uri = bool(options.get("uri", arguments[6] if len(arguments) > 6 else False))
        self.label = self.databases.label(database, is_uri=is_uri)
        in_memory = self.label in self.databases._snapshots
        super().__init__(MEMORY if in_memory else database, *arguments, **options)
        self.databases.prepare(self, self.label)

    def cursor(self, factory: Any = None) -> Any:
        return super().cursor(factory or _TracedCursor)

    # sqlite3's own shortcuts make plain cursors, past the method above.
    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        return self.cursor().execute(*arguments)

    def executemany(self, *arguments: Any) -> sqlite3.Cursor:
        return self.cursor().executemany(*arguments)

    def executescript(self, *arguments: Any) -> sqlite3.Cursor:
        return self.cursor().executescript(*arguments)


class _TracedCursor(sqlite3.Cursor):
    connection: _TracedConnection
    _statement: Statement | None = None

    def execute(self, sql: str, *arguments: Any) -> _TracedCursor:
        with self._recorded(sql):
            super().execute(sql, *arguments)
        return self

    def executemany(self, sql: str, *arguments: Any) -> _TracedCursor:
        with self._recorded(sql):
            super().executemany(sql, *arguments)
        return self

    def executescript(self, sql_script: str) -> _TracedCursor:
        with self._recorded(sql_script):
            super().executescript(sql_script)
        return self

    # Rows are computed while they are fetched, so a damaged page is first met here.
    def fetchone(self) -> Any:
        with self._fetching():
            return super().fetchone()

    def fetchmany(self, *arguments: Any, **options: Any) -> list[Any]:
        with self._fetching():
            return super().fetchmany(*arguments, **options)

    def fetchall(self) -> list[Any]:
        with self._fetching():
            return super().fetchall()

    def __next__(self) -> Any:
        with self._fetching():
            return super().__next__()

    @contextmanager
    def _recorded(self, sql: object) -> Generator[None]:
        with self.connection.databases.recorded(self.connection.label, sql) as self._statement:
            yield

    @contextmanager
    def _fetching(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if self._statement is not None:
                self.connection.databases.failed(self._statement, error)
            raise
