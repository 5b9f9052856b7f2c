"""Many verdicts of one verifier: the same as one at a time, whatever a case does to the process they share."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import closing

import pytest

from pipeline.model import DEFAULT_NOW, Mode, Verifier
from pipeline.runtime.host import Case, Host
from pipeline.runtime.limits import Limits

HEAD = "import sqlite3\ndef verify_task_completion(initial_db_path, final_db_path, final_answer=None):\n"


def tickets(state: str) -> bytes:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE ticket (id INTEGER PRIMARY KEY, state TEXT, note TEXT)")
        connection.execute("CREATE TABLE log (id INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO ticket VALUES (1, ?, NULL)", (state,))
        connection.commit()
        return connection.serialize()


OPEN, CLOSED = tickets("open"), tickets("closed")


@pytest.fixture(scope="module")
def host() -> Generator[Host]:
    with Host(limits=Limits(verify_timeout_s=1, grace_s=0.5)) as started:
        yield started


def verifier(body: str) -> Verifier:
    return Verifier(0, Mode.code, HEAD + "".join(f"    {line}\n" for line in body.splitlines()))


IS_CLOSED = """
state = lambda path: sqlite3.connect(path).execute('SELECT state FROM ticket').fetchone()[0]
closed = state(initial_db_path) == 'open' and state(final_db_path) == 'closed'
return {'result': 'complete' if closed and final_answer == 'done' else 'others'}
"""


def case(final: bytes, answer: str | None = "done", *, initial: bytes = OPEN) -> Case:
    return Case(initial, final, answer, DEFAULT_NOW)


def test_verdicts_come_in_order_and_are_those_of_single_cases(host: Host) -> None:
    judge = verifier(IS_CLOSED)
    cases = [case(CLOSED), case(OPEN), case(CLOSED, "no"), case(CLOSED, initial=CLOSED), case(b""), case(CLOSED)]
    words = [verdict.verdict for verdict in host.verdicts(judge, cases)]
    assert words == ["complete", "others", "others", "others", "judge_error", "complete"]
    assert words == [host.verify(judge, c.initial, c.final, c.answer).verdict for c in cases]


@pytest.mark.parametrize(
    "fatal", ["while True: pass", "import ctypes; ctypes.string_at(0)", "import sys; sys.exit(3)"], ids=str
)
def test_a_case_that_ends_the_process_is_one_judge_error(host: Host, fatal: str) -> None:
    judge = verifier(f"if final_answer == 'bad':\n    {fatal}\n{IS_CLOSED}")
    cases = [case(CLOSED), case(CLOSED, "bad"), case(CLOSED)]
    assert [verdict.verdict for verdict in host.verdicts(judge, cases)] == ["complete", "judge_error", "complete"]


def test_a_verifier_that_needs_files_gets_the_right_ones_for_every_case(host: Host) -> None:
    judge = verifier(f"import os\nassert os.path.getsize(final_db_path) > 0\n{IS_CLOSED}")
    words = [verdict.verdict for verdict in host.verdicts(judge, [case(CLOSED), case(OPEN), case(CLOSED)])]
    assert words == ["complete", "others", "complete"]


def test_variables_of_a_verifier_do_not_outlive_a_case(host: Host) -> None:
    source = (
        f"SEEN = []\n{HEAD}    SEEN.append(1)\n    return {{'result': 'complete' if len(SEEN) == 1 else 'others'}}\n"
    )
    words = [v.verdict for v in host.verdicts(Verifier(0, Mode.code, source), [case(OPEN)] * 3)]
    assert words == ["complete"] * 3


def test_what_a_verifier_reads_is_noted_by_database_table_and_column(host: Host) -> None:
    body = """
    q = lambda path, sql: sqlite3.connect(path).execute(sql).fetchall()
    q(initial_db_path, "SELECT state FROM ticket WHERE id = 1")
    q(final_db_path, "SELECT count(*) FROM log")
    return {'result': 'others'}
    """
    (verdict,) = host.verdicts(verifier("\n".join(line[4:] for line in body.splitlines())), [case(OPEN)])
    assert set(verdict.reads) == {("initial", "ticket", "id"), ("initial", "ticket", "state"), ("final", "log", "")}


def test_what_a_verifier_said_in_spite_of_failed_sql_is_kept_beside_the_judge_error(host: Host) -> None:
    body = """
try: rows = sqlite3.connect(final_db_path).execute('SELECT * FROM tikcet').fetchall()
except Exception: rows = []
return {'result': 'complete' if all(rows) else 'others'}
"""
    (verdict,) = host.verdicts(verifier(body), [case(CLOSED)])
    assert (verdict.verdict, verdict.said) == ("judge_error", "complete")
