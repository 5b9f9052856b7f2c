"""Small inputs that broke tools like ours: what is lost, shadowed or can never succeed is told, whole and once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from curation.checks.environment import check_environment
from pipeline.findings import Finding
from pipeline.model import Environment, Mode, Operation, TableRows, TableSchema, Verifier
from pipeline.rules.blocked import with_quotes_doubled
from pipeline.runtime.host import Host


def of_tables(tables: dict[str, str], rows: dict[str, tuple[str, ...]], **parts) -> Environment:
    """An environment of these CREATE TABLE and INSERT statements."""
    schema = tuple(TableSchema(name, ddl) for name, ddl in tables.items())
    return Environment("case", schema=schema, sample=tuple(TableRows(t, r) for t, r in rows.items()), **parts)


def coded(environment: Environment, host: Host, code: str) -> list[Finding]:
    return [finding for finding in check_environment(environment, host).findings if finding.code == code]


def test_one_bad_insert_of_three_is_one_finding_with_a_repair_and_the_tasks_at_risk(host: Host) -> None:
    environment = of_tables(
        {
            "note": "CREATE TABLE note(id INTEGER PRIMARY KEY, ticket_id INTEGER REFERENCES ticket(id), body TEXT);",
            "ticket": "CREATE TABLE ticket(id INTEGER PRIMARY KEY, title TEXT);",
        },
        {
            "ticket": ("INSERT INTO ticket VALUES (7,'Lamp');",),
            "note": (
                "INSERT INTO note VALUES (1,7,'We'll send a new lamp');",
                "INSERT INTO note VALUES (2,7,'Arrived');",
            ),
        },
        tasks=("Mark the note 'We'll send a new lamp' as read.", "List the tickets."),
    )
    result = check_environment(environment, host)
    (failed,) = (finding for finding in result.findings if finding.code.endswith("_failed"))
    assert (failed.code, failed.severity, failed.tasks) == ("insert_failed", "error", (0,))
    assert "note, row 0" in failed.where
    assert "statement" in failed.where
    assert "'We''ll send a new lamp'" in failed.remedy
    assert (result.rows, result.status) == (2, "fail")  # a share of lost rows that upstream tolerates is not let pass


def test_the_repair_of_an_apostrophe_loads() -> None:
    assert with_quotes_doubled("INSERT INTO note VALUES (1,7,'We'll go','it''s')") == (
        "INSERT INTO note VALUES (1,7,'We''ll go','it''s')"
    )
    assert with_quotes_doubled(r"INSERT INTO note VALUES (1,7,'We\'ll go','C:\new')") == (
        r"INSERT INTO note VALUES (1,7,'We''ll go','C:\new')"
    )


def test_a_table_that_is_lost_is_never_tolerated_and_all_that_hangs_on_it_is_listed(host: Host) -> None:
    environment = of_tables(
        {
            "form": "CREATE TABLE form(id INTEGER PRIMARY KEY, name TEXT);",
            "question": "CREATE TABLE question(id INTEGER PRIMARY KEY, form_id INTEGER, label TEXT DEFAULT 'x';",
            "answer": "CREATE TABLE answer(id INTEGER PRIMARY KEY, question_id INTEGER REFERENCES question(id));",
        },
        {
            "form": tuple(f"INSERT INTO form VALUES ({number}, 'Form {number}');" for number in range(1, 100)),
            "question": ("INSERT INTO question VALUES (1,1,'Name?');",),
            "answer": ("INSERT INTO answer VALUES (1,1);",),
        },
        tasks=("Add a question 'Age?' to form 1", "List the forms."),
        operations=(Operation("add_question", "POST", "/questions", tables=("question",)),),
    )
    result = check_environment(environment, host)
    codes = {finding.code: finding for finding in result.findings}
    lost = codes["table_missing"]
    assert result.status == "fail"
    assert lost.tasks == (0,)
    assert "1 insert into it lost" in lost.evidence
    assert "needed by add_question" in lost.evidence
    assert "refers to the table question, which does not exist" in codes["foreign_key_nowhere"].message


STAFF = "CREATE TABLE staff(id INTEGER PRIMARY KEY, team_id INTEGER NOT NULL REFERENCES team(id));"
TEAM = "CREATE TABLE team(id INTEGER PRIMARY KEY, lead_id INTEGER REFERENCES staff(id));"


@pytest.mark.parametrize("turned", [False, True], ids=["as written", "turned round"])
def test_a_cycle_loads_and_the_one_reference_to_nobody_is_told_once(host: Host, turned: bool) -> None:
    tables = [("staff", STAFF), ("team", TEAM)]
    rows = [
        ("staff", ("INSERT INTO staff VALUES (1,10);", "INSERT INTO staff VALUES (2,99);")),
        ("team", ("INSERT INTO team VALUES (10,1);",)),
    ]
    step = -1 if turned else 1
    environment = of_tables(dict(tables[::step]), dict(rows[::step]))
    result = check_environment(environment, host)
    (broken,) = (finding for finding in result.findings if finding.code == "foreign_key_broken")
    assert result.rows == 3
    assert broken.message == "1 row of staff without the row of team that is referred to"
    assert "rowid 2" in broken.evidence


LONG = "a_very_long_operation_name_that_goes_on_and_on_for_more_than_64_characters"
PLEDGES = f"""
from fastapi import FastAPI
app = FastAPI()
@app.post("/pledges", operation_id="pledge_once")
def once(amount: int): return {{"kind": "once"}}
@app.post("/pledges", operation_id="pledge_monthly")
def monthly(amount: int, start: str): return {{"kind": "monthly"}}
@app.get("/pledges/{{id}}", operation_id="{LONG}_1")
def one(id: int): return {{"id": id}}
@app.get("/pledges/{{id}}/log", operation_id="{LONG}_2")
def log(id: int): return []
"""


def test_two_operations_on_one_route_and_names_that_are_too_long(host: Host) -> None:
    operations = (
        Operation("pledge_once", "POST", "/pledges"),
        Operation("pledge_monthly", "POST", "/pledges"),
        Operation(f"{LONG}_1", "GET", "/pledges/{id}"),
        Operation(f"{LONG}_2", "GET", "/pledges/{id}/log"),
    )
    environment = of_tables(
        {"pledge": "CREATE TABLE pledge(id INTEGER PRIMARY KEY);"},
        {"pledge": ("INSERT INTO pledge VALUES (1)",)},
        operations=operations,
    )
    before = {finding.code for finding in check_environment(environment, host).findings}
    assert {"route_twice", "tool_name"} <= before  # known before there is any code
    served = replace(environment, code=PLEDGES)
    result = check_environment(served, host)
    assert result.tools == 4
    assert "operation_missing" not in {finding.code for finding in result.findings}
    with host.program(served) as program:
        names = [tool.name for tool in program.tools]
        assert len(set(names)) == 4
        assert all(len(name) <= 64 for name in names)
        with program.instance() as instance:
            assert instance.call("pledge_monthly", {"amount": 5, "start": "2026-01-01"}).body == {"kind": "monthly"}
            assert instance.call(names[2], {"id": 3}).body == {"id": 3}


VISITS = """
from fastapi import FastAPI
from pydantic import BaseModel
from sqlalchemy import Column, DateTime, Integer, String, create_engine
from sqlalchemy.orm import declarative_base, sessionmaker
engine = create_engine("sqlite:///visits.db")
Session = sessionmaker(bind=engine)
Base = declarative_base()
app = FastAPI()
class Visit(Base):
    __tablename__ = "visit"
    id = Column(Integer, primary_key=True)
    at = Column(DateTime)
    room = Column(String)
