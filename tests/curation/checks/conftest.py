"""A small environment that passes every check, and a host to run it in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pipeline.model import Environment, Mode, Operation, TableRows, TableSchema, Verifier
from pipeline.runtime.host import Host
from pipeline.runtime.limits import Limits

CODE = """
from datetime import datetime
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy import Column, DateTime, ForeignKey, Integer, String, create_engine
from sqlalchemy.orm import declarative_base, sessionmaker

engine = create_engine("sqlite:///tickets.db")
Session = sessionmaker(bind=engine)
Base = declarative_base()
app = FastAPI()

class Ticket(Base):
    __tablename__ = "ticket"
    id = Column(Integer, primary_key=True)
    title = Column(String, nullable=False)

class Note(Base):
    __tablename__ = "note"
    id = Column(Integer, primary_key=True)
    ticket_id = Column(Integer, ForeignKey("ticket.id"))
    body = Column(String)
    at = Column(DateTime)

class NoteIn(BaseModel):
    body: str

@app.get("/tickets", operation_id="list_tickets")
def list_tickets():
    with Session() as session:
        return [{"id": t.id, "title": t.title} for t in session.query(Ticket)]

@app.post("/tickets/{ticket_id}/notes", operation_id="add_note", status_code=201)
def add_note(ticket_id: int, note: NoteIn):
    with Session() as session:
        if session.get(Ticket, ticket_id) is None:
            raise HTTPException(404, "There is no such ticket.")
        made = Note(ticket_id=ticket_id, body=note.body)
        session.add(made)
        session.commit()
        return {"id": made.id}
"""

VERIFIER = """
def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    import sqlite3
    def count(path):
        return sqlite3.connect(path).execute("SELECT count(*) FROM note WHERE ticket_id = 7").fetchone()[0]
    return {"result": "complete" if count(final_db_path) == count(initial_db_path) + 1 else "others"}
"""

TABLES = (
    TableSchema("ticket", "CREATE TABLE ticket(id INTEGER PRIMARY KEY, title TEXT NOT NULL);"),
    TableSchema(
        "note",
        "CREATE TABLE note(id INTEGER PRIMARY KEY, ticket_id INTEGER REFERENCES ticket(id), body TEXT, at DATETIME);",
    ),
)
ROWS = (
    TableRows("ticket", ("INSERT INTO ticket VALUES (7, 'Lamp')", "INSERT INTO ticket VALUES (8, 'Chair')")),
    TableRows("note", ("INSERT INTO note VALUES (1, 7, 'Arrived', NULL)",)),
)


@pytest.fixture
def helpdesk() -> Environment:
    """An environment with nothing wrong: two tables, two tools, one task, one verifier."""
    return Environment(
        name="helpdesk",
        title="Helpdesk",
        description="A helpdesk with tickets and notes.",
        tasks=("Add a note to the ticket 'Lamp' saying that a new bulb is on its way.",),
        schema=TABLES,
        sample=ROWS,
        operations=(
            Operation("list_tickets", "GET", "/tickets", tables=("ticket",)),
            Operation("add_note", "POST", "/tickets/{ticket_id}/notes", tables=("note", "ticket")),
        ),
        code=CODE,
        verifiers=(Verifier(0, Mode.code, VERIFIER),),
    )


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    """Workers with short limits, so that what hangs does not hold up the tests."""
    with Host(limits=Limits(call_timeout_s=1, verify_timeout_s=2)) as started:
        yield started
