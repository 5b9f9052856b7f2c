"""Builds an environment's database from its DDL and its INSERT statements.

Everything is loaded in one transaction with foreign keys deferred and checked once at the end, so neither the order
of statements nor cycles matter. A statement that fails is recorded and the build goes on; a table that is missing at
the end makes it a failed build, whatever its share.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pipeline.model import TableRows, TableSchema
from pipeline.runtime.clock import Clock, pin_sql_time

PAGE_SIZE = 512
"""Bytes a page of a built database. SQLite's smallest: environments have many tables of a few rows, and a quarter of
the size is a quarter of what an instance's state costs."""

FILE_FORMAT = 3
"""The schema format that the header of a built database states (fileformat2.html, 1.3.10), if it has no DESC index.

Format 4, SQLite's own, differs in that and in a shorter way to write 0 and 1, which a connection uses only when it
has read the schema since it was given the database. Whether it has depends on the calls before, and the same calls
have to give the same bytes. Databases of format 4 are kept as they are and cost more to switch to.
"""

FORMAT_AT = 47
"""Where it is in the file: the low byte of a big-endian number."""

_DENIED = {
    sqlite3.SQLITE_ATTACH: "ATTACH is not allowed: an environment has one database",
    sqlite3.SQLITE_DETACH: "DETACH is not allowed: an environment has one database",
    sqlite3.SQLITE_PRAGMA: "PRAGMA is not allowed: the runtime sets what the build needs",
    sqlite3.SQLITE_TRANSACTION: "transactions are not allowed: the whole build is one",
    sqlite3.SQLITE_SAVEPOINT: "transactions are not allowed: the whole build is one",
}
_SYNTAX_ERROR = re.compile(r"syntax error|unrecognized token|incomplete input")
_NEXT_STATEMENT = re.compile(r";\s*(?=(?:INSERT|REPLACE|UPDATE|DELETE|CREATE|ALTER|DROP|WITH)\s)", re.IGNORECASE)
_TRIGGER = re.compile(r"\s*CREATE\s+(?:TEMP\s+|TEMPORARY\s+)?TRIGGER\b", re.IGNORECASE)
_DESCENDING = re.compile(r"\bDESC\b", re.IGNORECASE)
_COMMENT_OR_SPACE = re.compile(r"--[^\n]*|/\*.*?\*/|\s|;", re.DOTALL)

Kind = Literal["ddl", "index", "insert"]


@dataclass(frozen=True, slots=True)
class FailedStatement:
    """A statement that SQLite refused.

    `number` counts all statements of the build from 1, in the order given (each table's DDL and indexes, then the
    sample); `row` counts the INSERTs of the table from 0 and is None for DDL.
    """

    number: int
    table: str
    sql: str
    error: str
    kind: Kind
    row: int | None


@dataclass(frozen=True, slots=True)
class Build:
    """A built database and what went wrong on the way.

    `foreign_keys` has one entry `{"table", "rowid", "row", "parent", "columns"}` for each row whose parent does not
    exist (or `{"table", "error"}` where SQLite cannot check a table), sorted. `tables` counts the rows of each
    table, `others` gives the kind of every view and trigger, `statements` counts what was tried. `missing_tables`
    are tables of the schema that do not exist, `dependents` the tables whose foreign keys point to them, by missing
    table; with any missing table the build has failed and `ok` is False.
    """

    snapshot: bytes
    failed: tuple[FailedStatement, ...]
    foreign_keys: tuple[dict[str, Any], ...]
    missing_tables: tuple[str, ...]
    tables: dict[str, int]
    others: dict[str, str]
    dependents: dict[str, tuple[str, ...]]
    statements: int
    ok: bool


@dataclass(frozen=True, slots=True)
class _Statement:
    number: int
    table: str
    sql: str
    kind: Kind
    row: int | None = None


