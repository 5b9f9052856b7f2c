"""Replies that no server could send are errors of their call, and full-text tables can be built."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipeline.model import Environment, TableRows, TableSchema
from pipeline.runtime.host import Host, HostedProgram

CODE = r"""
from fastapi import FastAPI, Response
app = FastAPI()

@app.get("/object", operation_id="surrogate_in_object")
def surrogate_in_object():
    return {"v": "\ud800"}

@app.get("/text", operation_id="surrogate_in_text")
def surrogate_in_text():
    return Response('{"v": "\\ud800"}', media_type="application/json")

@app.get("/status", operation_id="status_99")
def status_99():
    return Response(status_code=99)

@app.get("/fine", operation_id="fine")
def fine():
    return 1
"""


@pytest.fixture(scope="module")
def program() -> Iterator[HostedProgram]:
    with Host() as host, host.program(Environment("odd", code=CODE)) as loaded:
        yield loaded


@pytest.mark.parametrize("tool", ["surrogate_in_object", "status_99"])
def test_a_reply_that_cannot_be_sent_is_a_server_error(program: HostedProgram, tool: str) -> None:
    instance = program.instance()
    reply = instance.call(tool)
    assert reply.error is not None
    assert reply.error.kind == "server_error"
    assert instance.call("fine").ok


def test_a_surrogate_written_as_an_escape_arrives_as_a_question_mark(program: HostedProgram) -> None:
    reply = program.instance().call("surrogate_in_text")
    assert (reply.ok, reply.body) == (True, {"v": "?"})


def test_full_text_tables_are_built() -> None:
    schema = (TableSchema("notes", "CREATE VIRTUAL TABLE notes USING fts5(body)"),)
    rows = (TableRows("notes", ("INSERT INTO notes VALUES ('a lamp')",)),)
    with Host() as host:
        build = host.build(Environment("texts", schema=schema, sample=rows))
    assert build.ok
    assert build.tables["notes"] == 1
