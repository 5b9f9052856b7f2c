"""Properties of the states that verifiers are tried on: near misses are wrong, equivalents mean the same."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from curation.audit.answers import wrong_answers
from curation.audit.metamorphic import (
    DATE_FORMS,
    other_numbers,
    renumbered,
    same_answers,
    same_states,
    spelled,
    turned_round,
)
from curation.audit.mutations import extra_changes, near_misses
from curation.audit.subject import Change, changes, differences, meaning
from curation.audit.tables import read_tables
from curation.audit.wording import Mentions, dates, numbers
from pipeline.model import DEFAULT_NOW, Call
from pipeline.runtime.edits import Edit, apply_edits

SCHEMA = (
    "CREATE TABLE owner (id INTEGER PRIMARY KEY, name TEXT UNIQUE)",
    "CREATE TABLE item (id INTEGER PRIMARY KEY, owner_id INTEGER NOT NULL REFERENCES owner(id), label TEXT,"
    " amount REAL, done BOOLEAN, due TEXT)",
    "CREATE TABLE note (item_id INTEGER REFERENCES item(id), body TEXT)",
)
TASK = "Set everything that belongs to Ada right."

owners = st.lists(st.sampled_from(["Ada", "Bo", "Cy", "Dee", "Eva"]), min_size=2, max_size=5, unique=True)
item_rows = st.tuples(
    st.integers(0, 4),
    st.sampled_from(["lamp", "chair", "desk", "shelf"]),
    st.sampled_from([1.0, 2.5, 40.0]),
    st.booleans(),
    st.sampled_from(["2026-03-01", "2026-03-01 10:00:00", "2026-04-02T08:30:00.000000", None]),
)


@st.composite
def solutions(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A database, and what some calls might have made of it."""
    names = draw(owners)
    rows = draw(st.lists(item_rows, min_size=2, max_size=6))
    steps = draw(st.lists(st.tuples(st.sampled_from(["add", "change", "remove"]), item_rows), min_size=1, max_size=4))
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for statement in SCHEMA:
            db.execute(statement)
        for number, name in enumerate(names, 1):
            db.execute("INSERT INTO owner VALUES (?, ?)", (number, name))
        insert = "INSERT INTO item (owner_id, label, amount, done, due) VALUES (?, ?, ?, ?, ?)"
        for owner, *rest in rows:
            db.execute(insert, (owner % len(names) + 1, *rest))
        db.execute("INSERT INTO note VALUES (1, 'first'), (2, 'second'), (2, 'second')")
        initial = db.serialize()
        for kind, (place, *rest) in steps:
            if kind == "add":
                db.execute(insert, (place % len(names) + 1, *rest))
            elif kind == "change":
                db.execute("UPDATE item SET label = ?, amount = ? WHERE id = ?", (*rest[:2], place + 1))
            else:
                db.execute("DELETE FROM item WHERE id = ? AND id > 2", (place + 1,))
        return initial, db.serialize()


def edited(snapshot: bytes, edits: Iterable[Edit]) -> bytes | None:
    rows = [{"table": e.table, "key": e.key, "values": e.values} for e in edits]
    (copy,) = apply_edits(snapshot, [rows], now=DEFAULT_NOW)
    return copy


def changed(initial: bytes, final: bytes, task: str = TASK, **more) -> list[Change]:
    before, after = read_tables(initial), read_tables(final)
    return changes(before, after, differences(initial, final), Mentions(task), **more)


def told(initial: bytes, final: bytes) -> str:
    return meaning(differences(initial, final), read_tables(final))


@settings(max_examples=60, deadline=None)
@given(solutions())
def test_every_near_miss_is_another_end_than_the_solution(solution: tuple[bytes, bytes]) -> None:
    initial, final = solution
    assume(differences(initial, final))
    after = read_tables(final)
    found = changed(initial, final)
    for miss in [*near_misses(after, found), *extra_changes(after, found)]:
        ends = [end for way in miss.ways if (end := edited(final, way)) is not None]
        for end in ends:
            if end != final:  # changing a row into what another one already is changes nothing
                assert differences(final, end), miss.says
                assert told(initial, end) != told(initial, final), miss.says
                break


