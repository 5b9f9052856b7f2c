"""Changing rows of a finished database, without any of its own code running where it should not."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing
from datetime import UTC, datetime

import pytest

from pipeline.runtime.diff import diff
from pipeline.runtime.edits import Edit
from pipeline.runtime.host import Host
from pipeline.runtime.launcher import WorkerLost
from pipeline.runtime.limits import Limits


def database(*statements: str) -> bytes:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
        return connection.serialize()


SHOP = database(
    "CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT UNIQUE, price REAL CHECK (price >= 0), picture BLOB)",
    "CREATE TABLE log (at TEXT DEFAULT (datetime('now')), said TEXT)",
    "CREATE TRIGGER noted AFTER UPDATE ON item BEGIN INSERT INTO log VALUES ('now', 'changed'); END",
    "INSERT INTO item VALUES (1, 'Lamp', 5.0, x'00'), (2, 'Chair', 9.5, NULL)",
)


@pytest.fixture(scope="module")
def host() -> Generator[Host]:
    with Host(limits=Limits(load_timeout_s=2, grace_s=0.5)) as started:
        yield started


def test_rows_are_made_changed_and_removed_in_copies_that_know_nothing_of_each_other(host: Host) -> None:
    made, changed, removed, emptied = host.edit(
        SHOP,
        [
            [Edit("item", None, {"id": 3, "name": "Rug", "price": 1.0})],
            [Edit("item", {"id": 1}, {"picture": {"blob": "ff"}, "price": {"real": "inf"}})],
            [Edit("item", {"picture": None}, None)],
            [Edit("item", {}, None)],
        ],
    )
    assert made and changed and removed and emptied
    new = {"id": 3, "name": "Rug", "price": 1.0, "picture": None}
    assert diff(SHOP, made) == {"item": {"added": [new], "removed": [], "changed": []}}
    assert diff(SHOP, changed)["item"]["changed"] == [
        {
            "key": {"id": 1},
            "before": {"price": 5.0, "picture": {"blob": "00"}},
            "after": {"price": {"real": "inf"}, "picture": {"blob": "ff"}},
        }
    ]
    assert [row["id"] for row in diff(SHOP, removed)["item"]["removed"]] == [2]
    assert len(diff(SHOP, emptied)["item"]["removed"]) == 2


def test_triggers_do_not_fire_and_are_still_there(host: Host) -> None:
    (changed,) = host.edit(SHOP, [[Edit("item", {"id": 1}, {"name": "Light"})]])
    assert changed and set(diff(SHOP, changed)) == {"item"}


def test_a_default_sees_the_time_that_is_given(host: Host) -> None:
    (changed,) = host.edit(SHOP, [[Edit("log", None, {"said": "x"})]], now=datetime(2030, 5, 6, tzinfo=UTC))
    assert changed and diff(SHOP, changed)["log"]["added"] == [{"at": "2030-05-06 00:00:00", "said": "x"}]


def test_what_the_tables_forbid_gives_nothing_and_the_rest_goes_on(host: Host) -> None:
    copies = host.edit(
        SHOP,
        [
            [Edit("item", {"id": 1}, {"name": "Chair"})],
            [Edit("item", {"id": 1}, {"price": -1})],
            [Edit("nowhere", {"id": 1}, None)],
            [Edit("item", {"id": 1}, {"id": 10}), Edit("item", {"id": 2}, {"id": 1})],
        ],
    )
    assert [copy is None for copy in copies] == [True, True, True, False]


def test_a_database_that_needs_more_than_a_worker_has_is_given_up(host: Host) -> None:
    trap = database("CREATE TABLE item (id INTEGER PRIMARY KEY, big TEXT AS (printf('%.*c', 900000000, 'x')) STORED)")
    with pytest.raises(WorkerLost):
        host.edit(trap, [[Edit("item", None, {"id": number}) for number in range(100)]])
