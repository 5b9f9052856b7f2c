"""Databases are written where they were meant to be, and nothing else is written over."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from pipeline.errors import UserError
from pipeline.sqlite_files import read_database, require_place, write_database


@pytest.fixture
def snapshot() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (x)")
    return connection.serialize()


def test_a_database_is_written_and_may_replace_an_earlier_one(tmp_path: Path, snapshot: bytes) -> None:
    path = tmp_path / "a.db"
    for _ in range(2):
        write_database(path, snapshot)
        assert read_database(path) == snapshot


def test_any_other_file_is_left_as_it_is(tmp_path: Path, snapshot: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("precious")
    with pytest.raises(UserError, match="not a SQLite database"):
        write_database(path, snapshot)
    assert path.read_text() == "precious"


def test_what_is_no_regular_file_is_refused(tmp_path: Path, snapshot: bytes) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UserError, match="not a regular file"):
        write_database(pipe, snapshot)
    assert pipe.is_fifo()
    with pytest.raises(UserError, match="is a folder"):
        require_place(tmp_path)
    with pytest.raises(UserError, match="there is no folder"):
        require_place(tmp_path / "absent" / "a.db")


def test_a_symbolic_link_stays_one(tmp_path: Path, snapshot: bytes) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "target.db")
    write_database(link, snapshot)
    assert link.is_symlink()
    assert read_database(tmp_path / "target.db") == snapshot
