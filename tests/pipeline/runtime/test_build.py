"""Building a database: nothing is lost silently, and order does not matter."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.model import Environment, TableRows, TableSchema
from pipeline.runtime.build import PAGE_SIZE, Build, build, split_statements
from tests.pipeline.runtime.programs import NOW
from tests.pipeline.runtime.programs import built as built_real


def made(ddl: Sequence[str], inserts: Sequence[str] = (), *, table: str = "t", strict: bool = False) -> Build:
    schema = [TableSchema(sql.split("(")[0].split()[-1], sql) for sql in ddl]
    return build(schema, [TableRows(table, tuple(inserts))], now=NOW, strict=strict)


def rows(found: Build, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(found.snapshot)
        return connection.execute(sql).fetchall()


NOTES = ("CREATE TABLE note(id INTEGER PRIMARY KEY, ticket_id INTEGER REFERENCES ticket(id), body TEXT);",)
TICKETS = ("CREATE TABLE ticket(id INTEGER PRIMARY KEY, title TEXT);",)


def test_an_unescaped_apostrophe_costs_its_own_row_only() -> None:
    built = build(
        [TableSchema("note", NOTES[0]), TableSchema("ticket", TICKETS[0])],
        [
            TableRows("ticket", ("INSERT INTO ticket VALUES (7,'Lamp');",)),
            TableRows(
                "note",
                (
                    "INSERT INTO note VALUES (1,7,'We'll send a new lamp');",
                    "INSERT INTO note VALUES (2,7,'Arrived');",
                ),
            ),
        ],
        now=NOW,
    )
    (failed,) = built.failed
    assert (failed.number, failed.table, failed.row, failed.kind) == (4, "note", 0, "insert")
    assert 'near "ll"' in failed.error
    assert built.statements == 5
    assert rows(built, "SELECT id, body FROM note") == [(2, "Arrived")]
    assert built.ok


def test_an_apostrophe_does_not_swallow_statements_that_share_its_text() -> None:
    built = made(
        ["CREATE TABLE t(id INTEGER PRIMARY KEY, body TEXT)"],
        [
            "INSERT INTO t VALUES (1,'We'll go'); INSERT INTO t VALUES (2,'fine');\n"
            "INSERT INTO t VALUES (3,'don't'); INSERT INTO t VALUES (4,'also; fine');"
        ],
    )
    assert [(failed.number, failed.row) for failed in built.failed] == [(2, 0), (4, 2)]
    assert rows(built, "SELECT id FROM t") == [(2,), (4,)]


def test_a_missing_table_fails_the_build_whatever_its_share() -> None:
    built = build(
        [
            TableSchema("form", "CREATE TABLE form(id INTEGER PRIMARY KEY, name TEXT);"),
            TableSchema("question", "CREATE TABLE question(id INTEGER PRIMARY KEY, label TEXT DEFAULT 'x';"),
            TableSchema(
                "answer",
                "CREATE TABLE answer(id INTEGER PRIMARY KEY, question_id INTEGER REFERENCES question(id));",
                ("CREATE INDEX by_question ON answer(question_id)",),
            ),
        ],
        [
            TableRows("question", ("INSERT INTO question VALUES (1,1,'Name?');",)),
            TableRows("answer", ("INSERT INTO answer VALUES (1,1);",)),
        ],
        now=NOW,
    )
    assert not built.ok
    assert built.missing_tables == ("question",)
    assert built.dependents == {"question": ("answer",)}
    assert [(failed.kind, failed.table) for failed in built.failed] == [("ddl", "question"), ("insert", "question")]
    assert [(violation["table"], violation["parent"]) for violation in built.foreign_keys] == [("answer", "question")]
    assert built.tables == {"answer": 1, "form": 0}


CYCLE = (
    "CREATE TABLE staff(id INTEGER PRIMARY KEY, team_id INTEGER NOT NULL REFERENCES team(id));",
    "CREATE TABLE team(id INTEGER PRIMARY KEY, lead_id INTEGER REFERENCES staff(id));",
)
CYCLE_ROWS = (
    "INSERT INTO staff VALUES (1,10);",
    "INSERT INTO team VALUES (10,1);",
    "INSERT INTO staff VALUES (2,99);",
)


@given(st.permutations(CYCLE), st.permutations(CYCLE_ROWS))
def test_a_cycle_loads_and_a_dangling_reference_is_found_in_any_order(ddl: list[str], inserts: list[str]) -> None:
    built = made(ddl, inserts)
    assert built.failed == ()
    assert built.foreign_keys == (
        {"table": "staff", "rowid": 2, "row": {"id": 2, "team_id": 99}, "parent": "team", "columns": ["team_id"]},
    )
    assert rows(built, "SELECT id FROM staff ORDER BY id") == [(1,), (2,)]


def test_strict_loads_as_upstream_does_and_loses_rows_that_come_before_their_parent() -> None:
    built = made(CYCLE, CYCLE_ROWS, strict=True)
    assert [failed.error for failed in built.failed] == ["FOREIGN KEY constraint failed"] * 3
    assert not made(CYCLE, CYCLE_ROWS).failed


def test_a_row_that_needs_a_later_row_is_tried_again() -> None:
    built = made(
        ["CREATE TABLE t(id INTEGER PRIMARY KEY, parent INTEGER NOT NULL)"],
        ["INSERT INTO t VALUES (2, (SELECT id FROM t WHERE id = 1))", "INSERT INTO t VALUES (1, 0)"],
    )
    assert built.failed == ()
    assert rows(built, "SELECT * FROM t") == [(1, 0), (2, 1)]


def test_numbers_count_statements_in_the_order_given() -> None:
    built = build(
        [
            TableSchema("a", "CREATE TABLE a(x)", ("CREATE INDEX bad ON a(nothing)",)),
            TableSchema("b", "CREATE TABLE b(x)", ("CREATE INDEX good ON b(x)",)),
        ],
        [TableRows("b", ("INSERT INTO b VALUES (1)", "INSERT INTO b VALUES (1, 2)"))],
        now=NOW,
    )
    assert [(failed.number, failed.kind, failed.row) for failed in built.failed] == [
        (2, "index", None),
        (6, "insert", 1),
    ]


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("ATTACH DATABASE '/tmp/elsewhere.db' AS other", "ATTACH is not allowed"),
        ("PRAGMA foreign_keys = OFF", "PRAGMA is not allowed"),
        ("BEGIN", "transactions are not allowed"),
        ("COMMIT", "transactions are not allowed"),
        ("SAVEPOINT here", "transactions are not allowed"),
        ("INSERT INTO t SELECT load_extension('evil')", "load_extension is not allowed"),
        ("INSERT INTO t VALUES ('a\0b')", "null character"),
        ("INSERT INTO t VALUES (1); And that was it.", "syntax error"),
        ("VACUUM INTO '/tmp/elsewhere.db'", ""),
    ],
)
def test_what_is_not_allowed_is_a_failed_statement(sql: str, error: str) -> None:
    built = made(["CREATE TABLE t(x)"], [sql, "INSERT INTO t VALUES ('kept')"])
    assert len(built.failed) == 1
    assert error in built.failed[0].error
    assert rows(built, "SELECT x FROM t WHERE x = 'kept'") == [("kept",)]
    assert not Path("/tmp/elsewhere.db").exists()


def test_a_conflict_that_would_roll_everything_back_costs_one_row() -> None:
    built = made(
        ["CREATE TABLE t(id INTEGER PRIMARY KEY ON CONFLICT ROLLBACK, x)"],
        ["INSERT INTO t VALUES (1, 'a')", "INSERT INTO t VALUES (1, 'b')", "INSERT INTO t VALUES (2, 'c')"],
    )
    assert [failed.row for failed in built.failed] == [1]
    assert rows(built, "SELECT * FROM t") == [(1, "a"), (2, "c")]


def test_views_and_triggers_are_part_of_it() -> None:
    built = build(
        [
            TableSchema(
                "t",
                "CREATE TABLE t(x); CREATE TABLE log(x);"
                "CREATE TRIGGER logged AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.x); SELECT 1; END;",
            ),
            TableSchema("latest", "CREATE VIEW latest AS SELECT max(x) AS x FROM t"),
        ],
        [TableRows("t", ("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); -- that's all",))],
        now=NOW,
    )
    assert built.failed == ()
    assert built.others == {"latest": "view", "logged": "trigger"}
    assert built.tables == {"t": 2, "log": 2}
    assert built.ok


def test_time_in_rows_is_the_pinned_one() -> None:
    ddl = "CREATE TABLE t(a DEFAULT CURRENT_TIMESTAMP, b, c CHECK (c <= date('now')))"
    inserts = ["INSERT INTO t(b, c) VALUES (datetime('now', '-3 days', 'start of day'), date('now'))"]
    assert rows(made([ddl], inserts), "SELECT * FROM t") == [
        ("2026-03-01 08:30:00", "2026-02-26 00:00:00", "2026-03-01")
    ]


def test_the_same_build_gives_the_same_bytes_with_small_pages() -> None:
    first, second = (made(CYCLE, CYCLE_ROWS) for _ in range(2))
    assert first == second
    assert int.from_bytes(first.snapshot[16:18]) == PAGE_SIZE


def test_nothing_builds_an_empty_database() -> None:
    built = build([], [], now=NOW)
    assert built.ok
    assert rows(built, "SELECT * FROM sqlite_master") == []


@given(st.lists(st.sampled_from(["a;b", "it''s", "-- x;", "/* ; */", "plain", '";"']), max_size=6), st.randoms())
def test_statements_are_split_where_sqlite_ends_them(texts: list[str], rng: random.Random) -> None:
    statements = [f"INSERT INTO t VALUES ('{text}')" for text in texts]
    joined = "".join(
        f"{sql};{rng.choice(['', ' ', chr(10), ' -- note; more' + chr(10), '/* ; */'])}" for sql in statements
    )
    found = [sql.rstrip(";") for sql in split_statements(joined)]
    assert [sql[sql.index("INSERT") :] for sql in found] == statements


def test_real_environments_lose_what_is_known_to_be_broken(real: list[Environment]) -> None:
    builds = {environment.name: built_real(environment) for environment in real}
    assert {name: built.missing_tables for name, built in builds.items() if not built.ok} == {
        "surveymonkey_apply": ("form_questions",)
    }
    assert {name: len(built.failed) for name, built in builds.items()} == {
        "doordash_drive_delivery_tracking": 1,
        "etsy_digital_downloads": 1,
        "gofundme": 0,
        "samsara_fleet_asset_maintenance_management": 0,
        "surveymonkey_apply": 11,
    }
