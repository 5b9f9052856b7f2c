"""Small inputs that broke tools like ours: verifiers that can never be satisfied, accept anything, or look away."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from curation.audit.environment import audit_environment
from curation.audit.records import VerifierAudit
from curation.audit.states import Known
from pipeline.findings import Finding
from pipeline.model import DEFAULT_NOW, Environment, Mode, TableRows, TableSchema, Verifier
from pipeline.runtime.host import Host

ZONE = TableSchema("zone", "CREATE TABLE zone(id INTEGER PRIMARY KEY, name TEXT UNIQUE);")
NORTH_YARD = TableRows("zone", ("INSERT INTO zone VALUES (1,'North Yard');",))
WANTS_A_NEW_ZONE = """
def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    import sqlite3
    has=lambda p: sqlite3.connect(p).execute("select 1 from zone where name='North Yard'").fetchone()
    return {"result":"complete" if has(final_db_path) and not has(initial_db_path) else "others"}
"""


def finding(audit: VerifierAudit, code: str) -> Finding:
    return next(found for found in audit.findings if found.code == code)


def snapshot(*statements: str) -> bytes:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
        return connection.serialize()


def environment(task: str, verifier: str, schema: TableSchema, rows: TableRows) -> Environment:
    return Environment(
        "case", tasks=(task,), schema=(schema,), sample=(rows,), verifiers=(Verifier(0, Mode.code, verifier),)
    )


def test_a_goal_that_the_seed_has_reached_makes_the_task_impossible_as_verified_and_shows_the_row(host: Host) -> None:
    audit = audit_environment(
        environment("Create a zone named 'North Yard'.", WANTS_A_NEW_ZONE, ZONE, NORTH_YARD), host
    )
    (judged,) = audit.verifiers
    found = finding(judged, "impossible_as_verified")
    assert "zone: {'id': 1, 'name': 'North Yard'}" in found.evidence
    assert "change the task" in found.remedy and "row" in found.remedy
    assert judged.verdict == "strict"
    assert audit.tasks[0].status == "blocked"
    assert "North Yard" in audit.tasks[0].why


def test_a_verifier_that_one_more_row_would_satisfy_is_not_impossible(host: Host) -> None:
    counts = """
def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    import sqlite3
    count=lambda p: sqlite3.connect(p).execute("select count(*) from zone").fetchone()[0]
    return {"result":"complete" if count(final_db_path) == count(initial_db_path) + 1 else "others"}
"""
    audit = audit_environment(environment("Create a zone named 'South Yard'.", counts, ZONE, NORTH_YARD), host)
    assert audit.verifiers[0].verdict == "unproven"
    assert audit.tasks[0].status == "unproven"


TICKET = TableSchema("ticket", "CREATE TABLE ticket(id INTEGER PRIMARY KEY, title TEXT, state TEXT);")
TICKETS = TableRows("ticket", ("INSERT INTO ticket VALUES (4006,'Lamp','open'), (4007,'Chair','open');",))
KNOWS_ONE_ID = """
def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    import sqlite3
    def q(p, s):
        try: return sqlite3.connect(f"file:{p}?mode=ro", uri=True).execute(s).fetchall()
        except Exception: return []
    rows = q(final_db_path, "select id, state from ticket where state='shortlisted'")
    return {"result": "complete" if all(r[0] == 4007 for r in rows) else "others"}
