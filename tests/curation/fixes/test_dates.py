"""Verifiers that compare the spelling of moments come to compare moments."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from curation.fixes.dates import normalised

SPELLINGS = (
    "2026-03-01 10:00:00",
    "2026-03-01T10:00:00",
    "2026-03-01 10:00:00.000000",
    "2026-03-01T10:00:00Z",
    "2026-03-01 10:00:00+00:00",
)
OTHER = "2026-03-01 10:00:01"

WAYS = {
    "a value": """
    return {"result": "complete" if row(final, "select at from sale")[0] == '2026-03-01 10:00:00' else "others"}
""",
    "a name": """
    WANTED = "2026-03-01T10:00:00"
    (at,) = row(final, "select at from sale")
    if at != WANTED:
        return {"result": "others"}
    return {"result": "complete"}
""",
    "a row": """
    rows = [row(final, "select id, at from sale")]
    return {"result": "complete" if rows == [(1, "2026-03-01 10:00:00")] else "others"}
""",
    "a dict": """
    wanted = {"at": '2026-03-01 10:00:00', "id": 1}
    found = dict(zip(("id", "at"), row(final, "select id, at from sale")))
    return {"result": "complete" if all(found[key] == value for key, value in wanted.items()) else "others"}
""",
    "SQL": """
    found = row(final, "select 1 from sale where id = 1 and sale.at = '2026-03-01 10:00:00'")
    return {"result": "complete" if found else "others"}
""",
    "a parameter": """
    query = "select 1 from sale where id = ? and at = ?"
    return {"result": "complete" if row(final, query, (1, "2026-03-01 10:00:00")) else "others"}
""",
}
HEAD = '''
def row(path, sql, params=()):
    """One row, with a note on grüße."""
    import sqlite3
    return sqlite3.connect(path).execute(sql, params).fetchone()

def verify_task_completion(initial, final, final_answer=None):'''


@pytest.fixture
def judge(tmp_path: Path) -> Callable[[str, str], str]:
    """What a verifier of ours says of a database with one sale at this time."""

    def run(source: str, at: str) -> str:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.db"
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE sale (id INTEGER PRIMARY KEY, at TEXT)")
            connection.execute("INSERT INTO sale VALUES (1, ?)", (at,))
        connection.close()
        names: dict[str, Any] = {}
        exec(source, names)
        return names["verify_task_completion"](None, path)["result"]

    return run


@pytest.mark.parametrize("way", WAYS)
def test_every_spelling_of_the_moment_is_accepted_and_no_other_moment(
    way: str, judge: Callable[[str, str], str]
) -> None:
    source = HEAD + WAYS[way]
    assert [judge(source, at) for at in SPELLINGS].count("complete") == 1
    changed = normalised(source)
    assert changed is not None
    assert {at: judge(changed, at) for at in SPELLINGS} == dict.fromkeys(SPELLINGS, "complete")
    assert judge(changed, OTHER) == "others"


def test_what_compares_no_moments_stays_as_it_is() -> None:
    assert (
        normalised(HEAD + '\n    return {"result": "complete" if row(final, "select 1") == (1,) else "others"}\n')
        is None
    )
    assert normalised("def broken(:") is None


def test_a_second_time_changes_nothing_more() -> None:
    changed = normalised(HEAD + WAYS["a value"])
    assert changed is not None
    assert normalised(changed) is None


def test_everything_else_stays_to_the_letter() -> None:
    source = HEAD + WAYS["a name"]
    changed = normalised(source)
    assert changed is not None
    before, after = source.splitlines(), changed.splitlines()[: len(source.splitlines())]
    assert [(was, now) for was, now in zip(before, after, strict=True) if was != now] == [
        ("    if at != WANTED:", "    if _moment(at) != _moment(WANTED):")
    ]
