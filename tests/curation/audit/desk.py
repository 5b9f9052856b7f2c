"""A ticket desk with known solutions and verifiers that are right, and ways of getting each of them wrong."""

from __future__ import annotations

from dataclasses import replace

from pipeline.model import Call, Environment, Mode, Solution, TableRows, TableSchema, Verifier

CODE = """
from datetime import datetime
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy import Column, DateTime, ForeignKey, Integer, String, create_engine
from sqlalchemy.orm import declarative_base, sessionmaker

Session = sessionmaker(bind=create_engine("sqlite:///desk.db"))
Base = declarative_base()
app = FastAPI()

class Agent(Base):
    __tablename__ = "agent"
    id = Column(Integer, primary_key=True)
    name = Column(String)

class Ticket(Base):
    __tablename__ = "ticket"
    id = Column(Integer, primary_key=True)
    number = Column(String)
    title = Column(String)
    state = Column(String)
    agent_id = Column(Integer, ForeignKey("agent.id"))

class Note(Base):
    __tablename__ = "note"
    id = Column(Integer, primary_key=True)
    ticket_id = Column(Integer, ForeignKey("ticket.id"))
    body = Column(String)
    at = Column(DateTime, default=datetime.utcnow)

class Log(Base):
    __tablename__ = "log"
    id = Column(Integer, primary_key=True)
    said = Column(String)

class NoteIn(BaseModel):
    body: str

def ticket_of(session, ticket_id):
    ticket = session.get(Ticket, ticket_id)
    if ticket is None:
        raise HTTPException(404, "There is no such ticket.")
    return ticket

@app.get("/tickets", operation_id="list_tickets")
def list_tickets():
    with Session() as session:
        return [{"id": t.id, "number": t.number, "title": t.title} for t in session.query(Ticket)]

@app.post("/tickets/{ticket_id}/close", operation_id="close_ticket")
def close_ticket(ticket_id: int):
    with Session() as session:
        ticket = ticket_of(session, ticket_id)
        ticket.state = "closed"
        session.add(Log(said="closed one"))
        session.commit()
        return {"id": ticket_id}

@app.post("/tickets/{ticket_id}/notes", operation_id="add_note")
def add_note(ticket_id: int, note: NoteIn):
    with Session() as session:
        ticket_of(session, ticket_id)
        made = Note(ticket_id=ticket_id, body=note.body)
        session.add(made)
        session.commit()
        return {"id": made.id}
"""

SCHEMA = (
    TableSchema("agent", "CREATE TABLE agent(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)"),
    TableSchema(
        "ticket",
        "CREATE TABLE ticket(id INTEGER PRIMARY KEY, number TEXT NOT NULL UNIQUE, title TEXT NOT NULL,"
        " state TEXT NOT NULL CHECK (state IN ('open', 'waiting', 'closed')), agent_id INTEGER REFERENCES agent(id))",
    ),
    TableSchema(
        "note",
        "CREATE TABLE note(id INTEGER PRIMARY KEY, ticket_id INTEGER NOT NULL REFERENCES ticket(id),"
        " body TEXT NOT NULL, at DATETIME)",
    ),
    TableSchema("log", "CREATE TABLE log(id INTEGER PRIMARY KEY, said TEXT)"),
)
ROWS = (
    TableRows("agent", ("INSERT INTO agent VALUES (1, 'Mara Lind'), (2, 'Ole Brandt')",)),
    TableRows(
        "ticket",
        (
            "INSERT INTO ticket VALUES (11, 'T-11', 'Lamp', 'open', 1), (12, 'T-12', 'Chair', 'open', 1),"
            " (13, 'T-13', 'Desk', 'waiting', 2), (14, 'T-14', 'Shelf', 'open', 2)",
        ),
    ),
    TableRows("note", ("INSERT INTO note VALUES (1, 11, 'Arrived', NULL), (2, 13, 'Asked for a price', NULL)",)),
    TableRows("log", ("INSERT INTO log VALUES (1, 'started')",)),
)

