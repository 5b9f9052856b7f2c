"""A database as the audit sees it: rows with their keys, what refers to what, which columns tell rows apart."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pipeline.errors import UserError
from pipeline.runtime.edits import quoted

Row = Mapping[str, Any]
"""A row as state diffs write it: what JSON cannot hold is `{"blob": hex}` or `{"real": "inf"}`."""

LONGEST_VALUE = 1 << 26
"""Bytes a value may have, so that no column of a generated database can fill our memory."""


@dataclass(frozen=True)
class Table:
    """One table. `columns` are those that can be written, with their declared types in upper case.

    `references` tells which table a column's values are keys of: by a declared foreign key, or where the column is
    named after a table (`order_id`) and every value is one of its keys. `unique` are the columns whose values must
    differ by the table's own rules.
    """

    name: str
    columns: Mapping[str, str]
    key: tuple[str, ...]
    references: Mapping[str, str]
    unique: frozenset[str]
    rows: tuple[Row, ...]

    @property
    def number_key(self) -> str | None:
        """The column that numbers the rows, where one does."""
        return self.key[0] if len(self.key) == 1 and "INT" in self.columns[self.key[0]] else None

    def key_of(self, row: Row) -> dict[str, Any]:
        """What tells a row from the others: its key, or all of it where there is none."""
        return {column: row[column] for column in self.key or self.columns}

    @cached_property
    def numbers(self) -> Mapping[int, Row]:
        """The rows by their number, where they have one."""
        column = self.number_key
        return {row[column]: row for row in self.rows if isinstance(row[column], int)} if column else {}

    def row(self, number: Any) -> Row | None:
        """The row of that number, if there is one."""
        return self.numbers.get(number) if isinstance(number, int) else None

    @cached_property
    def tells_apart(self) -> frozenset[str]:
        """The columns with a text of their own in every row that has one: what people call a row by."""
        found = set()
        for column in self.columns:
            texts = [row[column] for row in self.rows if row[column] is not None]
            if texts and all(isinstance(text, str) for text in texts) and len(set(texts)) == len(texts):
                found.add(column)
        return frozenset(found)

    def values(self, column: str) -> list[Any]:
        """The values of a column, each once, in the order of the rows; NULL left out."""
        seen: dict[Any, None] = {}
        for row in self.rows:
            if row[column] is not None and not isinstance(row[column], dict):
                seen.setdefault(row[column])
        return list(seen)

    def is_flag(self, column: str) -> bool:
        """Whether a column says yes or no."""
        return "BOOL" in self.columns[column]


def read_tables(snapshot: bytes) -> dict[str, Table]:
    """The ordinary tables of a finished snapshot, by name. Nothing in it is run.

    Raises UserError for bytes that are not a SQLite database.
    """
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.deserialize(snapshot)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA query_only = ON")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
            connection.text_factory = _text
            tables = {table.name: table for table in _tables(connection)}
    except sqlite3.Error as error:
        raise UserError(f"A database cannot be read: {error}.") from error
    return {name: _with_named_references(table, tables) for name, table in tables.items()}


def _tables(connection: sqlite3.Connection) -> Iterator[Table]:
    names = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_'"
        " AND upper(sql) NOT LIKE 'CREATE VIRTUAL%' ORDER BY rowid"
    ).fetchall()
    for (name,) in names:
        information = connection.execute(f"PRAGMA table_info({quoted(name)})").fetchall()
        columns = {row[1]: (row[2] or "").upper() for row in information}
        key = tuple(row[1] for row in sorted(information, key=lambda row: row[5]) if row[5])
        cursor = connection.execute(f"SELECT {', '.join(map(quoted, columns))} FROM {quoted(name)}")
        rows = tuple(dict(zip(columns, map(_plain, row), strict=True)) for row in cursor)
        yield Table(name, columns, key, _references(connection, name), _unique(connection, name, key), rows)


def _references(connection: sqlite3.Connection, name: str) -> dict[str, str]:
    found: dict[int, list[tuple[str, str]]] = {}
    for number, _, table, column, *_ in connection.execute(f"PRAGMA foreign_key_list({quoted(name)})"):
        found.setdefault(number, []).append((column, table))
    return {columns[0][0]: columns[0][1] for columns in found.values() if len(columns) == 1}


def _unique(connection: sqlite3.Connection, name: str, key: tuple[str, ...]) -> frozenset[str]:
    found = set(key) if len(key) == 1 else set()
    for _, index, unique, *_ in connection.execute(f"PRAGMA index_list({quoted(name)})").fetchall():
        columns = [row[2] for row in connection.execute(f"PRAGMA index_info({quoted(index)})")]
        if unique and len(columns) == 1 and columns[0] is not None:
            found.add(columns[0])
    return frozenset(found)


def table_named_in(name: str, tables: Mapping[str, Table]) -> Table | None:
    """The table whose rows a column or parameter such as `order_id` numbers, told by its name; None for other names."""
    word = name.lower().removesuffix("_id")
    if word == name.lower():
        return None
    real = {other.lower(): other for other in tables}
    guesses = (word, f"{word}s", f"{word}es", f"{word.removesuffix('y')}ies")
    found = (tables[real[guess]] for guess in guesses if guess in real)
    return next((table for table in found if table.number_key), None)


def _with_named_references(table: Table, tables: Mapping[str, Table]) -> Table:
    real = {other.lower(): other for other in tables}
    found = {column: real[other.lower()] for column, other in table.references.items() if other.lower() in real}
    for column in table.columns:
        if column not in found and column not in table.key:
            other = table_named_in(column, tables)
            if other and all(value in other.numbers for value in table.values(column)):
                found[column] = other.name
    return Table(table.name, table.columns, table.key, found, table.unique, table.rows)


def _text(raw: bytes) -> str | bytes:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"blob": value.hex()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"real": str(value)}
    return value
