"""Built databases are kept as files until their environment changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from pipeline.errors import UserError
from pipeline.model import Environment, TableRows, TableSchema
from pipeline.runtime.host import Host
from pipeline.snapshots import snapshot_file
from pipeline.workspace import Workspace

SHOP = Environment(
    "shop",
    schema=(TableSchema("goods", "CREATE TABLE goods (name TEXT, since TEXT DEFAULT (datetime('now')));"),),
    sample=(TableRows("goods", ("INSERT INTO goods (name) VALUES ('pen');", "INSERT INTO nowhere VALUES (1);")),),
)


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with Host() as host:
        yield host


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(tmp_path / "workspace", create=True) as workspace:
        yield workspace


def rows(path: Path) -> list[tuple]:
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as connection:
        return connection.execute("select * from goods").fetchall()


def test_the_first_request_builds_and_the_next_ones_do_not(workspace: Workspace, host: Host) -> None:
    path = snapshot_file(workspace, SHOP, host)
    assert path == workspace.databases / "shop.db"
    assert rows(path) == [("pen", "2026-01-01 12:00:00")]
    built = path.stat()
    assert snapshot_file(workspace, SHOP, host).stat() == built
    assert sorted(file.name for file in workspace.databases.iterdir()) == ["shop.db", "shop.json"]


def test_a_change_of_the_environment_builds_anew(workspace: Workspace, host: Host) -> None:
    snapshot_file(workspace, SHOP, host)
    ink = replace(SHOP, sample=(TableRows("goods", ("INSERT INTO goods (name) VALUES ('ink');",)),))
    assert rows(snapshot_file(workspace, ink, host)) == [("ink", "2026-01-01 12:00:00")]
    later = replace(ink, now=ink.now + timedelta(days=1))
    assert rows(snapshot_file(workspace, later, host)) == [("ink", "2026-01-02 12:00:00")]
    broken = replace(later, code="app = None")  # nothing can run, but its database can be looked at
    assert rows(snapshot_file(workspace, broken, host)) == [("ink", "2026-01-02 12:00:00")]


@pytest.mark.parametrize("damage", [b"", b"SQLite format 3\0 and then nothing"])
def test_a_damaged_file_is_built_anew(workspace: Workspace, host: Host, damage: bytes) -> None:
    snapshot_file(workspace, SHOP, host).write_bytes(damage)
    assert rows(snapshot_file(workspace, SHOP, host)) == [("pen", "2026-01-01 12:00:00")]


def test_a_folder_that_cannot_be_written_is_said(workspace: Workspace, host: Host) -> None:
    workspace.databases.rmdir()
    workspace.databases.write_text("in the way")
    with pytest.raises(UserError, match=r"shop\.db cannot be written"):
        snapshot_file(workspace, SHOP, host)


ADDS_A_TABLE = """
from fastapi import FastAPI
from sqlalchemy import Column, Integer, create_engine
from sqlalchemy.orm import declarative_base

engine = create_engine("sqlite:///shop.db")
Base = declarative_base()


class Audit(Base):
    __tablename__ = "audit"
    id = Column(Integer, primary_key=True)


Base.metadata.create_all(engine)
app = FastAPI()
"""


def test_tables_that_the_code_adds_are_there_as_in_every_instance(workspace: Workspace, host: Host) -> None:
    import sqlite3

    path = snapshot_file(workspace, replace(SHOP, code=ADDS_A_TABLE), host)
    with sqlite3.connect(path) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert {"audit", "goods"} <= names