TASKS = (
    "Close ticket T-11.",
    "Add two notes to ticket T-12: 'Bulb ordered' and 'Owner told'.",
    "How many tickets does Mara Lind have?",
    "Close ticket T-13 and tell me its title.",
)
SOLUTIONS = (
    Solution(0, (Call("list_tickets"), Call("close_ticket", {"ticket_id": 11}))),
    Solution(
        1,
        (
            Call("add_note", {"ticket_id": 12, "body": "Bulb ordered"}),
            Call("add_note", {"ticket_id": 12, "body": "Owner told"}),
        ),
    ),
    Solution(2, (Call("list_tickets"),), "2"),
    Solution(3, (Call("close_ticket", {"ticket_id": 13}),), "Desk"),
)

HEAD = """
import re
import sqlite3

TICKETS = "SELECT number, title, state, name FROM ticket JOIN agent ON agent.id = agent_id ORDER BY number"
NOTES = "SELECT number, body FROM note JOIN ticket ON ticket.id = ticket_id ORDER BY number, body"

def rows(path, sql):
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True).execute(sql).fetchall()

def unchanged(initial, final, *tables):
    return all(rows(initial, f"SELECT * FROM {t}") == rows(final, f"SELECT * FROM {t}") for t in tables)

def one_more_line(initial, final):
    before, after = (set(rows(path, "SELECT * FROM log")) for path in (initial, final))
    return before < after and len(after - before) == 1

def closed(initial, number):
    return [(n, t, "closed" if n == number else s, a) for n, t, s, a in rows(initial, TICKETS)]

def words(answer):
    return " ".join(str(answer or "").casefold().split())

def verify_task_completion(initial, final, final_answer=None):
"""
BODIES = (
    """
    good = rows(final, TICKETS) == closed(initial, "T-11") and unchanged(initial, final, "agent", "note")
    good = good and one_more_line(initial, final)
""",
    """
    new = [("T-12", "Bulb ordered"), ("T-12", "Owner told")]
    good = rows(final, NOTES) == sorted(rows(initial, NOTES) + new)
    good = good and unchanged(initial, final, "agent", "ticket", "log")
""",
    """
    good = unchanged(initial, final, "agent", "ticket", "note", "log")
    good = good and re.findall(r"[0-9]+", words(final_answer)) == ["2"]
""",
    """
    good = rows(final, TICKETS) == closed(initial, "T-13") and unchanged(initial, final, "agent", "note")
    named = re.findall(r"\\b(?:lamp|chair|desk|shelf)\\b", words(final_answer))
    good = good and one_more_line(initial, final) and named == ["desk"]
""",
)
END = '    return {"result": "complete" if good else "others"}\n'


def verifier(task: int, body: str | None = None, *, head: str = HEAD) -> Verifier:
    """The verifier of a task: the right one, or one with another body (lines that set `good`)."""
    return Verifier(task, Mode.code, f"{head}{BODIES[task] if body is None else body}{END}")


def sql_verifier(task: int) -> Verifier:
    """The right verifier of a task in sql mode, with evidence that says whether it holds."""
    source = f"{HEAD}{BODIES[task]}{END}".replace("def verify_task_completion", "def verify_task")
    return Verifier(task, Mode.sql, source.replace('{"result": "complete" if good else "others"}', '{"holds": good}'))


DESK = Environment(
    name="desk",
    title="Desk",
    description="A desk with tickets, notes and agents.",
    tasks=TASKS,
    schema=SCHEMA,
    sample=ROWS,
    code=CODE,
    verifiers=tuple(map(verifier, range(len(TASKS)))),
    solutions=SOLUTIONS,
)


def desk(*verifiers: Verifier, **parts) -> Environment:
    """The desk with these verifiers only, and other parts."""
    return replace(DESK, verifiers=verifiers, **parts)
