"""Small original environments for tests of the host: a notebook whose `run` tool executes any code it is given."""

from __future__ import annotations

from dataclasses import replace

from pipeline.model import Environment, TableRows, TableSchema

NOTEBOOK = """
import os
from datetime import datetime

from fastapi import Body, FastAPI, HTTPException
from sqlalchemy import Column, DateTime, Integer, String, create_engine
from sqlalchemy.orm import declarative_base, sessionmaker

engine = create_engine(os.getenv("DATABASE_PATH", "sqlite:///notes.db"), connect_args={"check_same_thread": False})
Session = sessionmaker(bind=engine)
Base = declarative_base()
app = FastAPI()


class Note(Base):
    __tablename__ = "notes"
    id = Column(Integer, primary_key=True)
    text = Column(String, nullable=False)
    written = Column(DateTime, nullable=False, default=datetime.utcnow)


@app.post("/notes", operation_id="add_note")
def add_note(text: str = Body(..., embed=True)):
    session = Session()
    note = Note(text=text)
    session.add(note)
    session.commit()
    return {"id": note.id, "text": note.text, "written": note.written}


@app.get("/notes", operation_id="list_notes")
async def list_notes():
    return [note.text for note in Session().query(Note).order_by(Note.id)]


@app.delete("/notes/{note_id}", operation_id="delete_note")
def delete_note(note_id: int):
    session = Session()
    note = session.get(Note, note_id)
    if note is None:
        raise HTTPException(404, "no such note")
    session.delete(note)
    session.commit()
    return {"deleted": note_id}


@app.post("/run", operation_id="run")
def run(code: str = Body(..., embed=True)):
    seen = {"session": Session(), "Note": Note}
    exec(code, seen)
    return seen.get("out")
"""

NOTES = TableSchema(
    "notes", "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL, written DATETIME NOT NULL)"
)
FIRST_NOTE = TableRows("notes", ("INSERT INTO notes VALUES (1, 'first', datetime('now', '-1 day'))",))


def notebook(code: str = NOTEBOOK, name: str = "notebook") -> Environment:
    """An environment with one table of notes."""
    return Environment(name, title=name.title(), schema=(NOTES,), sample=(FIRST_NOTE,), code=code)


def with_rows(*inserts: str) -> Environment:
    """The notebook with other rows."""
    return replace(notebook(), sample=(TableRows("notes", inserts),))
