"""Reading a finished snapshot: its tables, their columns, their rows page by page.

Snapshots hold rows and DDL that generated code wrote, so the file is opened read only, schema-defined functions are
not trusted, only ordinary tables are read (a view is code), and a statement that takes too long is stopped.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from pipeline.errors import UserError

PAGE = 200
"""Rows read at once."""
PAGES_KEPT = 8
"""Pages of one table kept in memory."""
LONGEST_S = 2.0
"""How long one statement may take."""
STEPS = 100
"""After how many steps of SQLite's machine the time is looked at; one step can compute a whole value."""
LONGEST_VALUE = 1 << 26
"""The most bytes a value may have while it is worked out, so that a generated column cannot fill our memory."""
CELL = 4_000
"""The most characters (or bytes) of a value that are read for the screen."""

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """One column as the database declares it. `key` is its place in the primary key from 1, or 0."""

    name: str
    type: str
    required: bool
    default: str | None
    key: int
    refers_to: str


@dataclass(frozen=True, slots=True)
class TableFacts:
    """One table: its columns, its number of rows, its DDL."""

    name: str
    columns: tuple[ColumnFacts, ...]
    rows: int
    ddl: str


class Snapshot:
    """A SQLite file opened for reading. Threads may share it as long as only one uses it at a time."""

    def __init__(self, source: Path | bytes) -> None:
        """Open a file, or the bytes of one. Raises UserError where it is not a database."""
        self._name = "The snapshot" if isinstance(source, bytes) else str(source)
        try:
            if isinstance(source, bytes):
                self._connection = sqlite3.connect(":memory:", check_same_thread=False)
                self._connection.deserialize(source)
            else:
                uri = f"{source.absolute().as_uri()}?mode=ro&immutable=1"
                self._connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
            self._connection.execute("PRAGMA trusted_schema=OFF")
            self._connection.execute("PRAGMA query_only=ON")
        except sqlite3.Error as error:
            raise UserError(f"{self._name} cannot be opened: {error}.") from error
        self._connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        self.tables = tuple(self._read_tables())

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def table(self, name: str) -> TableFacts:
        """One table's facts. Raises KeyError where there is no such table."""
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(name)

    def rows(self, table: str) -> Rows:
        """All rows of a table, read as they are looked at."""
        return Rows(self, self.table(table))

    def values(self, table: str, column: str, limit: int = 20) -> list[Any]:
        """Different values of a column, most frequent first; empty where table or column do not exist."""
        facts = next((facts for facts in self.tables if facts.name == table), None)
        if facts is None or all(known.name != column for known in facts.columns):
            return []
        name = _quoted(column)
        sql = (
            f"SELECT {name} FROM {_quoted(table)} WHERE {name} IS NOT NULL AND length({name}) <= 200 "
            f"GROUP BY {name} ORDER BY count(*) DESC, {name} LIMIT ?"
        )
        return [value for (value,) in self._select(sql, (limit,))]

    def page(self, table: TableFacts, start: int) -> list[Row]:
        """Up to PAGE rows from row number `start` (0-based) on. Raises UserError where they cannot be read."""
        columns = ", ".join(f"CASE WHEN length({name}) > {CELL} THEN substr({name}, 1, {CELL}) ELSE {name} END"
                            for name in (_quoted(column.name) for column in table.columns))  # fmt: skip
        return self._select(f"SELECT {columns} FROM {_quoted(table.name)} LIMIT ? OFFSET ?", (PAGE, start))

    def _select(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        until = time.monotonic() + LONGEST_S
        self._connection.set_progress_handler(lambda: time.monotonic() > until, STEPS)
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise UserError(f"{self._name} cannot be read: {error}.") from error
        finally:
            self._connection.set_progress_handler(None, 0)

    def _read_tables(self) -> Iterator[TableFacts]:
        listed = self._select(
            "SELECT name, coalesce(sql, '') FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' "
            "ESCAPE '\\' AND upper(coalesce(sql, '')) NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
        )
        for name, ddl in listed:
            [(rows,)] = self._select(f"SELECT count(*) FROM {_quoted(name)}")
            yield TableFacts(name, tuple(self._read_columns(name)), rows, ddl)

    def _read_columns(self, table: str) -> Iterator[ColumnFacts]:
        links = {
            source: f"{target}.{column or 'rowid'}"
            for _, _, target, source, column, *_ in self._select(f"PRAGMA foreign_key_list({_quoted(table)})")
        }
        for _, name, kind, required, default, key, hidden in self._select(f"PRAGMA table_xinfo({_quoted(table)})"):
            if hidden != 1:
                yield ColumnFacts(name, kind, bool(required), default, key, links.get(name, ""))


class Rows(Sequence[Row]):
    """A table's rows as a sequence; pages are read when they are looked at."""

    def __init__(self, snapshot: Snapshot, table: TableFacts) -> None:
        self.table = table
        self._snapshot = snapshot
        self._pages: dict[int, list[Row]] = {}

    def __len__(self) -> int:
        return self.table.rows

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        start = index - index % PAGE
        if start not in self._pages:
            if len(self._pages) >= PAGES_KEPT:
                del self._pages[next(iter(self._pages))]
            self._pages[start] = self._read(start)
        return self._pages[start][index - start]

    def _read(self, start: int) -> list[Row]:
        """A page; where it cannot be read (a damaged file, a column that computes too long), rows that say so."""
        try:
            return self._snapshot.page(self.table, start)
        except UserError as error:
            return [(str(error),) * len(self.table.columns)] * min(PAGE, len(self) - start)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
