"""Reading INSERT statements without running them."""

from __future__ import annotations

import pytest

from curation.fixes.inserts import UNKNOWN, inserted, literal, without_row

THREE = "INSERT INTO t (id, `name`) VALUES (1, 'a, (b)'), (2,'O''Neil'),\n (3, lower('X')) ON CONFLICT DO NOTHING;"


def test_rows_are_told_apart_whatever_stands_in_their_texts() -> None:
    columns, rows = inserted(THREE)
    assert columns == ("id", "name")
    assert [row.values for row in rows] == [("1", "'a, (b)'"), ("2", "'O''Neil'"), ("3", "lower('X')")]


@pytest.mark.parametrize(
    ("number", "rest"),
    [
        (0, "INSERT INTO t (id, `name`) VALUES (2,'O''Neil'),\n (3, lower('X')) ON CONFLICT DO NOTHING;"),
        (1, "INSERT INTO t (id, `name`) VALUES (1, 'a, (b)'), (3, lower('X')) ON CONFLICT DO NOTHING;"),
        (2, "INSERT INTO t (id, `name`) VALUES (1, 'a, (b)'), (2,'O''Neil') ON CONFLICT DO NOTHING;"),
    ],
)
def test_one_row_goes_and_the_rest_stays_to_the_letter(number: int, rest: str) -> None:
    assert without_row(THREE, number) == rest


def test_nothing_is_left_of_a_statement_without_its_only_row() -> None:
    assert without_row("INSERT INTO t VALUES (1)", 0) is None


def test_other_statements_have_no_rows() -> None:
    assert inserted("INSERT INTO t SELECT * FROM u WHERE id IN (1, 2)")[1] == []
    assert inserted("CREATE TABLE t (id INTEGER)")[1] == []


@pytest.mark.parametrize(
    ("text", "value"),
    [("NULL", None), ("'it''s'", "it's"), ("-3.5", -3.5), ("7", 7), ("datetime('now')", UNKNOWN), ("x'00'", UNKNOWN)],
)
def test_only_plain_literals_have_a_value(text: str, value: object) -> None:
    assert literal(text) == value


def test_a_row_is_known_by_its_plain_values_and_by_their_columns() -> None:
    _, rows = inserted("INSERT INTO t VALUES (7, 'Lamp', datetime('now')), (8, 'Lamp', NULL)")
    columns = ("id", "title", "at")
    assert [row.is_row(columns, {"id": 7, "title": "Lamp", "at": "2026-01-01 12:00:00"}) for row in rows] == [
        True,
        False,
    ]
    assert not rows[0].is_row(("id", "title"), {"id": 7}), "another table's columns"
    assert not rows[0].is_row(columns, {"other": 1}), "nothing to tell it by"
