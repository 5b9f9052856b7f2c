"""What a verifier's source shows: clock reads, swallowed errors, literals that slipped, clauses it never speaks of."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from curation.audit.static import read_source, source_findings
from curation.audit.tables import read_tables
from pipeline.findings import Finding

TASK = "Set the state of 'Lamp' to waiting from 2026-03-01."


def tables():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("CREATE TABLE ticket (id INTEGER PRIMARY KEY, title TEXT, state TEXT, since TEXT)")
        db.execute("INSERT INTO ticket VALUES (4007, 'Lamp', 'in_progress', '2026-03-01 00:00:00.000000')")
        return read_tables(db.serialize())


def found(source: str, task: str = TASK) -> dict[str, Finding]:
    return {f.code: f for f in source_findings(read_source(source), "verifier", 0, task, [tables()])}


@pytest.mark.parametrize(
    "line",
    [
        "now = datetime.now()",
        "now = datetime.datetime.utcnow()",
        "now = date.today()",
        "now = time.time()",
        "q(\"SELECT * FROM t WHERE at > datetime('now', '-1 day')\")",
        'q("SELECT CURRENT_TIMESTAMP")',
    ],
)
def test_reading_the_clock_is_found_in_python_and_in_sql(line: str) -> None:
    finding = found(f"# Lamp, 2026-03-01\n{line}\n")["reads_clock"]
    assert finding.evidence == f"line 2: {line}"


@pytest.mark.parametrize(
    "line", ["at = datetime.time(14, 0)", "text = at.strftime('%Y')", "time.localtime(0)", "x = 'it is now'"]
)
def test_what_only_looks_like_a_clock_is_not(line: str) -> None:
    assert "reads_clock" not in found(f"# Lamp\n{line}\n")


@pytest.mark.parametrize(
    ("handler", "swallowed"),
    [
        ("except Exception:\n    rows = []", True),
        ("except:\n    rows = []", True),
        ("except sqlite3.Error as error:\n    print(error)", True),
        ("except sqlite3.Error:\n    raise RuntimeError", False),
        ("except ValueError:\n    rows = []", False),
    ],
)
def test_going_on_after_a_failed_query_is_found(handler: str, swallowed: bool) -> None:
    assert ("swallows_errors" in found(f"# Lamp\ntry:\n    rows = db.execute(sql)\n{handler}\n")) is swallowed
    assert "swallows_errors" not in found(f"# Lamp\ntry:\n    number = int(text)\n{handler}\n")


@pytest.mark.parametrize(
    ("literal", "near"),
    [
        ("'In Progress'", "in_progress"),
        ("'in_progres'", "in_progress"),
        ("'2026-03-01T00:00:00'", "2026-03-01 00:00:00.000000"),
    ],
)
def test_a_literal_that_is_nearly_a_value_of_the_rows_is_shown_with_that_value(literal: str, near: str) -> None:
    finding = found(f"# Lamp\ngood = state == {literal}\n", "Set 'Lamp'.")["literal_differs"]
    assert repr(near) in finding.message
    assert finding.evidence == f"line 2: good = state == {literal}"


@pytest.mark.parametrize(
    "source",
    ["good = state == 'in_progress'", "return {'result': 'complete'}", "f'file:{path}?mode=ro'", "x = 'waiting'"],
)
def test_values_of_rows_and_task_and_words_of_a_verifiers_own_are_no_slips(source: str) -> None:
    assert "literal_differs" not in found(f"# Lamp\n{source}\n")


def test_what_the_task_quotes_and_the_verifier_never_speaks_of_is_listed() -> None:
    assert "'Lamp'" in found("x = 1")["clause_unchecked"].message
    assert "clause_unchecked" not in found("x = 'LAMP'")


def test_a_source_that_is_not_python_has_no_facts() -> None:
    deep = "x = " + "(" * 3000 + ")" * 3000
    for source in ("def verify(:", "x = '\0'", deep):
        assert found(source).keys() <= {"clause_unchecked"}
