"""Rules about a schema: no columns for signing in, and foreign keys that lead somewhere."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager

from pipeline.findings import Finding

AUTH = re.compile(
    r"^(password|passwd|pwd)(_|$)|_password$|(^|_)(password_hash|salt|secret|otp|2fa|mfa)(_|$)|"
    r"^(auth|access|refresh|session|reset|csrf|remember)_token(_|$)|^api_key(_|$)|^(login_attempts|last_login_ip)$",
    re.I,
)
"""Columns for signing in. Instances have one signed-in user, so nothing may depend on them."""


def columns_of(snapshot: bytes) -> dict[str, list[str]]:
    """The columns of each table of a built snapshot."""
    with _opened(snapshot) as connection:
        return _columns(connection)


def schema_findings(snapshot: bytes) -> Iterator[Finding]:
    """What is wrong with the tables of a built snapshot, whatever their rows."""
    with _opened(snapshot) as connection:
        columns = _columns(connection)
        for table in columns:
            yield from auth_columns(table, columns[table])
            keys = connection.execute('SELECT "table", "from", "to" FROM pragma_foreign_key_list(?)', (table,))
            for parent, column, target in keys.fetchall():
                yield from reference_findings(table, column, parent, target, columns)


@contextmanager
def _opened(snapshot: bytes) -> Generator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(snapshot)
        connection.execute("PRAGMA trusted_schema = OFF")
        yield connection


def _columns(connection: sqlite3.Connection) -> dict[str, list[str]]:
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
    return {
        table: [name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]
        for (table,) in names.fetchall()
    }


def auth_columns(table: str, columns: list[str]) -> Iterator[Finding]:
    """Columns for signing in."""
    found = [column for column in columns if AUTH.search(column)]
    if found:
        yield Finding(
            "auth_column",
            "error",
            f"schema: {table}",
            f"{table} has columns for signing in: {', '.join(found)}",
            remedy="leave them out: the user (id 1) is signed in already",
        )


def reference_findings(
    table: str, column: str, parent: str, target: str | None, columns: dict[str, list[str]]
) -> Iterator[Finding]:
    """A foreign key whose parent table or column does not exist."""
    there = {name.lower(): [c.lower() for c in found] for name, found in columns.items()}
    if parent.lower() not in there:
        problem = f"refers to the table {parent}, which does not exist"
    elif target is not None and target.lower() not in there[parent.lower()]:
        problem = f"refers to {parent}.{target}, which does not exist"
    else:
        return
    yield Finding(
        "foreign_key_nowhere",
        "error",
        f"schema: {table}.{column}",
        f"{table}.{column} {problem}",
        remedy="declare what it refers to, or correct the reference",
    )
