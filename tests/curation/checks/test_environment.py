"""What `awm-studio check` finds in one environment, fault by fault."""

from __future__ import annotations

from dataclasses import replace

import pytest

from curation.checks.environment import CheckResult, check_environment
from pipeline.findings import Finding
from pipeline.model import Environment, Mode, Operation, TableRows, TableSchema, Verifier
from pipeline.runtime.host import Host


def found(environment: Environment, host: Host, code: str) -> list[Finding]:
    return [finding for finding in check_environment(environment, host).findings if finding.code == code]


def test_an_environment_with_nothing_wrong_passes(helpdesk: Environment, host: Host) -> None:
    result = check_environment(helpdesk, host)
    assert (result.status, result.findings) == ("pass", ())
    assert (result.tables, result.rows, result.tools) == (2, 3, 2)


def test_a_result_survives_being_kept_as_json(helpdesk: Environment, host: Host) -> None:
    import json

    result = check_environment(replace(helpdesk, code="import nothing_like_this", tasks=()), host)
    assert result.status == "fail"
    assert CheckResult.from_json(json.dumps(result.document())) == result


def test_missing_parts_are_named_and_those_nothing_runs_without_block_every_task(
    helpdesk: Environment, host: Host
) -> None:
    parts = {f.where: f for f in found(replace(helpdesk, code=None, operations=()), host, "part_missing")}
    assert set(parts) == {"code", "spec"}
    assert (parts["code"].severity, parts["code"].tasks) == ("error", (0,))
    assert (parts["spec"].severity, parts["spec"].tasks) == ("warn", ())


def test_one_bad_insert_is_one_finding_with_the_tasks_that_name_what_it_held(helpdesk: Environment, host: Host) -> None:
    notes = TableRows("note", ("INSERT INTO note VALUES (1, 7, 'We'll bring a new bulb')", *ROWS_OF_NOTE))
    task = "Tell the owner of 'Lamp' what note 'We'll bring a new bulb' says."
    broken = replace(helpdesk, sample=(helpdesk.sample[0], notes), tasks=(task,))
    (finding,) = found(broken, host, "insert_failed")
    assert (finding.severity, finding.tasks) == ("error", (0,))
    assert "note, row 0" in finding.where
    assert "'We''ll bring a new bulb'" in finding.remedy


ROWS_OF_NOTE = ("INSERT INTO note VALUES (2, 7, 'Arrived', NULL)",)


def test_a_lost_table_fails_the_environment_and_names_what_depends_on_it(helpdesk: Environment, host: Host) -> None:
    unparsable = TableSchema("note", "CREATE TABLE note(id INTEGER PRIMARY KEY, body TEXT DEFAULT 'x';")
    result = check_environment(replace(helpdesk, schema=(helpdesk.schema[0], unparsable)), host)
    (lost,) = (finding for finding in result.findings if finding.code == "table_missing")
    assert result.status == "fail"
    assert "1 insert into" in lost.evidence
    assert "add_note" in lost.evidence
    assert lost.tasks == (0,)
    assert not [f for f in result.findings if f.code == "insert_failed"]  # told once, with the table


@pytest.mark.parametrize("turned", [False, True], ids=["as written", "turned round"])
def test_a_reference_to_nothing_is_found_once_whatever_the_order_and_cycles(
    helpdesk: Environment, host: Host, turned: bool
) -> None:
    schema = (
        TableSchema(
            "staff", "CREATE TABLE staff(id INTEGER PRIMARY KEY, team_id INTEGER NOT NULL REFERENCES team(id))"
        ),
        TableSchema("team", "CREATE TABLE team(id INTEGER PRIMARY KEY, lead_id INTEGER REFERENCES staff(id))"),
    )
    rows = (
        TableRows("staff", ("INSERT INTO staff VALUES (1, 10)", "INSERT INTO staff VALUES (2, 99)")),
        TableRows("team", ("INSERT INTO team VALUES (10, 1)",)),
    )
    order = -1 if turned else 1
    cyclic = replace(helpdesk, schema=schema[::order], sample=rows[::order], operations=(), code=None, verifiers=())
    result = check_environment(cyclic, host)
    (broken,) = (finding for finding in result.findings if finding.code == "foreign_key_broken")
    assert "1 row of staff" in broken.message
    assert not [f for f in result.findings if f.code in ("insert_failed", "ddl_failed")]


def test_code_that_does_not_load_is_a_finding_with_its_line(helpdesk: Environment, host: Host) -> None:
    result = check_environment(replace(helpdesk, code="import os\nx = 1 +\n"), host)
    (failed,) = (finding for finding in result.findings if finding.severity == "error")
    assert failed.code == "syntax_error" or failed.code.startswith("load")
    assert "2" in failed.where + failed.message + failed.evidence


