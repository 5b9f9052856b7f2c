"""A diff says what changed, and nothing else."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import UserError
from pipeline.model import Environment
from pipeline.runtime.diff import SCHEMA, diff
from studio.commands.diff import diff_command
from tests.pipeline.runtime.programs import built

KEYED = "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b)"
PAIR = "CREATE TABLE t(a, b, PRIMARY KEY(a, b))"
LOOSE = "CREATE TABLE t(a, b)"


def database(*statements: str, rows: Sequence[Sequence[Any]] = ()) -> bytes:
    """A snapshot made by statements, with rows of table t."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
        for row in rows:
            connection.execute(f"INSERT INTO t VALUES ({', '.join('?' * len(row))})", row)
        connection.execute("VACUUM")
        return connection.serialize()


def test_equal_databases_have_no_changes() -> None:
    snapshot = database(KEYED, rows=[(1, "x", None)])
    assert diff(snapshot, snapshot) == {}
    assert diff(snapshot, database(KEYED, rows=[(1, "x", None)])) == {}


def test_rows_are_added_removed_and_changed_column_by_column() -> None:
    before = database(KEYED, rows=[(1, "stays", 1), (2, "goes", 2), (3, "same", 3)])
    after = database(KEYED, rows=[(1, "stays", 9), (3, "same", 3), (4, "comes", None)])
    assert diff(before, after) == {
        "t": {
            "added": [{"id": 4, "a": "comes", "b": None}],
            "removed": [{"id": 2, "a": "goes", "b": 2}],
            "changed": [{"key": {"id": 1}, "before": {"b": 1}, "after": {"b": 9}}],
        }
    }


def test_values_of_another_type_are_other_values() -> None:
    before = database(KEYED, rows=[(1, 1, 0), (2, "1", b"x"), (3, 2.0, 1.5)])
    after = database(KEYED, rows=[(1, 1.0, 0), (2, 1, "x"), (3, 2.0, 1.5)])
    changed = diff(before, after)["t"]["changed"]
    assert json.dumps(changed) == json.dumps(
        [
            {"key": {"id": 1}, "before": {"a": 1}, "after": {"a": 1.0}},
            {"key": {"id": 2}, "before": {"a": "1", "b": {"blob": "78"}}, "after": {"a": 1, "b": "x"}},
        ]
    )


def test_values_that_json_cannot_hold_are_objects() -> None:
    before = database(KEYED)
    after = database(KEYED, "INSERT INTO t VALUES (1, 9e999, CAST(x'ff41' AS TEXT)), (2, x'', -9e999)")
    assert diff(before, after)["t"]["added"] == [
        {"id": 1, "a": {"real": "inf"}, "b": {"blob": "ff41"}},
        {"id": 2, "a": {"blob": ""}, "b": {"real": "-inf"}},
    ]


def test_tables_without_a_key_count_equal_rows() -> None:
    before = database(LOOSE, rows=[(1, 2), (1, 2), (3, 4)])
    after = database(LOOSE, rows=[(3, 4), (1, 2), (5, 6), (5, 6)])
    assert diff(before, after) == {"t": {"added": [{"a": 5, "b": 6}] * 2, "removed": [{"a": 1, "b": 2}], "changed": []}}


def test_rows_whose_key_is_null_are_rows_without_a_key() -> None:
    before, after = database(PAIR, rows=[(None, 1), (None, 1)]), database(PAIR, rows=[(None, 1), (None, 2)])
    assert diff(before, after)["t"] == {"added": [{"a": None, "b": 2}], "removed": [{"a": None, "b": 1}], "changed": []}


def test_changes_of_the_schema_stand_beside_the_tables() -> None:
    before = database(KEYED, "CREATE TABLE old(x)", "INSERT INTO old VALUES (1)", rows=[(1, 2, 3)])
    after = database(
        KEYED,
        "ALTER TABLE t ADD COLUMN c DEFAULT 'new'",
        "CREATE VIEW v AS SELECT 1",
        "INSERT INTO t VALUES (1, 2, 3, 'new')",
    )
    changes = diff(before, after)
    assert list(changes) == [SCHEMA, "old", "t"]
    assert [row["name"] for row in changes[SCHEMA]["added"]] == ["v"]
    assert [row["name"] for row in changes[SCHEMA]["removed"]] == ["old"]
    assert changes[SCHEMA]["changed"][0]["key"] == {"type": "table", "name": "t"}
    assert changes["old"]["removed"] == [{"x": 1}]
    assert changes["t"]["changed"] == [{"key": {"id": 1}, "before": {}, "after": {"c": "new"}}]


def test_another_key_means_other_rows() -> None:
    changes = diff(
        database(KEYED, rows=[(1, 2, 3)]), database("CREATE TABLE t(id, a PRIMARY KEY, b)", rows=[(1, 2, 3)])
    )
    assert (changes["t"]["added"], changes["t"]["removed"]) == ([{"id": 1, "a": 2, "b": 3}],) * 2


