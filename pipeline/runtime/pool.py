"""How a program's engines and sessions share its one connection."""

from __future__ import annotations

import sqlite3
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import sqlalchemy
from sqlalchemy import event
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry, Pool, _ConnectionRecord

from pipeline.runtime.connection import InstanceConnection

if TYPE_CHECKING:
    from pipeline.runtime.database import Database


class Handle:
    """One user's hold on the shared connection: a session's, or one that `sqlite3.connect` gave.

    It stands for a `sqlite3.Connection` of its own. Transactions belong to the handle whose statement opened them:
    while one is open, commits and rollbacks of other handles wait for it (to be exact: they do nothing), so that a
    helper that opens, reads and closes a session of its own does not end its caller's transaction.
    """

    def __init__(self, database: Database) -> None:
        vars(self).update(_database=database, row_factory=None)

    def cursor(self, *args: Any, **kwargs: Any) -> sqlite3.Cursor:
        """As `sqlite3.Connection.cursor`."""
        database = self._database
        if not database.connection.in_transaction:
            database.owner = self
        cursor = database.connection.cursor(*args, **kwargs)
        if self.row_factory is not None:
            cursor.row_factory = self.row_factory
        return cursor

    def execute(self, *args: Any) -> sqlite3.Cursor:
        """As `sqlite3.Connection.execute`."""
        return self.cursor().execute(*args)

    def executemany(self, *args: Any) -> sqlite3.Cursor:
        """As `sqlite3.Connection.executemany`."""
        return self.cursor().executemany(*args)

    def executescript(self, script: str) -> sqlite3.Cursor:
        """As `sqlite3.Connection.executescript`."""
        return self.cursor().executescript(script)

    def commit(self) -> None:
        """Commit this handle's transaction."""
        if self._database.owner is self:
            self._database.connection.commit()

    def rollback(self) -> None:
        """Roll back this handle's transaction."""
        if self._database.owner is self:
            self._database.connection.rollback()

    def close(self) -> None:
        """Roll back; the connection stays open, it is the program's."""
        self.rollback()

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.commit() if kind is None else self.rollback()

    @property
    def __class__(self) -> type:  # "connect" listeners ask isinstance(connection, sqlite3.Connection)
        return InstanceConnection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database.connection, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "row_factory":
            vars(self)[name] = value
        else:
            setattr(self._database.connection, name, value)


class InstancePool(Pool):
    """A SQLAlchemy pool over the program's one connection: every checkout is another handle on it."""

    def __init__(self, database: Database) -> None:
        super().__init__(self._handle, reset_on_return=None)
        self._database = database
        self.out: list[_ConnectionRecord] = []
        self._idle: list[_ConnectionRecord] = []
        self.sessions: list[weakref.ref[Session]] = []

    def _handle(self) -> Any:
        return Handle(self._database)

    def _do_get(self) -> _ConnectionRecord:
        if self._idle:
            record = self._idle.pop()
        else:
            with self._database.settings():  # listeners for "connect" run here: PRAGMAs, functions
                record = _ConnectionRecord(self)
        self.out.append(record)
        return record

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        if isinstance(record, _ConnectionRecord) and record in self.out:  # and was not taken back before
            self.out.remove(record)
            self._idle.append(record)
            if record.dbapi_connection is not None:
                record.dbapi_connection.rollback()

    def take_back(self) -> None:
        """Close the sessions that this call began, and disown what is still out.

        Whoever holds it: when it is collected later, nothing must happen to other calls. Sessions are closed even if
        they gave their connection back, because what they have loaded is this instance's.
        """
        for reference in self.sessions:
            session = reference()
            if session is not None:
                with suppress(Exception):  # its own listeners may raise; what it holds is taken back below
                    session.close()
        self.sessions.clear()
        for record in self.out:
            record.fairy_ref = None
        self.out.clear()

    def forget(self) -> None:
        """Drop all records; the next checkout connects anew, and "connect" listeners run again."""
        self.out.clear()
        self._idle.clear()

    def dispose(self) -> None:
        """Nothing: the connection belongs to the program."""

    def recreate(self) -> InstancePool:
        """Itself: `Engine.dispose` asks for a fresh pool, and there is only one connection."""
        return self

    def status(self) -> str:
        """As `Pool.status`."""
        return f"{len(self.out)} checked out"


@event.listens_for(Session, "after_begin")
def _remember_session(session: Session, transaction: object, connection: sqlalchemy.Connection) -> None:
    pool = connection.engine.pool
    if isinstance(pool, InstancePool):
        pool.sessions.append(weakref.ref(session))