def test_a_lost_table_puts_the_tasks_at_risk_that_name_its_things(helpdesk: Environment, host: Host) -> None:
    lost = TableSchema("question", "CREATE TABLE question(id INTEGER PRIMARY KEY, label TEXT DEFAULT 'x';")
    tasks = ("Add a question 'Age?' to form 1.", "List the tickets.", "Delete both questions of form 2.")
    broken = replace(helpdesk, schema=(*helpdesk.schema, lost), tasks=tasks, verifiers=())
    (finding,) = found(broken, host, "table_missing")
    assert finding.tasks == (0, 2)


def test_an_application_without_tools_fails(helpdesk: Environment, host: Host) -> None:
    result = check_environment(replace(helpdesk, code="from fastapi import FastAPI\napp = FastAPI()"), host)
    assert (result.status, result.tools) == ("fail", 0)
    assert "no_tools" in {finding.code for finding in result.findings}


def test_promised_operations_that_are_not_there_and_unknown_ones_that_are(helpdesk: Environment, host: Host) -> None:
    promised = (helpdesk.operations[0], Operation("close_ticket", "POST", "/tickets/{id}/close"))
    result = check_environment(replace(helpdesk, operations=promised), host)
    assert [(f.code, f.where) for f in result.findings] == [
        ("operation_missing", "code: close_ticket"),
        ("operation_not_in_spec", "code: add_note"),
    ]


def test_two_operations_on_one_route_are_told_before_any_code_exists(helpdesk: Environment, host: Host) -> None:
    pledges = (
        Operation("pledge_once", "POST", "/pledges"),
        Operation("pledge_monthly", "POST", "/pledges"),
        Operation("a" * 70, "GET", "/pledges/{id}"),
    )
    result = check_environment(replace(helpdesk, operations=pledges, code=None), host)
    codes = {finding.code for finding in result.findings}
    assert {"route_twice", "tool_name"} <= codes


WRITES_TEXT_AS_A_DATE = """
@app.post("/notes/{note_id}/date", operation_id="date_note")
def date_note(note_id: int, at: str):
    with Session() as session:
        note = session.query(Note).first()
        note.at = at
        session.commit()
        return {"id": note.id}
"""


def test_a_tool_that_can_never_succeed_is_the_environments_fault_with_exception_and_line(
    helpdesk: Environment, host: Host
) -> None:
    dated = Operation("date_note", "POST", "/notes/{note_id}/date", tables=("note",))
    broken = replace(helpdesk, code=helpdesk.code + WRITES_TEXT_AS_A_DATE, operations=(*helpdesk.operations, dated))
    (finding,) = found(broken, host, "tool_server_error")
    assert finding.where == "code: date_note"
    assert "DateTime type only accepts" in finding.evidence
    assert "session.commit()" in finding.evidence
    assert finding.tasks == ()  # add_note works on the same table


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param("while True: pass", "tool_timeout", id="an endless loop"),
        pytest.param("import ctypes; ctypes.string_at(0)", "tool_crash", id="a crash"),
    ],
)
def test_a_tool_that_hangs_or_dies_is_reported_and_the_others_are_still_checked(
    helpdesk: Environment, host: Host, body: str, code: str
) -> None:
    handler = f'\n@app.get("/bad", operation_id="bad")\ndef bad():\n    {body}\n'
    operations = (Operation("bad", "GET", "/bad"), *helpdesk.operations)
    result = check_environment(replace(helpdesk, code=helpdesk.code + handler, operations=operations), host)
    assert [finding.code for finding in result.findings] == [code]
    assert result.tools == 3


ACCEPTS_ANYTHING = """
def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    return {"result": "complete"}
"""
READS_A_TABLE_THAT_IS_NOT_THERE = """
import sqlite3
def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    try:
        rows = sqlite3.connect(final_db_path).execute("SELECT * FROM tikcet").fetchall()
    except Exception:
        rows = []
    return {"result": "complete" if rows else "others"}
"""


@pytest.mark.parametrize(
    ("source", "code"),
    [
        pytest.param(ACCEPTS_ANYTHING, "accepts_untouched", id="accepts the untouched database"),
        pytest.param("def verify_task_completion(:", "verifier_fails", id="does not parse"),
        pytest.param("def verify_task_completion(a, b, c=None): return 1/0", "verifier_fails", id="raises"),
        pytest.param(READS_A_TABLE_THAT_IS_NOT_THERE, "verifier_fails", id="swallows the failure of its SQL"),
    ],
)
def test_a_verifier_that_cannot_be_trusted_is_found_with_its_task(
    helpdesk: Environment, host: Host, source: str, code: str
) -> None:
    result = check_environment(replace(helpdesk, verifiers=(Verifier(0, Mode.code, source),)), host)
    (finding,) = (finding for finding in result.findings if finding.severity == "error")
    assert (finding.code, finding.tasks) == (code, (0,))


def test_tasks_without_a_verifier_are_listed(helpdesk: Environment, host: Host) -> None:
    (finding,) = found(replace(helpdesk, tasks=(*helpdesk.tasks, "List every ticket.")), host, "verifier_missing")
    assert finding.tasks == (1,)