class VisitIn(BaseModel):
    at: str
class VisitOut(BaseModel):
    id: int
    room: str
@app.post("/visits", operation_id="add_visit")
def add(visit: VisitIn):
    with Session() as session:
        made = Visit(at=visit.at)
        session.add(made)
        session.commit()
        return {"id": made.id}
@app.get("/visits/{id}", operation_id="get_visit", response_model=VisitOut)
def get(id: int):
    with Session() as session:
        return session.get(Visit, id)
"""
READS_VISITS = """
def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    import sqlite3
    rows = sqlite3.connect(final_db_path).execute("SELECT id FROM visit WHERE at LIKE '2026-03-01%'").fetchall()
    return {"result": "complete" if rows else "others"}
"""


def test_tools_that_can_never_succeed_are_the_environments_fault_and_block_the_tasks_that_need_them(host: Host) -> None:
    environment = of_tables(
        {"visit": "CREATE TABLE visit(id INTEGER PRIMARY KEY, at DATETIME, room TEXT);"},
        {"visit": ("INSERT INTO visit VALUES (1, '2026-02-01 09:00:00', NULL)",)},
        tasks=("Book a visit on 2026-03-01 at 10:00.",),
        operations=(
            Operation("add_visit", "POST", "/visits", tables=("visit",)),
            Operation("get_visit", "GET", "/visits/{id}", tables=("visit",)),
        ),
        code=VISITS,
        verifiers=(Verifier(0, Mode.code, READS_VISITS),),
    )
    (writes,) = coded(environment, host, "tool_server_error")
    (reads,) = coded(environment, host, "response_invalid")
    assert (writes.where, reads.where) == ("code: add_visit", "code: get_visit")
    assert "DateTime type only accepts" in writes.evidence
    assert "room" in reads.evidence
    assert writes.tasks == reads.tasks == (0,)
