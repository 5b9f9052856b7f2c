"""The database under a catalog: opening, migrating, transactions, and its errors in plain words."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import URL, ExceptionContext, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError

from pipeline.catalog_tables import SCHEMA_VERSION
from pipeline.errors import UserError

MIGRATIONS = Path(__file__).parent / "migrations"


def open_storage(url_or_path: str | Path, *, busy_timeout_s: float) -> Engine:
    """Connect, and bring the schema to the newest version.

    Raises UserError where that cannot be done; messages never show a URL's password.
    """
    try:
        is_url = isinstance(url_or_path, str) and "://" in url_or_path
        url = make_url(url_or_path) if is_url else URL.create("sqlite", database=str(url_or_path))
        sqlite = url.get_backend_name() == "sqlite"
        engine = create_engine(url, connect_args={"timeout": busy_timeout_s} if sqlite else {})
    except (ArgumentError, NoSuchModuleError):
        raise UserError(
            "The database_url is not one SQLAlchemy knows, like sqlite:///FILE or postgresql+psycopg://HOST/DB."
        ) from None
    except ModuleNotFoundError as error:
        raise UserError(
            f"The database_url needs the Python package {error.name}: install it next to awm-studio."
        ) from None
    place = url.database if sqlite and url.database else url.render_as_string(hide_password=True)
    event.listen(engine, "handle_error", lambda context: _explain(context, place))
    if sqlite:
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    try:
        _migrate(engine, place)
    except BaseException:
        engine.dispose()
        raise
    return engine


@contextmanager
def writing(engine: Engine) -> Generator[Connection]:
    """A transaction that may write: committed at the end, rolled back on an exception."""
    with engine.connect() as plain:
        connection = plain.execution_options(awm_write=True)
        with connection.begin():
            yield connection


def _set_up_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    connection.isolation_level = None  # BEGIN is ours to send: see _begin_sqlite
    for pragma in ("trusted_schema=OFF", "foreign_keys=ON", "journal_mode=WAL", "synchronous=NORMAL"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: Connection) -> None:
    # A read transaction that turns into a writing one fails at once where another process has written meanwhile,
    # whatever the busy timeout; one that asks for the lock first waits for it.
    write = connection.get_execution_options().get("awm_write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _migrate(engine: Engine, place: str) -> None:
    with engine.connect() as connection:
        if _schema_version(connection, place) == SCHEMA_VERSION:
            return
    with writing(engine) as connection:
        # Looked at again now that nobody else can be migrating.
        found = _schema_version(connection, place)
        if found == SCHEMA_VERSION:
            return
        from alembic import command
        from alembic.config import Config
        from alembic.script import ScriptDirectory

        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
        config.attributes["connection"] = connection
        known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
        if found is not None and found not in known:
            raise UserError(
                f"{place} was made by a newer awm-studio (its schema is {found}, this one knows {SCHEMA_VERSION}): "
                "upgrade awm-studio, or use another workspace."
            )
        command.upgrade(config, "head")


def _schema_version(connection: Connection, place: str) -> str | None:
    tables = inspect(connection).get_table_names()
    if "alembic_version" in tables:
        return connection.scalar(text("SELECT version_num FROM alembic_version"))
    if "scenarios" in tables or (tables and connection.dialect.name == "sqlite"):
        raise UserError(f"{place} is a database, but not a catalog of awm-studio: choose another file or workspace.")
    return None


def _explain(context: ExceptionContext, place: str) -> None:
    """Turn what a person can put right into a sentence; leave the rest (our own mistakes) as it is."""
    error = context.original_exception
    said = str(error).lower()
    if isinstance(error, sqlite3.Error):
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        sentences = {
            sqlite3.SQLITE_BUSY: "is locked by another process that is writing; try again when it has finished",
            sqlite3.SQLITE_LOCKED: "is locked by another process that is writing; try again when it has finished",
            sqlite3.SQLITE_PROTOCOL: "is locked by another process that is writing; try again when it has finished",
            sqlite3.SQLITE_READONLY: "cannot be written to: make it and its folder writable, or use another workspace",
            sqlite3.SQLITE_CORRUPT: "is damaged; restore it from a copy, or import into a new workspace",
            sqlite3.SQLITE_NOTADB: "is not an SQLite database; choose another file or workspace",
            sqlite3.SQLITE_CANTOPEN: "cannot be opened: check that its folder exists and may be read and written",
            sqlite3.SQLITE_PERM: "may not be read or written: check its permissions",
            sqlite3.SQLITE_FULL: "cannot grow: the disk is full",
            sqlite3.SQLITE_IOERR: f"cannot be read or written ({said}); check the disk",
        }
        if code in sentences:
            raise UserError(f"The catalog {place} {sentences[code]}.") from error
        if isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR:  # that one is a faulty query
            raise UserError(f"The catalog {place} cannot be used now: {said}. Try again.") from error
    elif context.connection is None and isinstance(context.sqlalchemy_exception, DatabaseError):
        raise UserError(f"The catalog {place} cannot be reached: {str(error).strip()}.") from error
