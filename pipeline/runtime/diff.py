"""What changed between two snapshots of a database: rows added, removed and changed, column by column.

Snapshots are finished SQLite files, read without running anything in them: no view, trigger or user function.
"""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pipeline.errors import UserError

SCHEMA = "sqlite_schema"
"""The key under which changes of the schema appear, as if it were a table of (type, name, tbl_name, sql) with the key
(type, name). SQLite reserves names that begin with `sqlite_`, so no table can have it."""

_HEADER = b"SQLite format 3\0"

_LONGEST_VALUE = 1 << 26
"""Bytes a value may have, so that a generated column cannot make this process compute an endless one."""

_SCHEMA_ROWS = (
    "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE substr(name, 1, 7) <> 'sqlite_' ORDER BY type, name"
)


def diff(before: bytes, after: bytes) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The changes between two snapshots, by table; only tables that changed appear, so no change gives `{}`.

    Each has `added` and `removed` (rows) and `changed` (`key`, and `before` and `after` with the columns that
    differ). Rows are the same if their primary key is; where there is none, or it is NULL, a changed row is one
    removed and one added, and equal rows count. Values differ if their SQLite types do: 1 is not 1.0. Values that
    JSON cannot hold are objects: `{"blob": hex}` (also text that is not UTF-8) and `{"real": "inf"}`.

    Changes of the schema are under `SCHEMA`. Virtual tables are left out (the tables behind them are not), and so
    are SQLite's own. Raises UserError for bytes that are not a SQLite database.
    """
    if before == after:
        return {}
    old, new = _read(before, "initial"), _read(after, "final")
    changes = {}
    for name in sorted(old.keys() | new.keys(), key=lambda name: (name != SCHEMA, name)):
        found = _compare(old.get(name), new.get(name))
        if any(found.values()):
            changes[name] = found
    return changes


@dataclass(frozen=True, slots=True)
class _Table:
    """`rows` by key, each a tuple in the order of `columns`; rows without a key in `loose`, with how often each is."""

    columns: tuple[str, ...]
    key: tuple[str, ...]
    rows: Mapping[tuple[Any, ...], tuple[Any, ...]]
    loose: Mapping[tuple[Any, ...], int]


_NOTHING = _Table((), (), {}, {})


def _compare(old: _Table | None, new: _Table | None) -> dict[str, list[dict[str, Any]]]:
    if old is None or new is None or old.key != new.key:
        # nothing says which old row a new one was
        return {"added": list(_all_rows(new or _NOTHING)), "removed": list(_all_rows(old or _NOTHING)), "changed": []}
    more, less = Counter(new.loose), Counter(old.loose)
    if old.columns == new.columns:
        more, less = more - less, less - more
    added = [_row(new.columns, row) for key, row in new.rows.items() if key not in old.rows]
    removed = [_row(old.columns, row) for key, row in old.rows.items() if key not in new.rows]
    return {
        "added": added + [_row(new.columns, row) for row in more.elements()],
        "removed": removed + [_row(old.columns, row) for row in less.elements()],
        "changed": list(_changed(old, new)),
    }


def _changed(old: _Table, new: _Table) -> Iterator[dict[str, Any]]:
    same_columns = old.columns == new.columns
    for key, after in new.rows.items():
        before = old.rows.get(key)
        if before is None or (same_columns and before == after):
            continue
        was = dict(zip(old.columns, before, strict=True))
        now = dict(zip(new.columns, after, strict=True))
        columns = [name for name in {**was, **now} if name not in was or name not in now or was[name] != now[name]]
        if columns:
            yield {
                "key": {name: _plain(was[name]) for name in old.key},
                "before": {name: _plain(was[name]) for name in columns if name in was},
                "after": {name: _plain(now[name]) for name in columns if name in now},
            }


def _all_rows(table: _Table) -> Iterator[dict[str, Any]]:
    for row in (*table.rows.values(), *Counter(table.loose).elements()):
        yield _row(table.columns, row)


def _row(columns: tuple[str, ...], values: tuple[Any, ...]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in zip(columns, values, strict=True)}


@lru_cache(maxsize=4)  # one diff's final snapshot is often the next one's initial
def _read(snapshot: bytes, which: str) -> Mapping[str, _Table]:
    if not snapshot.startswith(_HEADER):
        raise UserError(f"The {which} database cannot be read: it is not a SQLite file.")
    try:
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.deserialize(snapshot)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA query_only = ON")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
            connection.text_factory = _text
            return {SCHEMA: _schema(connection), **dict(_tables(connection))}
    except sqlite3.Error as error:
        raise UserError(f"The {which} database cannot be read: {error}.") from error


def _text(raw: bytes) -> str | bytes:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw


def _schema(connection: sqlite3.Connection) -> _Table:
    rows = connection.execute(_SCHEMA_ROWS).fetchall()
    return _Table(("type", "name", "tbl_name", "sql"), ("type", "name"), {row[:2]: row for row in rows}, {})


def _tables(connection: sqlite3.Connection) -> Iterator[tuple[str, _Table]]:
    for kind, name, _, sql in connection.execute(_SCHEMA_ROWS).fetchall():
        if kind == "table" and not sql.upper().startswith("CREATE VIRTUAL"):
            yield name, _table(connection, name)


def _table(connection: sqlite3.Connection, name: str) -> _Table:
    quoted = '"' + name.replace('"', '""') + '"'
    information = connection.execute(f"PRAGMA table_info({quoted})").fetchall()
    key = tuple(row[1] for row in sorted(information, key=lambda row: row[5]) if row[5])
    cursor = connection.execute(f"SELECT * FROM {quoted}")
    columns = tuple(column[0] for column in cursor.description)
    places = [columns.index(column) for column in key]
    rows: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    loose: Counter[tuple[Any, ...]] = Counter()
    for row in cursor:
        values = tuple(map(_typed, row))
        found = tuple(values[place] for place in places)
        if found and None not in found and found not in rows:
            rows[found] = values
        else:
            loose[values] += 1
    return _Table(columns, key, rows, loose)


class _Real(float):
    """A REAL, which is never equal to an INTEGER here."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Real) and float(self) == float(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = float.__hash__


def _typed(value: Any) -> Any:
    return _Real(value) if isinstance(value, float) else value


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, bytes):
        return {"blob": value.hex()}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"real": str(float(value))}
    return value
