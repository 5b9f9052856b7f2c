"""Findings of checks and audits come with edits that put them right, and doing so does put them right."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from curation.audit.environment import audit_environment
from curation.audit.states import Known
from curation.checks.environment import check_environment
from curation.checks.workspace import check_workspace
from curation.fixes.proposal import Contents, Fix
from curation.fixes.proposals import apply, fixes_of, guard_for, proposed
from curation.importers import import_awm
from pipeline.blueprints.synthesis import contents as contents_of
from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.findings import Finding
from pipeline.model import (
    DEFAULT_NOW,
    Author,
    AuthorKind,
    Environment,
    Mode,
    Operation,
    Part,
    TableRows,
    TableSchema,
    Verifier,
)
from pipeline.parts import read_view
from pipeline.runtime.host import Host
from tests.curation.audit.desk import DESK, SOLUTIONS, desk, verifier

ADA = Author(AuthorKind.person, "ada")

TICKET = TableSchema("ticket", "CREATE TABLE ticket(id INTEGER PRIMARY KEY, title TEXT UNIQUE)")
NOTE = TableSchema(
    "note", "CREATE TABLE note(id INTEGER PRIMARY KEY, ticket_id INTEGER REFERENCES ticket(id), body TEXT)"
)


def parts(environment: Environment) -> dict[tuple[Part, str], str]:
    return {(part, slot): content for part, slot, content in contents_of(environment)}


def fixed(environment: Environment, fix: Fix) -> Environment:
    changed: Contents = parts(environment) | {(edit.part, edit.slot): edit.after for edit in fix.edits}
    return Environment(environment.name, origin="import", **read_view(changed))


def rows(environment: Environment, table: str) -> tuple[str, ...]:
    return next(found.inserts for found in environment.sample if found.table == table)


def codes(environment: Environment, host: Host) -> list[str]:
    return [finding.code for finding in check_environment(environment, host).findings]


def shop(*notes: str, tickets: tuple[str, ...] = ("INSERT INTO ticket VALUES (7,'Lamp')",), **more) -> Environment:
    sample = (TableRows("ticket", tickets), TableRows("note", notes))
    return Environment("shop", schema=(NOTE, TICKET), sample=sample, **more)


def test_an_apostrophe_that_ends_a_text_early_is_doubled_and_the_row_comes_back(host: Host) -> None:
    broken = shop(
        "INSERT INTO note VALUES (1,7,'We'll send a new lamp')", "INSERT INTO note VALUES (2,7,'Arrived, isn''t it')"
    )
    findings = check_environment(broken, host).findings
    assert "insert_failed" in {finding.code for finding in findings}
    (fix,) = proposed(findings, parts(broken))
    better = fixed(broken, fix)
    assert rows(better, "note") == ("INSERT INTO note VALUES (1,7,'We''ll send a new lamp')", rows(broken, "note")[1])
    assert "insert_failed" not in codes(better, host)
    assert host.build(better).tables == {"note": 2, "ticket": 1}


def test_a_statement_too_long_to_be_shown_whole_is_put_right_too(host: Host) -> None:
    long = "very " * 100 + "bright"
    broken = shop(f"INSERT INTO note VALUES (1,7,'We'll send a {long} lamp')")
    (fix,) = proposed(check_environment(broken, host).findings, parts(broken))
    better = fixed(broken, fix)
    assert rows(better, "note") == (f"INSERT INTO note VALUES (1,7,'We''ll send a {long} lamp')",)

    twice = (f"INSERT INTO ticket VALUES (7,'{long}')", f"INSERT INTO ticket VALUES (8,'{long}')")
    refused = shop("INSERT INTO note VALUES (1,7,'Hello')", tickets=twice)
    (fix,) = proposed(check_environment(refused, host).findings, parts(refused))
    assert rows(fixed(refused, fix), "ticket") == twice[:1]


def test_an_apostrophe_in_a_table_is_doubled_and_the_table_comes_back(host: Host) -> None:
    table = TableSchema("form", "CREATE TABLE form(id INTEGER PRIMARY KEY, note TEXT DEFAULT 'it's new', name TEXT)")
    broken = Environment(
        "forms", schema=(table,), sample=(TableRows("form", ("INSERT INTO form(name) VALUES ('A')",)),)
    )
    (fix,) = proposed(check_environment(broken, host).findings, parts(broken))
    assert fix.edits[0].part is Part.schema
    assert host.build(fixed(broken, fix)).tables == {"form": 1}


def test_a_row_that_its_table_refuses_can_go(host: Host) -> None:
    twice = ("INSERT INTO ticket VALUES (7,'Lamp')", "INSERT INTO ticket VALUES (8,'Lamp')")
    broken = shop("INSERT INTO note VALUES (1,7,'Hello')", tickets=twice)
    (fix,) = proposed(check_environment(broken, host).findings, parts(broken))
    assert "stays the same" in fix.says
    better = fixed(broken, fix)
    assert rows(better, "ticket") == twice[:1]
    assert host.build(better).snapshot == host.build(broken).snapshot
    assert "insert_failed" not in codes(better, host)


def test_rows_that_refer_to_nothing_can_go_but_not_where_what_they_refer_to_was_lost(host: Host) -> None:
    dangling = shop("INSERT INTO note VALUES (1,7,'Hello'), (2,99,'Where?'), (3,7,'There')")
    (fix,) = proposed(check_environment(dangling, host).findings, parts(dangling))
    better = fixed(dangling, fix)
    assert rows(better, "note") == ("INSERT INTO note VALUES (1,7,'Hello'), (3,7,'There')",)
    assert "foreign_key_broken" not in codes(better, host)

    lost = shop("INSERT INTO note VALUES (1,7,'Hello')", tickets=("INSERT INTO ticket VALUES (7,'Ada's lamp')",))
    findings = check_environment(lost, host).findings
    assert {"foreign_key_broken", "insert_failed"} <= {finding.code for finding in findings}
    assert [fix.code for fix in proposed(findings, parts(lost))] == ["insert_failed"]


ZONES = Environment(
    "zones",
    tasks=("Create a zone named 'North Yard'.",),
    schema=(TableSchema("zone", "CREATE TABLE zone(id INTEGER PRIMARY KEY, name TEXT UNIQUE)"),),
    sample=(TableRows("zone", ("INSERT INTO zone VALUES (1,'North Yard'), (2,'South Yard')",)),),
    verifiers=(
        Verifier(
            0,
            Mode.code,
            """
