"""Databases as files and as bytes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from pipeline.errors import UserError
from pipeline.snapshots import replace_file

HEADER = b"SQLite format 3\0"


def read_database(path: Path) -> bytes:
    """The bytes of a SQLite file, with what its write-ahead log holds. The file is not changed.

    Raises UserError where it cannot be read or is not a SQLite database.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    if not content.startswith(HEADER):
        raise UserError(f"{path} is not a SQLite database ({len(content)} bytes).")
    log = path.with_name(f"{path.name}-wal")
    if not log.is_file() or not log.stat().st_size:
        return content
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            return connection.serialize()
    except sqlite3.Error as error:
        raise UserError(f"{path} cannot be read: {error}.") from error


def require_place(path: Path) -> None:
    """Raise UserError where a file clearly cannot be written, before what is to be in it costs any work."""
    if path.is_dir():
        raise UserError(f"{path} is a folder; name a file.")
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is not a regular file; name another place.")
    if not path.parent.is_dir():
        raise UserError(f"{path} cannot be written: there is no folder {path.parent}.")


def require_database_place(path: Path) -> None:
    """As `require_place`; an earlier database may be replaced, any other file is left alone."""
    require_place(path)
    if path.is_file() and path.stat().st_size and not _is_database(path):
        raise UserError(f"{path} exists and is not a SQLite database; it is left as it is. Name another file.")


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(HEADER)) == HEADER
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error


def write_database(path: Path, snapshot: bytes) -> None:
    """Write a snapshot as a file, whole or not at all. Raises UserError where that is not possible."""
    require_database_place(path)
    try:
        replace_file(path.resolve(), snapshot)  # what a symbolic link points to, not the link
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}.") from error
