"""The one database connection of a program: instances' states are swapped in and out of it.

A new connection parses its schema at its first query, which costs more than most calls; putting another state into
an open one costs microseconds. So a program has one connection, every engine and `sqlite3.connect` of the program
hands it out, and at the end of every call whatever that call left on it is taken off again.
"""

from __future__ import annotations

import hashlib
import math
import sqlite3
import time
import weakref
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from typing import Any, NamedTuple

import sqlalchemy
from sqlalchemy.engine import Engine
from sqlalchemy.exc import ArgumentError

from pipeline.runtime.build import FILE_FORMAT, FORMAT_AT
from pipeline.runtime.clock import Clock, pin_sql_time
from pipeline.runtime.connection import InstanceConnection
from pipeline.runtime.pool import Handle, InstancePool

_STATEMENT_CACHE = 512  # prepared statements kept; generated programs have a few hundred distinct ones

_COOKIE = slice(40, 44)  # the schema's version number in a file's header

_READING_PRAGMAS = frozenset(
    {
        *("table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "function_list"),
        *("foreign_key_list", "foreign_key_check", "integrity_check", "quick_check", "collation_list"),
    }
)
"""PRAGMAs whose argument says what to report; with any other, an argument is a setting (sqlite.org/pragma.html)."""

_LASTING = frozenset(
    {
        sqlite3.SQLITE_ALTER_TABLE,
        sqlite3.SQLITE_ANALYZE,
        sqlite3.SQLITE_REINDEX,
        *(
            getattr(sqlite3, f"SQLITE_{verb}_{place}{noun}")
            for verb in ("CREATE", "DROP")
            for place in ("", "TEMP_")
            for noun in ("INDEX", "TABLE", "TRIGGER", "VIEW")
        ),
    }
)
"""Statements that leave something in the connection itself: temporary objects, or its own idea of the schema, which
may differ in detail from the one it would read from the file."""

_ACROSS_STATEMENTS = frozenset({"last_insert_rowid", "changes", "total_changes"})
"""SQL functions whose result is what an earlier statement of the same connection left behind."""

_ENGINE_OPTIONS = frozenset(
    {
        *("execution_options", "hide_parameters", "isolation_level", "json_deserializer", "json_serializer"),
        *("insertmanyvalues_page_size", "label_length", "native_datetime", "query_cache_size", "use_insertmanyvalues"),
    }
)
"""What of `create_engine`'s options is about statements and values rather than about reaching a database."""


class Stored(NamedTuple):
    """A database as bytes, and the key of its schema."""

    snapshot: bytes
    schema: bytes


def schema_key(snapshot: bytes) -> bytes:
    """A digest of what statements are prepared for: the schema with the pages it is on, and its version number.

    A connection that is given another database goes on using the statements it has prepared if the version numbers
    agree, which says enough about one file, but not about two that have gone separate ways.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(snapshot)
        try:
            schema = connection.execute("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master").fetchall()
        except sqlite3.DatabaseError:  # not a database, or a broken one: like no other
            schema = snapshot
    return hashlib.sha256(repr((snapshot[_COOKIE], schema)).encode()).digest()


class Database:
    """What a program's code talks to: one connection that holds one state at a time.

    `load` puts a state in, `state` takes the current one out, `finish` ends a call. `foreign_keys` enforces
    foreign keys; off, as in upstream's servers, unless the program itself turns them on.
    """

    def __init__(self, clock: Clock, start: Stored, *, foreign_keys: bool = False) -> None:
        self.clock = clock
        self.foreign_keys = foreign_keys
        self._pools: list[weakref.ref[InstancePool]] = []
        self.deadline = math.inf
        """The moment (`time.monotonic`) at which a running SQL statement is aborted."""
        self.reads_history = False
        """Whether the program asks what earlier statements of the connection did (`last_insert_rowid()` in SQL). The
        call that shows it may have seen another call's answer and has to be repeated; from then on every call ends
        with a new connection."""
        self.written_for: set[str] = set()
        """The kinds of database that the program's engines are for, other than SQLite."""
        self.owner: Handle | None = None
        """The handle that opened the current transaction, or that used the connection last."""
        self._swapping = False
        self._schema = start.schema
        self._loaded = start.snapshot
        self._connect(start.snapshot)

    def load(self, state: Stored) -> None:
        """Make `state` the one that the program's code sees.

        It is put in even if it is there already: a call must not depend on which call was before it.
        """
        snapshot = state.snapshot
        if state.schema != self._schema:  # the statements that are kept prepared are for another schema
            self._reconnect(snapshot)
            self._schema = state.schema
        else:
            self._deserialize(snapshot)
        self._loaded = snapshot

    def state(self) -> Stored:
        """The current state; its snapshot is the very object that was loaded, if nothing has changed."""
        current = self.connection.serialize()
        if current == self._loaded:
            return Stored(self._loaded, self._schema)
        if current[_COOKIE] != self._loaded[_COOKIE]:
            self._schema = schema_key(current)
        return Stored(current, self._schema)

    def finish(self) -> None:
        """End a call: take back what it left checked out, roll back what it left open, undo what it left behind."""
        for pool in self._living_pools():
            pool.take_back()
        connection = self.connection
        connection.close_all()
        if connection.in_transaction:
            connection.rollback()
        if (
            self.reads_history
            or connection.marked
            or connection.row_factory is not None
            or connection.text_factory is not str
            or connection.isolation_level != self._isolation_level
        ):
            self._reconnect(connection.serialize())

    def _reconnect(self, snapshot: bytes) -> None:
        old = self.connection
        for pool in self._living_pools():
            pool.forget()
        self._connect(snapshot)
        old.close()

    def _deserialize(self, snapshot: bytes) -> None:
        self._swapping = True  # SQLite reopens the database by an ATTACH of its own
        try:
            self.connection.deserialize(snapshot)
            if snapshot[FORMAT_AT : FORMAT_AT + 1] > bytes([FILE_FORMAT]):
                with suppress(sqlite3.DatabaseError):  # not a database after all: the call will find out
                    self.connection.executescript("SELECT 1 FROM sqlite_master LIMIT 0")  # reads the schema
        finally:
            self._swapping = False

    def _connect(self, snapshot: bytes) -> None:
        connection = sqlite3.connect(
            ":memory:", check_same_thread=False, cached_statements=_STATEMENT_CACHE, factory=InstanceConnection
        )
        pin_sql_time(connection, self.clock)
        connection.execute("PRAGMA temp_store = MEMORY")  # for large sorts; a worker may have no folder to write in
        if self.foreign_keys:
            connection.execute("PRAGMA foreign_keys = ON")
        connection.set_authorizer(self._authorize)
        connection.set_progress_handler(self._interrupted, 10_000)
        connection.marked = False
        self.connection = connection
        self._isolation_level = connection.isolation_level
        self._deserialize(snapshot)

    def _interrupted(self) -> bool:
        return time.monotonic() > self.deadline

    def _living_pools(self) -> list[InstancePool]:
        """The pools of engines that are still there; a program may make one in every call."""
        pools = [pool for reference in self._pools if (pool := reference()) is not None]
        if len(pools) < len(self._pools):
            self._pools = [weakref.ref(pool) for pool in pools]
        return pools

    @contextmanager
    def settings(self) -> Generator[None]:
        """What is done to the connection inside is the program's configuration and stays."""
        connection = self.connection
        marked = connection.marked
        yield
        connection.marked = marked
        self._isolation_level = connection.isolation_level

    def _authorize(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action in (sqlite3.SQLITE_READ, sqlite3.SQLITE_SELECT):
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            if second == "load_extension":
                return sqlite3.SQLITE_DENY
            if second in _ACROSS_STATEMENTS:
                self.reads_history = True
        elif action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH):
            return sqlite3.SQLITE_OK if self._swapping else sqlite3.SQLITE_DENY
        elif action in _LASTING or (
            action == sqlite3.SQLITE_PRAGMA and second is not None and str(first).lower() not in _READING_PRAGMAS
        ):
            self.connection.marked = True
        return sqlite3.SQLITE_OK

    def create_engine(self, url: Any = None, **options: Any) -> Engine:
        """What the program gets from `sqlalchemy.create_engine`: an engine on this database, whatever the URL.

        Options about reaching and pooling connections mean nothing here and are left out; so is logging.
        """
        with suppress(ArgumentError):
            self.written_for |= {sqlalchemy.make_url(url).get_backend_name()} - {"sqlite"}
        pool = InstancePool(self)
        self._pools.append(weakref.ref(pool))
        kept = {name: value for name, value in options.items() if name in _ENGINE_OPTIONS}
        return sqlalchemy.create_engine("sqlite://", pool=pool, **kept)

    def connect(self, database: Any = ":memory:", *args: Any, **kwargs: Any) -> Any:
        """What the program gets from `sqlite3.connect`: this database, unless it asks for one in memory."""
        if database == ":memory:":
            connection = sqlite3.connect(database, *args, **kwargs)
            pin_sql_time(connection, self.clock)
            return connection
        return Handle(self)