def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    import sqlite3
    has=lambda p: sqlite3.connect(p).execute("select 1 from zone where name='North Yard'").fetchone()
    return {"result":"complete" if has(final_db_path) and not has(initial_db_path) else "others"}
""",
        ),
    ),
)


def test_a_row_with_which_the_goal_is_reached_from_the_start_can_go(host: Host) -> None:
    judged = audit_environment(ZONES, host).verifiers[0]
    assert judged.verdict == "strict"
    check = check_environment(ZONES, host)
    fixes = proposed([*check.findings, *judged.findings], parts(ZONES))
    assert [(fix.code, "zone 1" in fix.says) for fix in fixes] == [("goal_in_seed", True)], "one edit, offered once"
    better = fixed(ZONES, fixes[0])
    assert rows(better, "zone") == ("INSERT INTO zone VALUES (2,'South Yard')",)
    assert audit_environment(better, host).verifiers[0].verdict == "unproven"


def test_a_row_that_cannot_be_told_from_others_stays() -> None:
    sample = (
        TableRows("zone", ("INSERT INTO zone VALUES (1, upper('a'))", "INSERT INTO zone VALUES (1, upper('b'))")),
    )
    finding = Finding("goal_in_seed", "warn", "sample: zone", "there already", evidence="zone: {'id': 1, 'name': 'A'}")
    assert proposed([finding], parts(replace(ZONES, sample=sample))) == []


ROUTES = """
from fastapi import FastAPI
app = FastAPI()

@app.post("/pledges", operation_id="pledge_once")
def once(amount: int):
    return {"kind": "once"}

@app.post(
    "/pledges",
    operation_id="pledge_monthly",
)
def monthly(amount: int, start: str):
    return {"kind": "monthly"}
"""


def test_an_operation_that_another_one_hides_gets_a_path_of_its_own_in_application_and_spec(host: Host) -> None:
    operations = tuple(Operation(name, "POST", "/pledges") for name in ("pledge_once", "pledge_monthly"))
    table = TableSchema("pledge", "CREATE TABLE pledge(id INTEGER)")
    broken = Environment("pledges", schema=(table,), code=ROUTES, operations=operations)
    findings = check_environment(broken, host).findings
    assert {"route_twice", "shadowed_route"} <= {finding.code for finding in findings}
    (fix,) = proposed(findings, parts(broken))
    assert {edit.part for edit in fix.edits} == {Part.spec, Part.code}
    better = fixed(broken, fix)
    assert [operation.path for operation in better.operations] == ["/pledges", "/pledges/monthly"]
    assert not {"route_twice", "shadowed_route"} & set(codes(better, host))


def snapshot(*statements: str) -> bytes:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
        return connection.serialize()


def test_a_verifier_that_wants_one_spelling_of_a_moment_comes_to_accept_all(host: Host) -> None:
    sale = TableSchema("sale", "CREATE TABLE sale(id INTEGER PRIMARY KEY, code TEXT, starts_at DATETIME)")
    source = """