def test_nothing_in_a_snapshot_is_run() -> None:
    before = database(KEYED)
    after = database(
        KEYED,
        "CREATE VIEW v AS SELECT no_such_function(1) AS x",
        "CREATE TABLE g(x, y AS (zeroblob(100000000)))",
        "CREATE VIRTUAL TABLE words USING fts5(word)",
        "INSERT INTO words VALUES ('one')",
    )
    assert "words" not in diff(before, after)
    heavy = database(KEYED, "CREATE TABLE g(x, y AS (zeroblob(100000000)))", "INSERT INTO g VALUES (1)")
    with pytest.raises(UserError, match="final database cannot be read"):
        diff(before, heavy)


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"no database at all" * 100])
def test_what_is_no_database_is_named(content: bytes) -> None:
    with pytest.raises(UserError, match="The initial database cannot be read"):
        diff(content, database(KEYED))


VALUES = (
    st.none()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=3)
    | st.binary(max_size=3)
)
ROWS = st.lists(st.tuples(st.integers(0, 6), VALUES, VALUES), unique_by=lambda row: row[0], max_size=6)
PAIRS = st.lists(st.tuples(st.sampled_from([None, 1, "x"]), st.sampled_from([0, 0.5, b"y"])), max_size=6)


def apply(rows: Sequence[dict[str, Any]], changes: dict[str, Any], key: Sequence[str]) -> list[dict[str, Any]]:
    """The rows after a table's changes."""
    left = list(rows)
    for row in changes["removed"]:
        left.remove(row)
    for change in changes["changed"]:
        (row,) = [row for row in left if all(row[name] == change["key"][name] for name in key)]
        assert all(row[name] == value for name, value in change["before"].items())
        left[left.index(row)] = {**row, **change["after"]}
    return left + changes["added"]


def as_rows(snapshot: bytes) -> list[dict[str, Any]]:
    """The rows of t as a diff shows them: what an empty table lacks."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(snapshot)
        (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 't'").fetchone()
    return diff(database(sql), snapshot).get("t", {"added": []})["added"]


def typed(rows: Sequence[dict[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(row, sort_keys=True) for row in rows)


@given(ROWS, ROWS)
def test_applying_a_diff_gives_the_rows_after(before: list[Any], after: list[Any]) -> None:
    old, new = database(KEYED, rows=before), database(KEYED, rows=after)
    changes = diff(old, new)
    assert changes.keys() <= {"t"}
    assert typed(apply(as_rows(old), changes.get("t", {"added": [], "removed": [], "changed": []}), ["id"])) == typed(
        as_rows(new)
    )
    assert bool(changes) == (typed(as_rows(old)) != typed(as_rows(new)))
    reverse = diff(new, old).get("t", {"added": [], "removed": [], "changed": []})
    assert typed(reverse["added"]) == typed(changes.get("t", {}).get("removed", []))


@given(PAIRS, PAIRS)
def test_so_it_does_without_a_key(before: list[Any], after: list[Any]) -> None:
    old, new = database(LOOSE, rows=before), database(LOOSE, rows=after)
    changes = diff(old, new).get("t", {"added": [], "removed": [], "changed": []})
    assert changes["changed"] == []
    assert typed(as_rows(old)) + typed(changes["added"]) - typed(changes["removed"]) == typed(as_rows(new))
    assert not typed(changes["added"]) & typed(changes["removed"])


def test_real_databases_differ_from_nothing_by_all_their_rows(real: list[Environment]) -> None:
    for environment in real:
        found = built(environment)
        changes = diff(database("CREATE TABLE unrelated(x)", "DROP TABLE unrelated"), found.snapshot)
        assert {name: len(change["added"]) for name, change in changes.items() if name != SCHEMA} == {
            name: count for name, count in found.tables.items() if count
        }


def test_the_command_shows_a_line_a_row(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_bytes(database(KEYED, rows=[(1, "x", 1), (2, "goes", None)]))
    (tmp_path / "b.db").write_bytes(database(KEYED, rows=[(1, "é", 1.0), (3, b"\x01", None)]))
    arguments = [str(tmp_path / "a.db"), str(tmp_path / "b.db")]
    shown = CliRunner().invoke(diff_command, arguments)
    assert shown.output.splitlines() == [
        "t",
        '  + id=3, a={"blob": "01"}, b=null',
        '  - id=2, a="goes", b=null',
        '  ~ id=1  a: "x" → "é", b: 1 → 1.0',
    ]
    as_json = CliRunner().invoke(diff_command, [*arguments, "--json"])
    assert json.loads(as_json.output)["t"]["changed"] == [
        {"key": {"id": 1}, "before": {"a": "x", "b": 1}, "after": {"a": "é", "b": 1.0}}
    ]
    assert json.loads(CliRunner().invoke(diff_command, [arguments[0], arguments[0], "--json"]).output) == {}
    missing = CliRunner().invoke(diff_command, [arguments[0], str(tmp_path / "nowhere.db")])
    assert isinstance(missing.exception, UserError)