"""


def test_a_verifier_that_accepts_nothing_at_all_or_knows_only_one_id_is_told_by_each_of_its_faults(host: Host) -> None:
    created = f"CREATE TABLE{TICKET.ddl.removeprefix('CREATE TABLE')}"
    initial = snapshot(created, *TICKETS.inserts)
    final = snapshot(created, *TICKETS.inserts, "UPDATE ticket SET state = 'shortlisted' WHERE title = 'Chair'")
    known = Known(0, "a person", initial, final, None, False, DEFAULT_NOW)
    case = environment("Shortlist the ticket 'Chair'.", KNOWS_ONE_ID, TICKET, TICKETS)
    (judged,) = audit_environment(case, host, recorded=[known]).verifiers
    assert judged.verdict == "loose"
    assert "no answer → complete" in finding(judged, "accepts_untouched").evidence
    assert "neither database has any table" in finding(judged, "accepts_missing_database").evidence
    hard_coded = finding(judged, "hard_coded_id")
    assert "every id is another one" in hard_coded.evidence
    assert "r[0] == 4007" in hard_coded.evidence
    assert judged.failed["rekey"] == 1


SALE = TableSchema("sale", "CREATE TABLE sale(id INTEGER PRIMARY KEY, code TEXT, starts_at DATETIME);")
SALES = TableRows("sale", ("INSERT INTO sale VALUES (1,'S10','2026-02-01 00:00:00.000000');",))
ONE_SPELLING = """
import sqlite3
def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    rows = sqlite3.connect(final_db_path).execute("select starts_at from sale where code='S20'").fetchall()
    ok = len(rows) == 1 and rows[0][0] == '2026-03-01 00:00:00.000000'
    return {"result": "complete" if ok else "others"}
"""


def test_a_right_moment_in_another_spelling_must_be_accepted(host: Host) -> None:
    initial = snapshot(SALE.ddl, *SALES.inserts)
    final = snapshot(SALE.ddl, *SALES.inserts, "INSERT INTO sale VALUES (2,'S20','2026-03-01 00:00:00.000000')")
    known = Known(0, "a person", initial, final, None, False, DEFAULT_NOW)
    case = environment("Create the sale 'S20' that starts on 2026-03-01.", ONE_SPELLING, SALE, SALES)
    (judged,) = audit_environment(case, host, recorded=[known]).verifiers
    found = finding(judged, "date_form")
    assert (judged.tried["dates"], judged.failed["dates"]) == (4, 4)
    assert "dates are written with T: '2026-03-01T00:00:00' → others" in found.evidence
    assert "line 5" in found.evidence
    assert "'2026-03-01 00:00:00.000000'" in found.evidence


def test_a_verifier_that_never_meets_the_spelling_it_wants_is_told_which_spelling_it_would_accept(host: Host) -> None:
    initial = snapshot(SALE.ddl, *SALES.inserts)
    final = snapshot(SALE.ddl, *SALES.inserts, "INSERT INTO sale VALUES (2,'S20','2026-03-01 00:00:00.000000')")
    known = Known(0, "a person", initial, final, None, False, DEFAULT_NOW)
    wants_no_fraction = ONE_SPELLING.replace("00:00:00.000000", "00:00:00")
    case = environment("Create the sale 'S20' that starts on 2026-03-01.", wants_no_fraction, SALE, SALES)
    (judged,) = audit_environment(case, host, recorded=[known]).verifiers
    assert judged.verdict == "strict"
    assert judged.rate(right=True).tried == 1  # what else it rejects says nothing more
    found = finding(judged, "date_form")
    assert "dates are written with a space: '2026-03-01 00:00:00' → complete" in found.evidence
    assert "line 5" in found.evidence


SWALLOWS = """
import sqlite3
def q(p, s):
    try: return sqlite3.connect(p).execute(s).fetchall()
    except Exception: return []
def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    return {"result": "complete" if q(final_db_path, "select 1 from zone where name='South Yard'") else "others"}
"""


def test_a_verifier_that_swallows_errors_is_told_with_the_line_and_gives_no_verdict_on_an_empty_file(
    host: Host,
) -> None:
    case = environment("Create a zone named 'South Yard'.", SWALLOWS, ZONE, NORTH_YARD)
    (judged,) = audit_environment(case, host).verifiers
    assert "line 5: except Exception: return []" in finding(judged, "swallows_errors").evidence
    initial = host.build(case).snapshot
    for broken in (b"", snapshot("PRAGMA user_version = 1")):
        verdict = host.verify(case.verifiers[0], initial, broken)
        assert verdict.verdict == "judge_error"
        assert verdict.error