@settings(max_examples=60, deadline=None)
@given(solutions())
def test_what_means_the_same_differs_only_in_ids_and_in_how_dates_are_written(solution: tuple[bytes, bytes]) -> None:
    initial, final = solution
    found = changed(initial, final)
    for same in same_states(read_tables(initial), read_tables(final), found, Mentions(TASK)):
        before, after = edited(initial, same.initial), edited(final, same.final)
        assert before is not None and after is not None
        assert world(before) == world(initial), same.says
        assert world(after) == world(final), same.says
        assert (before, after) != (initial, final), same.says


@settings(max_examples=60, deadline=None)
@given(solutions())
def test_other_ids_leave_every_reference_whole_and_going_back_restores_each_row(solution: tuple[bytes, bytes]) -> None:
    initial, final = solution
    tables = read_tables(final)
    numbers_by_table = other_numbers(read_tables(initial), tables, Mentions(TASK))
    moved = edited(final, renumbered(tables, numbers_by_table))
    assert moved is not None
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(moved)
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    for name, table in read_tables(moved).items():
        assert set(table.numbers) == set(numbers_by_table[name].values()) & set(table.numbers)
        assert not set(table.numbers) & set(tables[name].numbers)
    back = {name: {new: old for old, new in pairs.items()} for name, pairs in numbers_by_table.items()}
    restored = edited(moved, renumbered(read_tables(moved), back))
    assert restored is not None and differences(final, restored) == {}


@settings(max_examples=40, deadline=None)
@given(solutions())
def test_dealing_ids_out_from_the_other_end_twice_restores_each_row(solution: tuple[bytes, bytes]) -> None:
    initial, final = solution
    tables = read_tables(final)
    turned = turned_round(tables, changed(initial, final), Mentions(TASK))
    once = edited(final, renumbered(tables, turned))
    assert once is not None
    twice = edited(once, renumbered(read_tables(once), turned))
    assert twice is not None and differences(final, twice) == {}