import sqlite3
def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    rows = sqlite3.connect(final_db_path).execute("select starts_at from sale where code='S20'").fetchall()
    return {"result": "complete" if len(rows) == 1 and rows[0][0] == '2026-03-01 00:00:00' else "others"}
"""
    task = "Create the sale 'S20' that starts on 2026-03-01."
    broken = Environment("sales", tasks=(task,), schema=(sale,), verifiers=(Verifier(0, Mode.code, source),))
    stored = "INSERT INTO sale VALUES (2,'S20','2026-03-01 00:00:00.000000')"
    known = Known(0, "a person", snapshot(sale.ddl), snapshot(sale.ddl, stored), None, False, DEFAULT_NOW)
    judged = audit_environment(broken, host, recorded=[known]).verifiers[0]
    assert judged.verdict == "strict"
    (fix,) = proposed(judged.findings, parts(broken))
    again = audit_environment(fixed(broken, fix), host, recorded=[known]).verifiers[0]
    assert "date_form" not in {finding.code for finding in again.findings}
    assert again.rate(right=True).failed == 0


def test_a_guard_is_a_fix_like_any_other(host: Host) -> None:
    loose = verifier(0, '    good = rows(final, TICKETS) == closed(initial, "T-11")\n')
    judged = audit_environment(desk(loose, solutions=SOLUTIONS[:1]), host).verifiers[0]
    assert judged.verdict == "loose"
    fix = guard_for(judged, parts(desk(loose)))
    assert fix is not None
    better = desk(replace(loose, code=fix.edits[0].after), solutions=SOLUTIONS[:1])
    assert audit_environment(better, host).verifiers[0].verdict == "trusted"
    sound = audit_environment(DESK, host).verifiers[0]
    assert guard_for(sound, parts(DESK)) is None


@pytest.fixture(scope="module")
def patient() -> Iterator[Host]:
    """A host with the usual limits: real programs on a busy machine are not hurried."""
    with Host() as started:
        yield started


@pytest.fixture(scope="module")
def real(awm_real: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with Catalog.open(tmp_path_factory.mktemp("real") / "catalog.db") as catalog:
        import_awm(catalog, awm_real)
        yield catalog


def checked(catalog: Catalog, name: str, host: Host) -> dict[str, list[str]]:
    """Where an environment has which findings."""
    (result,) = check_workspace(catalog, [name], host, workers=1)
    found: dict[str, list[str]] = {}
    for finding in result.findings:
        found.setdefault(finding.code, []).append(finding.where)
    return found


def test_what_was_kept_beside_the_statements_stays(real: Catalog, patient: Host) -> None:
    assert checked(real, "gofundme", patient)
    (fix,) = (fix for fix in fixes_of(real, "gofundme") if fix.code == "route_twice")
    spec = next(edit for edit in fix.edits if edit.part is Part.spec)
    moved = json.loads(spec.after)
    for group, before in zip(moved["api_groups"], json.loads(spec.before)["api_groups"], strict=True):
        for endpoint, was in zip(group["endpoints"], before["endpoints"], strict=True):
            assert endpoint | {"path": was["path"]} == was


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("doordash_drive_delivery_tracking", "insert_failed"),
        ("etsy_digital_downloads", "insert_failed"),
        ("gofundme", "route_twice"),
        ("gofundme", "goal_in_seed"),
    ],
)
def test_faults_of_real_environments_are_put_right_by_a_person(
    real: Catalog, patient: Host, name: str, code: str
) -> None:
    assert code in checked(real, name, patient)
    fix = next(fix for fix in fixes_of(real, name) if fix.code == code)
    made = apply(real, name, fix, ADA)
    assert [(version.author, version.number) for version in made] == [(ADA, 2)] * len(fix.edits)
    assert [version.parents for version in made] == [
        (real.versions(name, version.part, version.slot)[0].id,) for version in made
    ]
    assert real.summary(name).check == "stale"
    assert fix.where not in checked(real, name, patient).get(code, ())
    with pytest.raises(UserError, match="changed meanwhile"):
        apply(real, name, fix, ADA)
