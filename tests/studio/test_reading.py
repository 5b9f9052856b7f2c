"""Reading snapshots, and finding in them what an argument or a task may speak of."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pipeline.errors import UserError
from pipeline.model import Environment, TableSchema
from studio.anchors import anchors
from studio.candidates import Candidate, candidates
from studio.comparison import compare
from studio.schema_fields import MISSING, Field
from studio.snapshot_reader import PAGE, ColumnFacts, Snapshot


def database(*statements: str) -> bytes:
    connection = sqlite3.connect(":memory:")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    return connection.serialize()


SHOP = database(
    "CREATE TABLE categories (id INTEGER PRIMARY KEY, title TEXT)",
    "CREATE TABLE items (id INTEGER PRIMARY KEY, category_id INTEGER NOT NULL REFERENCES categories(id), "
    "name TEXT DEFAULT 'new', price REAL, photo BLOB)",
    "CREATE TABLE \"odd \"\"name\" (\"a \"\"b\" TEXT)",
    "CREATE VIEW costly AS SELECT * FROM items",
    "INSERT INTO categories VALUES (1, 'Bread'), (2, 'Cake')",
    "INSERT INTO items VALUES (10, 1, 'Sourdough loaf', 4.5, x'00ff'), (11, 2, 'Croissant', 2.0, NULL), "
    "(12, 2, 'Croissant', 2.5, NULL)",
    "INSERT INTO \"odd \"\"name\" VALUES ('x')",
)  # fmt: skip


def test_tables_and_their_columns_are_read_and_views_are_left_alone() -> None:
    snapshot = Snapshot(SHOP)
    assert [(table.name, table.rows) for table in snapshot.tables] == [
        ("categories", 2),
        ("items", 3),
        ('odd "name', 1),
    ]
    assert snapshot.table("items").columns == (
        ColumnFacts("id", "INTEGER", False, None, 1, ""),
        ColumnFacts("category_id", "INTEGER", True, None, 0, "categories.id"),
        ColumnFacts("name", "TEXT", False, "'new'", 0, ""),
        ColumnFacts("price", "REAL", False, None, 0, ""),
        ColumnFacts("photo", "BLOB", False, None, 0, ""),
    )
    assert snapshot.rows("items")[0] == (10, 1, "Sourdough loaf", 4.5, b"\x00\xff")
    assert snapshot.rows('odd "name')[0] == ("x",)


def test_rows_come_in_pages_and_long_values_are_cut() -> None:
    many = database(
        "CREATE TABLE t (n INTEGER PRIMARY KEY, s TEXT)",
        "WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < 999) "
        "INSERT INTO t SELECT n, printf('%.9000c', 'x') FROM c",
    )
    snapshot = Snapshot(many)
    rows = snapshot.rows("t")
    read = []
    page, snapshot.page = snapshot.page, lambda table, start: read.append(start) or page(table, start)
    assert [rows[n][0] for n in (999, 998, 0, 1, 500)] == [999, 998, 0, 1, 500]
    assert read == [800, 0, 400]
    assert len(rows) == 1000
    assert len(rows[0][1]) == 4000
    with pytest.raises(IndexError):
        rows[1000]
    assert PAGE == 200


def test_what_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"not a database, but long enough to look at" * 100)
    with pytest.raises(UserError, match=r"x\.db cannot be read: file is not a database"):
        Snapshot(tmp_path / "x.db")


def test_a_file_is_opened_for_reading_only(tmp_path: Path) -> None:
    path = tmp_path / "shop #1?.db"
    path.write_bytes(SHOP)
    snapshot = Snapshot(path)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        snapshot._connection.execute("DELETE FROM items")
    assert path.read_bytes() == SHOP


def test_a_statement_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = database(
        "CREATE TABLE t (n INTEGER, s TEXT AS (printf('%.*c', 9000000, 'x')) VIRTUAL)",
        "WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM c WHERE n < 5000) INSERT INTO t SELECT n FROM c",
    )
    snapshot = Snapshot(slow)
    monkeypatch.setattr("studio.snapshot_reader.LONGEST_S", 0.05)
    rows = snapshot.rows("t")
    assert "cannot be read" in rows[0][0], "the grid shows why instead of failing"


# Values for arguments


def argument(name: str, kind: str = "integer", choices: tuple[object, ...] = ()) -> Field:
    return Field(name, kind, True, False, choices, MISSING, "", kind)


@pytest.mark.parametrize(
    ("wanted", "tool", "expected"),
    [
        (argument("category_id"), "add_item", [Candidate("1", "Bread"), Candidate("2", "Cake")]),
        (argument("item_id"), "get_item", [Candidate("10", "Sourdough loaf"), Candidate("11", "Croissant"),
                                           Candidate("12", "Croissant")]),
        (argument("id"), "get_category", [Candidate("1", "Bread"), Candidate("2", "Cake")]),
        (argument("name", "string"), "find_items", [Candidate("Croissant", ""), Candidate("Sourdough loaf", "")]),
        (argument("price", "number"), "set_price", [Candidate("2.0", ""), Candidate("2.5", ""), Candidate("4.5", "")]),
        (argument("title", "integer"), "x", []),
        (argument("nothing_like_it", "string"), "x", []),
        (argument("size", "string", ("S", "L")), "x", [Candidate("S", ""), Candidate("L", "")]),
    ],
)  # fmt: skip
def test_candidates_are_values_that_fit(wanted: Field, tool: str, expected: list[Candidate]) -> None:
    assert candidates(wanted, tool, Snapshot(SHOP)) == expected


# Rows for tasks


def test_rows_a_task_speaks_of_come_first() -> None:
    found = anchors("Change the price of the Croissant (2.5) to 3.", Snapshot(SHOP))
    assert (found[0].values["id"], found[0].mentioned) == (12, ("name", "price"))
    assert (found[1].values["id"], found[1].mentioned) == (11, ("name",))
    assert len(found) == 6


def test_a_value_inside_a_word_is_not_mentioned() -> None:
    found = anchors("Breadth first", Snapshot(SHOP))
    assert not any(anchor.mentioned for anchor in found)


# Comparing


def test_environments_are_compared_by_name_of_each_part() -> None:
    left = Environment("a", tasks=("One.", "Two."), schema=(TableSchema("t", "CREATE TABLE t (x)"),), code="x = 1")
    right = Environment("b", tasks=("One.",), schema=(TableSchema("t", "CREATE TABLE t (y)"),))
    facts = {(fact.group, fact.name): fact for fact in compare(left, right)}
    assert facts["task", "0"].same
    assert (facts["task", "1"].left, facts["task", "1"].right) == ("Two.", "")
    text, language = facts["table", "t"].difference()
    assert language == "diff"
    assert "-CREATE TABLE t (x)" in text.splitlines()
    assert "+CREATE TABLE t (y)" in text.splitlines()
    assert facts["task", "0"].difference() == ("One.", "")
    assert facts["code", "application"].right == ""
