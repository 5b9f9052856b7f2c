"""The queries that show what changed between two snapshots."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from studio.changed_rows import Change, changes


@dataclass
class Difference:
    """A change and the rows that its query gives."""

    change: Change
    rows: list[tuple]


def compare(initial: str, final: str) -> dict[str, Difference]:
    """What `changes` finds between two databases given as SQL scripts, by table."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("attach database ':memory:' as initial")
        for name, sql in (("initial", initial), ("main", final)):
            with closing(sqlite3.connect(":memory:")) as made:
                made.executescript(sql)
                connection.deserialize(made.serialize(), name=name)
        return {
            change.table: Difference(change, connection.execute(change.sql).fetchall())
            for change in changes(connection)
        }


KEYED = "create table t (id integer primary key, name text collate nocase, price real);"
PLAIN = "create table t (a, b);"


def test_added_removed_and_changed_rows_are_told_apart() -> None:
    found = compare(
        KEYED + "insert into t values (1, 'a', 1.5), (2, 'b', 2), (3, 'c', 3);",
        KEYED + "insert into t values (1, 'a', 1.75), (3, 'c', 3), (4, 'd', null);",
    )
    assert str(found["t"].change) == "t: 1 added, 1 removed, 1 changed"
    assert found["t"].rows == [
        ("changed from", 1, "a", 1.5),
        ("changed to", 1, "a", 1.75),
        ("removed", 2, "b", 2.0),
        ("added", 4, "d", None),
    ]


def test_equal_tables_have_no_query() -> None:
    assert compare(KEYED + "insert into t values (1, null, 1);", KEYED + "insert into t values (1, null, 1);") == {}


def test_a_change_of_case_is_seen_in_a_column_that_ignores_case() -> None:
    found = compare(KEYED + "insert into t values (1, 'a', 1);", KEYED + "insert into t values (1, 'A', 1);")
    assert found["t"].rows == [("changed from", 1, "a", 1.0), ("changed to", 1, "A", 1.0)]


def test_an_integer_is_not_the_equal_float() -> None:
    found = compare(PLAIN + "insert into t values (1, 1);", PLAIN + "insert into t values (1, 1.0);")
    assert str(found["t"].change) == "t: 1 added, 1 removed"


def test_copies_of_a_row_are_counted_where_nothing_identifies_it() -> None:
    found = compare(
        PLAIN + "insert into t values (1, 'x'), (1, 'x'), (2, null);",
        PLAIN + "insert into t values (1, 'x'), (2, null);",
    )
    assert str(found["t"].change) == "t: 1 removed"
    assert found["t"].rows == [("removed", 1, "x")]


def test_tables_and_columns_that_one_side_lacks_are_shown() -> None:
    found = compare(
        "create table old (x); insert into old values (1); create table t (id integer primary key, was text);"
        "insert into t values (1, 'w');",
        "create table new (y); insert into new values (2); create table t (id integer primary key, became text);"
        "insert into t values (1, 'b');",
    )
    assert {name: str(difference.change) for name, difference in found.items()} == {
        "new": "new: 1 added",
        "old": "old: 1 removed",
        "t": "t: 1 changed",
    }
    assert found["t"].rows == [("changed from", 1, None, "w"), ("changed to", 1, "b", None)]


def test_any_name_may_be_quoted_or_be_a_keyword() -> None:
    table = 'create table "a ""b"" [c]" ("change", "select" text, "x;y" primary key) without rowid;'
    found = compare(table, table + """insert into "a ""b"" [c]" values (1, 'two', 3);""")
    assert found['a "b" [c]'].rows == [("added", 1, "two", 3)]


values = st.one_of(
    st.none(), st.integers(-3, 3), st.sampled_from([0.5, 1.0]), st.sampled_from(["", "a", "A"]), st.binary(max_size=1)
)


def literal(value: object) -> str:
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return {None: "null", "": "''"}.get(value, repr(value))  # type: ignore[call-overload]


def script(table: str, rows: list[tuple]) -> str:
    return table + "".join(f"insert into t values ({', '.join(map(literal, row))});" for row in rows)


def exact(row: tuple) -> tuple:
    """A row that is equal only to a row of the same values and the same types."""
    return tuple((type(value), value) for value in row)


@given(st.lists(st.tuples(values, values), max_size=6), st.lists(st.tuples(values, values), max_size=6))
def test_without_a_key_the_counts_are_those_of_a_multiset(before: list[tuple], after: list[tuple]) -> None:
    was, now = Counter(map(exact, before)), Counter(map(exact, after))
    found = compare(script(PLAIN, before), script(PLAIN, after)).get("t")
    counted = (found.change.added, found.change.removed) if found else (0, 0)
    assert counted == ((now - was).total(), (was - now).total())


@given(st.dictionaries(st.integers(0, 5), values, max_size=6), st.dictionaries(st.integers(0, 5), values, max_size=6))
def test_with_a_key_the_counts_are_those_of_a_dictionary(before: dict, after: dict) -> None:
    table = "create table t (id integer primary key, v);"
    found = compare(script(table, list(before.items())), script(table, list(after.items()))).get("t")
    changed = sum(exact((before[key],)) != exact((after[key],)) for key in before.keys() & after.keys())
    expected = (len(after.keys() - before.keys()), len(before.keys() - after.keys()), changed)
    counted = (found.change.added, found.change.removed, found.change.changed) if found else (0, 0, 0)
    assert counted == expected