def world(snapshot: bytes) -> list[tuple]:
    """Everything a database says, whatever its ids and however its moments are written."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(snapshot)
        items = db.execute(
            "SELECT owner.name, label, amount, done, due, (SELECT group_concat(body) FROM note WHERE item_id = item.id)"
            " FROM item JOIN owner ON owner.id = owner_id"
        ).fetchall()
        names = db.execute("SELECT name FROM owner").fetchall()
    return sorted(
        map(repr, [*((*row[:4], spelled(row[4], "with a space") or row[4], row[5]) for row in items), *names])
    )


moments = st.datetimes(min_value=DEFAULT_NOW.replace(tzinfo=None)).map(lambda moment: moment.replace(microsecond=0))


@given(moments, st.sampled_from(sorted(DATE_FORMS)), st.sampled_from(sorted(DATE_FORMS)))
def test_a_moment_is_the_same_in_every_spelling(moment, one: str, other: str) -> None:
    from datetime import UTC, datetime

    text = spelled(moment.isoformat(" "), one)
    assert text is not None
    assert spelled(text, other) == spelled(moment.isoformat(" "), other)
    read = datetime.fromisoformat(text)
    assert (read if read.tzinfo is None else read.astimezone(UTC).replace(tzinfo=None)) == moment


@pytest.mark.parametrize("value", ["2026-03-01", "soon", None, 3, "2026-03-01 10:00:00.250000"])
def test_days_and_fractions_that_say_something_are_not_rewritten(value: object) -> None:
    forms = {spelled(value, form) for form in DATE_FORMS}
    assert forms == {None} or all(".25" in text for text in forms if text)


@given(st.from_regex(r"[A-Za-z]{1,6}( [A-Za-z]{1,6}){0,3} [0-9]{1,3}", fullmatch=True))
def test_the_same_answer_in_another_form_has_the_same_words_and_numbers(answer: str) -> None:
    for how, text in same_answers(answer):
        assert text != answer
        assert list(numbers(text)) == list(numbers(answer))
        words = " ".join(text.casefold().split())
        assert words.endswith(" ".join(answer.casefold().split())), how


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ("6", ["7", "16", "6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16"]),
        ("33.50 in all", ["34.50 in all", "133.50 in all", f"{', '.join(map(str, range(33, 44)))}.50 in all"]),
        ("2026-03-31", ["2026-04-01"]),
        ("Ada", ["Bob", "Cid", "Ada, Bob, Cid"]),
        ("Ada and Bob", ["Cid and Bob", "Ada, Bob, Cid", "Ada"]),
        ("Yes", ["No"]),
        ("No, it is not there", ["Yes, it is not there"]),
        ("I changed nothing: only 3 are left", []),
        ("It is done", []),
    ],
)
def test_wrong_answers_say_something_else_of_the_same_kind(answer: str, wrong: list[str]) -> None:
    statements = (*SCHEMA, "INSERT INTO owner VALUES (1, 'Ada'), (2, 'Bob'), (3, 'Cid')")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)
        tables = read_tables(db.serialize())
    assert [one.text for one in wrong_answers(answer, Mentions("Who has how many?"), tables)] == wrong


# What a task asks for


def desk(*statements: str) -> tuple[bytes, bytes]:
    """A small lending desk before and after some statements."""
    schema = (
        "CREATE TABLE title (id INTEGER PRIMARY KEY, name TEXT)",
        "CREATE TABLE copy (id INTEGER PRIMARY KEY, title_id INTEGER REFERENCES title(id), state TEXT, updated_at TEXT)",
        "CREATE TABLE loan (id INTEGER PRIMARY KEY, copy_id INTEGER REFERENCES copy(id), until TEXT, remark TEXT)",
        "CREATE TABLE counter (id INTEGER PRIMARY KEY, next INTEGER)",
        "INSERT INTO title VALUES (1, 'Dune'), (2, 'Emma')",
        "INSERT INTO copy VALUES (1, 1, 'in', '2025-01-01 08:00:00'), (2, 2, 'in', '2025-01-01 08:00:00')",
        "INSERT INTO counter VALUES (1, 7)",
    )
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for statement in schema:
            db.execute(statement)
        initial = db.serialize()
        for statement in statements:
            db.execute(statement)
        return initial, db.serialize()


LEND = (
    "INSERT INTO loan VALUES (1, 1, '2026-02-03', 'as you like')",
    "UPDATE copy SET state = 'out', updated_at = '2026-01-01 12:00:01' WHERE id = 1",
    "UPDATE counter SET next = 8",
)
LENT = [Call("lend", {"copy_id": 1, "until": "2026-02-03", "remark": "as you like"})]


def asked(task: str, statements: Sequence[str] = LEND, calls: Sequence[Call] = LENT) -> dict[str, tuple[str, ...]]:
    found = changed(*desk(*statements), task, calls=calls)
    return {change.table.name: change.cells for change in found if change.asked}


def test_rows_that_belong_to_what_a_task_names_are_asked_for_and_counters_and_clocks_are_not() -> None:
    found = asked("Lend 'Dune' until 3 February 2026.")
    assert found == {"loan": ("copy_id", "until"), "copy": ("state",)}


def test_a_row_that_only_the_calls_name_is_asked_for_too() -> None:
    assert set(asked("Lend the oldest book until 2026-02-03.")) == {"loan", "copy"}


def test_where_a_task_names_nothing_everything_counts() -> None:
    assert set(asked("Do what is due.", calls=())) == {"loan", "copy", "counter"}


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("in_progress", True),
        ("In-Progress", True),
        ("2026-03-01", True),
        ("2026-03-01 00:00:00.000000", True),
        ("2026-03-02", False),
        (1200, True),
        (12.5, True),
        (7, True),
        (12, False),
        ("AB-12", True),
        ("progress report", False),
        ("a", False),
        (None, False),
        ({"blob": "00"}, False),
    ],
)
def test_a_task_names_a_value_however_it_is_written(value: object, named: bool) -> None:
    task = "Set AB-12 in progress from March 1st, 2026 for $1,200 and 12.5 points, in seven steps."
    assert Mentions(task).has(value) is named


def test_dates_and_numbers_are_read_in_the_forms_people_use() -> None:
    assert set(dates("on 2026-3-1, April 2 2026, 5th of May, 2026; not 2026-13-40")) == {
        "2026-03-01",
        "2026-04-02",
        "2026-05-05",
    }
    assert sorted(numbers("RX-0002 on 2026-01-03: 3 of 1,234.5 in two rows")) == [2.0, 3.0, 1234.5]


def test_a_table_without_a_key_is_changed_row_by_row() -> None:
    initial, final = desk("CREATE TABLE word (text TEXT)", "INSERT INTO word VALUES ('one'), ('one')")
    tables = read_tables(final)
    assert tables["word"].key_of(tables["word"].rows[0]) == {"text": "one"}
    assert json.dumps(differences(initial, final)["word"]["added"]) == '[{"text": "one"}, {"text": "one"}]'
