"""What `awm-studio check` finds by calling tools: effects, replies, repetitions, schemas, dates."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from curation.checks.environment import check_environment
from pipeline.findings import Finding
from pipeline.model import Environment, Mode, Operation, TableRows, TableSchema, Verifier
from pipeline.rules.tool_schemas import schema_problems
from pipeline.runtime.host import Host
from tests.curation.checks.conftest import VERIFIER


def with_tool(
    environment: Environment, source: str, *, method: str = "POST", response: dict[str, Any] | None = None
) -> Environment:
    """The environment with one more tool, `more`."""
    path = '"/more"'
    operation = Operation("more", method, "/more", response=response or {}, tables=("note",))
    handler = f'\n@app.{method.lower()}({path}, operation_id="more")\n{source}\n'
    return replace(environment, code=environment.code + handler, operations=(*environment.operations, operation))


def codes(environment: Environment, host: Host) -> dict[str, Finding]:
    return {finding.code: finding for finding in check_environment(environment, host).findings}


FORGETS_TO_COMMIT = """
def more(body: str):
    with Session() as session:
        session.add(Note(ticket_id=7, body=body))
        return {"stored": True}
"""
READS_AFTER_COMMIT = """
def more(body: str):
    session = Session()
    note = Note(ticket_id=7, body=body)
    session.add(note)
    session.commit()
    session.close()
    return {"body": note.body}
"""
COUNTS_VIEWS = """
def more():
    with Session() as session:
        session.add(Note(ticket_id=7, body="seen"))
        session.commit()
        return {"seen": True}
"""
COUNTS_ON_ITSELF = """
def more(body: str):
    more.calls = getattr(more, "calls", 0) + 1
    with Session() as session:
        session.add(Note(ticket_id=7, body=body))
        session.commit()
        return {"number": more.calls}
"""
NAMES_A_FILE = """
def more(body: str):
    import tempfile
    with Session() as session:
        session.add(Note(ticket_id=7, body=tempfile.mktemp()))
        session.commit()
        return {"stored": True}
"""
FORBIDS_ITS_OWN_REPLY = """
def more(body: str) -> NoteIn:
    with Session() as session:
        session.add(Note(ticket_id=7, body=body))
        session.commit()
        return {"text": body}
"""


@pytest.mark.parametrize(
    ("source", "method", "code", "severity"),
    [
        pytest.param(FORGETS_TO_COMMIT, "POST", "write_without_effect", "warn", id="a write that changes nothing"),
        pytest.param(READS_AFTER_COMMIT, "POST", "error_after_change", "error", id="an error after the commit"),
        pytest.param(COUNTS_VIEWS, "GET", "read_changes_rows", "warn", id="a GET that writes"),
        pytest.param(COUNTS_ON_ITSELF, "POST", "state_leaks", "error", id="state that leaks between instances"),
        pytest.param(NAMES_A_FILE, "POST", "not_deterministic", "error", id="chance that nothing pins"),
        pytest.param(FORBIDS_ITS_OWN_REPLY, "POST", "response_invalid", "error", id="a reply its own model forbids"),
    ],
)
def test_what_a_tool_does_is_held_against_what_it_is_for(
    helpdesk: Environment, host: Host, source: str, method: str, code: str, severity: str
) -> None:
    found = codes(with_tool(helpdesk, source, method=method), host)
    assert code in found, list(found)
    assert (found[code].severity, found[code].where) == (severity, "code: more")
    assert found[code].evidence


ANSWERS = """
def more(body: str):
    with Session() as session:
        session.add(Note(ticket_id=7, body=body))
        session.commit()
        return {"id": "new", "notes": [{"body": None}]}
