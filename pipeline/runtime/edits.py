"""Changes rows of a finished database: how the audit of verifiers makes states that are nearly right.

Databases bring triggers, checks and generated columns along, which are generated code and run when a row is written.
So rows are changed in a worker. Triggers do not fire: a change is the one that was asked for.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pipeline.runtime.clock import Clock, pin_sql_time
from pipeline.runtime.rpc import Garbled, Message

if TYPE_CHECKING:
    from pipeline.runtime.launcher import Worker
    from pipeline.runtime.limits import Limits

BATCH_BYTES = 16 << 20
"""About how many bytes of databases one reply may bring; a quarter of what a reply may be."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change. `key` holds the columns that tell the rows (all of them: none); None makes a new row.

    `values` are what those columns become; None removes the rows. Values are written as in state diffs: what JSON
    cannot hold is `{"blob": hex}` or `{"real": "inf"}`.
    """

    table: str
    key: Mapping[str, Any] | None
    values: Mapping[str, Any] | None


def edit_in(
    worker: Worker, snapshot: bytes, changes: Sequence[Sequence[Edit]], *, now: datetime, limits: Limits
) -> list[bytes | None]:
    """Have a worker make copies of a database, each with its edits. Raises WorkerLost."""
    made: list[bytes | None] = []
    step = max(1, BATCH_BYTES // max(1, len(snapshot)))
    for start in range(0, len(changes), step):
        wanted = [[asdict(edit) for edit in edits] for edits in changes[start : start + step]]
        header = {"op": "edit", "now": now.isoformat(), "changes": wanted}
        reply = worker.request(header, (snapshot,), timeout_s=limits.load_timeout_s, what="changing rows")
        try:
            made += _read_copies(reply, len(wanted))
        except Garbled as error:
            raise worker.lost(error, "changing rows") from error
    return made


def _read_copies(reply: Message, count: int) -> list[bytes | None]:
    flags = reply.header.get("made")
    good = isinstance(flags, list) and len(flags) == count and sum(map(bool, flags)) == len(reply.attachments)
    if not good:
        raise Garbled("a reply that is not of the agreed form")
    copies = iter(reply.attachments)
    return [next(copies) if flag else None for flag in flags]


# What follows runs inside a worker.


def apply_edits(
    snapshot: bytes, changes: Iterable[Iterable[Mapping[str, Any]]], *, now: datetime
) -> Iterator[bytes | None]:
    """A copy of a database for each list of edits (as dicts); None where the database refuses one of them."""
    clock = Clock(now)
    for edits in changes:
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            connection.deserialize(snapshot)
            pin_sql_time(connection, clock)
            try:
                _without_triggers(connection, edits)
            except (sqlite3.Error, ValueError, OverflowError):
                yield None
            else:
                yield connection.serialize()


def _without_triggers(connection: sqlite3.Connection, edits: Iterable[Mapping[str, Any]]) -> None:
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    connection.execute("BEGIN")
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {quoted(name)}")
    for edit in edits:
        connection.execute(*_statement(edit))
    for _, sql in triggers:
        connection.execute(sql)
    connection.execute("COMMIT")


def _statement(edit: Mapping[str, Any]) -> tuple[str, list[Any]]:
    table, key, values = quoted(edit["table"]), edit["key"], edit["values"]
    given = [_plain(value) for value in (values or {}).values()]
    if key is None:
        columns, marks = ", ".join(map(quoted, values)), ", ".join("?" * len(given))
        return f"INSERT INTO {table} ({columns}) VALUES ({marks})", given
    where = " AND ".join(f"{quoted(column)} IS ?" for column in key) or "1"
    known = [_plain(value) for value in key.values()]
    if values is None:
        return f"DELETE FROM {table} WHERE {where}", known
    return f"UPDATE {table} SET {', '.join(f'{quoted(column)} = ?' for column in values)} WHERE {where}", given + known


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def _plain(value: Any) -> Any:
    match value:
        case {"blob": str(text)}:
            return bytes.fromhex(text)
        case {"real": str(text)}:
            return float(text)
        case _:
            return value
