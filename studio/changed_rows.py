"""SQL that shows what changed between two snapshots, one query a table.

The queries run where the final database is `main` and the initial one is attached as `initial`. They tell apart what
SQLite's own comparison does not: 1 from 1.0, and 'a' from 'A' in a NOCASE column.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to one table: how many rows, and the query that shows them."""

    table: str
    added: int
    removed: int
    changed: int
    sql: str

    def __str__(self) -> str:
        counts = ((self.added, "added"), (self.removed, "removed"), (self.changed, "changed"))
        return f"{self.table}: " + ", ".join(f"{count} {word}" for count, word in counts if count)


@dataclass(frozen=True, slots=True)
class _Shape:
    columns: tuple[str, ...]
    key: tuple[str, ...]


def changes(connection: sqlite3.Connection) -> list[Change]:
    """Every table whose rows differ between `initial` and `main`, by name."""
    before, after = _shapes(connection, "initial"), _shapes(connection, "main")
    found = []
    for table in sorted(before.keys() | after.keys()):
        sql = _changed_rows(table, before.get(table), after.get(table))
        counts = dict(connection.execute(f"select change, count(*) from ({sql}) group by 1").fetchall())
        if counts:
            found.append(
                Change(table, counts.get("added", 0), counts.get("removed", 0), counts.get("changed to", 0), sql)
            )
    return found


def _shapes(connection: sqlite3.Connection, schema: str) -> dict[str, _Shape]:
    tables = connection.execute(
        f"select name from {schema}.sqlite_master where type = 'table' and name not like 'sqlite\\_%' escape '\\'"
    ).fetchall()
    shapes = {}
    for (table,) in tables:
        columns = connection.execute(f"pragma {schema}.table_info({_quoted(table)})").fetchall()
        keyed = sorted((place, name) for _, name, _, _, _, place in columns if place)
        shapes[table] = _Shape(tuple(column[1] for column in columns), tuple(name for _, name in keyed))
    return shapes


def _changed_rows(table: str, before: _Shape | None, after: _Shape | None) -> str:
    name = _quoted(table)
    if before is None and after is not None:
        return f"select 'added' as change, {_columns('f', after.columns, after)} from main.{name} f"
    if after is None and before is not None:
        return f"select 'removed' as change, {_columns('i', before.columns, before)} from initial.{name} i"
    assert before is not None and after is not None
    columns = tuple(dict.fromkeys((*after.columns, *before.columns)))
    if after.key and after.key == before.key:
        return _by_key(name, columns, before, after)
    return _by_value(name, columns, before, after)


def _by_key(name: str, columns: tuple[str, ...], before: _Shape, after: _Shape) -> str:
    initial, final = _columns("i", columns, before), _columns("f", columns, after)
    same_key = " and ".join(f"f.{_quoted(column)} is i.{_quoted(column)}" for column in after.key)
    differs = " or ".join(
        f"{_column('f', column, after)} is not {_column('i', column, before)} collate binary"
        f" or typeof({_column('f', column, after)}) <> typeof({_column('i', column, before)})"
        for column in columns
    )
    order = ", ".join(str(columns.index(column) + 2) for column in after.key)
    return (
        f"select 'added' as change, {final} from main.{name} f"
        f" where not exists (select 1 from initial.{name} i where {same_key})"
        f" union all select 'removed', {initial} from initial.{name} i"
        f" where not exists (select 1 from main.{name} f where {same_key})"
        f" union all select 'changed from', {initial} from initial.{name} i join main.{name} f"
        f" on {same_key} where {differs}"
        f" union all select 'changed to', {final} from initial.{name} i join main.{name} f"
        f" on {same_key} where {differs}"
        f" order by {order}, 1"
    )


def _by_value(name: str, columns: tuple[str, ...], before: _Shape, after: _Shape) -> str:
    """Rows as a multiset, each copy numbered, because nothing identifies them."""

    def numbered(source: str, alias: str, shape: _Shape) -> str:
        values = [_column(alias, column, shape) for column in columns]
        binary = ", ".join(
            f"{value} collate binary as {_quoted(column)}" for value, column in zip(values, columns, strict=True)
        )
        types = ", ".join(f"typeof({value})" for value in values)
        parts = ", ".join(f"{value} collate binary, typeof({value})" for value in values)
        return f"select {binary}, {types}, row_number() over (partition by {parts}) from {source}.{name} {alias}"

    final, initial = numbered("main", "f", after), numbered("initial", "i", before)
    shown = ", ".join(_quoted(column) for column in columns)
    return (
        f"select 'added' as change, {shown} from ({final} except {initial})"
        f" union all select 'removed', {shown} from ({initial} except {final}) order by 2, 1"
    )


def _columns(alias: str, columns: tuple[str, ...], shape: _Shape) -> str:
    return ", ".join(f"{_column(alias, column, shape)} as {_quoted(column)}" for column in columns)


def _column(alias: str, column: str, shape: _Shape) -> str:
    """The column, or null where this side's table does not have it."""
    return f"{alias}.{_quoted(column)}" if column in shape.columns else "null"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