"""


def test_a_reply_that_is_not_what_the_spec_promises_is_told_field_by_field(helpdesk: Environment, host: Host) -> None:
    note = {"id": {"type": "integer"}, "body": {"type": "string"}}
    promised = {"id": {"type": "integer"}, "notes": {"type": "array", "items": note}, "ticket": {"type": "string"}}
    found = codes(with_tool(helpdesk, ANSWERS, response=promised), host)["response_differs"]
    assert "id is string, not integer; notes[].id is missing; ticket is missing" in found.message


def test_an_id_that_no_row_has_must_be_refused(helpdesk: Environment, host: Host) -> None:
    careless = (helpdesk.code or "").replace("if session.get(Ticket, ticket_id) is None:", "if False:")
    assert "accepts_unknown_id" not in codes(helpdesk, host)
    found = codes(replace(helpdesk, code=careless), host)["accepts_unknown_id"]
    assert found.where == "code: add_note"
    assert "note.ticket_id" in found.evidence


@pytest.mark.parametrize(
    ("schema", "refusing"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}, set()),
        ({"type": "array", "items": {}}, {"OpenAI", "Anthropic", "Gemini"}),
        ({"type": "object", "anyOf": [{"required": ["a"]}]}, {"OpenAI", "Anthropic", "Gemini"}),
        ({"type": "object", "properties": {"a": {"type": "array"}}}, {"OpenAI", "Gemini"}),
        ({"type": "object", "properties": {"filter[a]": {"type": "string"}}}, {"Anthropic"}),
        ({"type": "object", "properties": {"a": {"$ref": "#/components/A"}}}, {"OpenAI", "Anthropic", "Gemini"}),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}}, set()),
        ({"type": "object", "properties": {}, "required": ["a"]}, {"Gemini"}),
    ],
)
def test_what_each_provider_refuses_in_a_tools_schema(schema: dict[str, Any], refusing: set[str]) -> None:
    assert {provider for _, by in schema_problems(schema) for provider in by} == refusing


@pytest.mark.parametrize(("levels", "refused"), [(10, False), (11, True)])
def test_schemas_may_be_ten_objects_deep(levels: int, refused: bool) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"leaf": {"type": "string"}}}
    for _ in range(levels - 1):
        schema = {"type": "object", "properties": {"inner": schema}}
    assert bool(list(schema_problems(schema))) is refused


def test_a_tool_that_a_provider_refuses_is_named_with_its_parameter(helpdesk: Environment, host: Host) -> None:
    source = (
        'def more(body: str, kind: str = Query("", alias="filter[kind]")):\n    return add_note(7, NoteIn(body=body))'
    )
    app = (helpdesk.code or "").replace("import FastAPI,", "import FastAPI, Query,")
    found = codes(with_tool(replace(helpdesk, code=app), source), host)["tool_schema_refused"]
    assert found.severity == "warn"
    assert "Anthropic" in found.message
    assert "filter[kind]" in found.evidence


EXPECTS_A_DAY = VERIFIER.replace("WHERE ticket_id = 7", "WHERE at >= '2026-03-05'")


@pytest.mark.parametrize(
    ("task", "verifier", "note", "code", "severity"),
    [
        ("Note on 'Lamp' that it arrives tomorrow.", EXPECTS_A_DAY, "'2026-03-04'", "relative_task", "warn"),
        ("Count the notes of the last 7 days.", VERIFIER, "'2026-03-04'", "relative_task", "info"),
        ("Delete the note of 2025-12-30.", VERIFIER, "datetime('now', '-2 days')", "date_moves", "warn"),
    ],
    ids=["the verifier expects a fixed day", "the rows stay on their days", "the row moves away from its day"],
)
def test_tasks_that_are_right_on_one_day_only(
    helpdesk: Environment, host: Host, task: str, verifier: str, note: str, code: str, severity: str
) -> None:
    rows = TableRows("note", (f"INSERT INTO note VALUES (1, 7, 'Arrived', {note})",))
    dated = replace(
        helpdesk, tasks=(task,), sample=(helpdesk.sample[0], rows), verifiers=(Verifier(0, Mode.code, verifier),)
    )
    found = codes(dated, host)
    assert (found[code].severity, found[code].tasks) == (severity, (0,))


def test_a_task_that_moves_with_its_rows_is_right_every_day(helpdesk: Environment, host: Host) -> None:
    rows = TableRows("note", ("INSERT INTO note VALUES (1, 7, 'Arrived', datetime('now', '-2 days'))",))
    moving = replace(helpdesk, tasks=("Count the notes of the last 7 days.",), sample=(helpdesk.sample[0], rows))
    assert not codes(moving, host).keys() & {"relative_task", "date_moves"}


def test_an_empty_table_blocks_the_tasks_that_look_for_its_rows_but_not_those_that_make_them(
    helpdesk: Environment, host: Host
) -> None:
    tags = TableSchema("tag", "CREATE TABLE tag(id INTEGER PRIMARY KEY, name TEXT)")
    tasks = ("Rename the tag 'urgent'.", "Add a tag to 'Lamp'.")
    found = codes(replace(helpdesk, schema=(*helpdesk.schema, tags), tasks=tasks), host)
    assert found["table_empty_needed"].tasks == (0,)
