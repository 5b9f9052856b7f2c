"""Reads and edits databases as bytes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from pipeline.blueprints.make import Blueprint


def query(snapshot: bytes, sql: str) -> list[Any]:
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(snapshot)
        return db.execute(sql).fetchall()


def edited(snapshot: bytes, *statements: str) -> bytes:
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(snapshot)
        for statement in statements:
            db.execute(statement)
        db.commit()
        return db.serialize()


def rekeyed(snapshot: bytes, made: Blueprint) -> bytes:
    """The same data with a thousand added to every id and every reference."""
    statements = []
    for entity in made.domain.entities.values():
        columns = ["id", *(one.column for one in entity.fields.values() if one.reference)]
        for column in columns:
            statements.append(f"UPDATE {entity.table} SET {column} = -{column} - 1000")
            statements.append(f"UPDATE {entity.table} SET {column} = -{column}")
    return edited(snapshot, *statements)