def build(
    schema: Sequence[TableSchema], sample: Sequence[TableRows], *, now: datetime | None, strict: bool = False
) -> Build:
    """Build a database whose `CURRENT_TIMESTAMP` and `datetime('now')` are `now` (None: the machine's clock).

    `strict` loads as upstream does: statement by statement in the given order, each its own transaction, with
    foreign keys enforced, so a row that comes before its parent is lost.
    """
    statements = tuple(_statements(schema, sample))
    clock = Clock(now)
    excluded: set[int] = set()
    while True:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        try:
            connection.execute(f"PRAGMA page_size = {PAGE_SIZE}")
            connection.execute("PRAGMA temp_store = MEMORY")  # VACUUM needs room, and a worker may have no folder
            connection.execute(f"PRAGMA foreign_keys = {'ON' if strict else 'OFF'}")
            pin_sql_time(connection, clock)
            loader = _Loader(connection, excluded)
            loader.load(statements, strict=strict)
            if loader.undone_by is None:
                connection.execute("VACUUM")
                return _report(connection, schema, statements, loader.failed)
            excluded.add(loader.undone_by)
        finally:
            connection.close()


class _Loader:
    """Runs statements on one connection and collects those that fail.

    A statement with ON CONFLICT ROLLBACK undoes everything before it when it fails; `undone_by` is then its number,
    and the build starts again without it.
    """

    def __init__(self, connection: sqlite3.Connection, excluded: set[int]) -> None:
        self.connection = connection
        self.excluded = excluded
        self.errors: dict[_Statement, str] = {}
        self.undone_by: int | None = None
        self._denied = ""

    @property
    def failed(self) -> tuple[FailedStatement, ...]:
        """What failed, by number."""
        found = sorted(self.errors.items(), key=lambda item: item[0].number)
        return tuple(FailedStatement(s.number, s.table, s.sql, error, s.kind, s.row) for s, error in found)

    def load(self, statements: Sequence[_Statement], *, strict: bool) -> None:
        """Run all statements: in the given order if `strict`, else tables first and in one transaction.

        Without `strict`, what failed is tried again as long as that helps. Rows are only added here, so a second
        try fails again unless what the statement needed (a table of a trigger, a row of a subquery) has come since.
        """
        if strict:
            self.connection.set_authorizer(self._authorize)
            self._run(statements)
        else:
            self.connection.execute("BEGIN")
            self.connection.set_authorizer(self._authorize)
            for kind in ("ddl", "index", "insert"):
                left = self._run([statement for statement in statements if statement.kind == kind])
                while left and len(still := self._run(left)) < len(left):
                    left = still
            self.connection.set_authorizer(None)
            if self.undone_by is None:
                self.connection.execute("COMMIT")
        self.connection.set_authorizer(None)

    def _run(self, statements: Iterable[_Statement]) -> list[_Statement]:
        left = []
        for statement in statements:
            if self.undone_by is not None:
                break
            error = self._error_of(statement)
            if error is None:
                self.errors.pop(statement, None)
            else:
                self.errors[statement] = error
                left.append(statement)
        return left

    def _error_of(self, statement: _Statement) -> str | None:
        if statement.number in self.excluded:
            return "refused with ON CONFLICT ROLLBACK, which would undo the rows before it"
        open_before = self.connection.in_transaction
        self._denied = ""
        try:
            self.connection.execute(statement.sql).fetchall()
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:  # ValueError: NUL or lone surrogate in the SQL
            if open_before and not self.connection.in_transaction:
                self.undone_by = statement.number
            return self._denied or str(error)
        return None

    def _authorize(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_FUNCTION and second == "load_extension":
            self._denied = "load_extension is not allowed"
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_PRAGMA and first == "data_version":  # full-text tables ask for it by themselves
            return sqlite3.SQLITE_OK
        if action in _DENIED:
            self._denied = _DENIED[action]
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK


def _statements(schema: Sequence[TableSchema], sample: Sequence[TableRows]) -> Iterator[_Statement]:
    number = 0
    for table in schema:
        texts: list[tuple[Kind, str]] = [("ddl", table.ddl), *(("index", text) for text in table.indexes)]
        for kind, text in texts:
            for sql in split_statements(text):
                number += 1
                yield _Statement(number, table.name, sql, kind)
    for rows in sample:
        pieces = (sql for text in rows.inserts for sql in split_statements(text))
        for row, sql in enumerate(pieces):
            number += 1
            yield _Statement(number, rows.table, sql, "insert", row)


def split_statements(text: str) -> Iterator[str]:
    """The SQL statements of a text, one by one.

    A semicolon ends a statement where SQLite says so (`sqlite3_complete`): not inside strings, comments or triggers.
    A quote that is not closed runs away with the statements after it; a piece that does not parse is therefore cut
    once more where a new statement visibly begins, so that one bad statement does not take good ones with it.
    """
    for piece in _complete_statements(text):
        parts = [part.strip() for part in _NEXT_STATEMENT.split(piece)]
        if len(parts) > 1 and not _parses(piece) and not _TRIGGER.match(piece):
            yield from (part for part in parts if _has_code(part))
        else:
            yield piece


def _complete_statements(text: str) -> Iterator[str]:
    start = 0
    if "\0" not in text:
        for match in re.finditer(";", text):
            candidate = text[start : match.end()]
            if sqlite3.complete_statement(candidate):
                if _has_code(candidate):
                    yield candidate.strip()
                start = match.end()
    if _has_code(text[start:]):
        yield text[start:].strip()


def _has_code(text: str) -> bool:
    return bool(_COMMENT_OR_SPACE.sub("", text))


def _parses(sql: str) -> bool:
    scratch = sqlite3.connect(":memory:")
    try:
        scratch.execute(f"EXPLAIN {sql}")
    except sqlite3.Error as error:
        return _SYNTAX_ERROR.search(str(error)) is None  # other errors (no such table) come after parsing
    except sqlite3.Warning:  # several statements
        return False
    finally:
        scratch.close()
    return True


def _report(
    connection: sqlite3.Connection,
    schema: Sequence[TableSchema],
    statements: Sequence[_Statement],
    failed: tuple[FailedStatement, ...],
) -> Build:
    kinds = dict(connection.execute("SELECT name, type FROM sqlite_master WHERE substr(name, 1, 7) <> 'sqlite_'"))
    definitions = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")]
    tables = sorted(name for name, kind in kinds.items() if kind == "table")
    existing = {name.lower() for name in kinds}
    made = {s.table for s in statements if s.kind == "ddl"} - {s.table for s in failed if s.kind == "ddl"}
    missing = tuple(t.name for t in schema if t.name.lower() not in existing and t.name not in made)
    parents = {name: _parents(connection, name) for name in tables}
    return Build(
        snapshot=_with_format(connection.serialize(), descending=any(map(_DESCENDING.search, definitions))),
        failed=failed,
        foreign_keys=tuple(_violations(connection, tables)),
        missing_tables=missing,
        tables={name: connection.execute(f"SELECT count(*) FROM {quoted(name)}").fetchone()[0] for name in tables},
        others={name: kind for name, kind in sorted(kinds.items()) if kind in ("view", "trigger")},
        dependents={
            name: tuple(child for child, found in parents.items() if name.lower() in found) for name in missing
        },
        statements=len(statements),
        ok=not missing,
    )


def _with_format(snapshot: bytes, *, descending: bool) -> bytes:
    if descending:
        return snapshot
    return snapshot[:FORMAT_AT] + bytes([FILE_FORMAT]) + snapshot[FORMAT_AT + 1 :]


def _parents(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[2].lower() for row in connection.execute(f"PRAGMA foreign_key_list({quoted(table)})")}


def _violations(connection: sqlite3.Connection, tables: Iterable[str]) -> Iterator[dict[str, Any]]:
    for table in tables:
        columns: dict[int, list[str]] = {}
        for number, _, _, column, *_ in connection.execute(f"PRAGMA foreign_key_list({quoted(table)})"):
            columns.setdefault(number, []).append(column)
        try:
            found = connection.execute(f"PRAGMA foreign_key_check({quoted(table)})").fetchall()
        except sqlite3.OperationalError as error:  # the parent's columns are not a key
            yield {"table": table, "error": str(error)}
            continue
        for _, rowid, parent, number in sorted(found, key=repr):
            yield {
                "table": table,
                "rowid": rowid,
                "row": None if rowid is None else _row(connection, table, rowid),
                "parent": parent,
                "columns": columns.get(number, []),
            }


def _row(connection: sqlite3.Connection, table: str, rowid: int) -> dict[str, Any]:
    cursor = connection.execute(f"SELECT * FROM {quoted(table)} WHERE rowid = ?", (rowid,))
    values = cursor.fetchone()
    return {column[0]: value for column, value in zip(cursor.description, values, strict=True)}


def quoted(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
