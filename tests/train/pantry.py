"""A small environment whose tools, tasks and verifiers are all one needs to see what agents can do to one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pipeline.blueprints.synthesis import put
from pipeline.catalog import Catalog
from pipeline.model import Call, Environment, Mode, Solution, TableRows, TableSchema, Verifier

CODE = """
from fastapi import Body, FastAPI, HTTPException
from sqlalchemy import Column, Integer, String, create_engine
from sqlalchemy.orm import declarative_base, sessionmaker

engine = create_engine("sqlite:///pantry.db")
Session = sessionmaker(bind=engine)
Base = declarative_base()
app = FastAPI()


class Item(Base):
    __tablename__ = "items"
    id = Column(Integer, primary_key=True)
    name = Column(String, nullable=False)
    amount = Column(Integer, nullable=False)


def shown(item):
    return {"id": item.id, "name": item.name, "amount": item.amount}


@app.get("/items", operation_id="list_items", summary="List items")
async def list_items(name: str | None = None):
    query = Session().query(Item)
    return [shown(item) for item in (query.filter(Item.name == name) if name else query).order_by(Item.id)]


@app.put("/items/{item_id}", operation_id="set_amount", summary="Set an amount")
async def set_amount(item_id: int, amount: int = Body(..., embed=True, ge=0)):
    session = Session()
    item = session.get(Item, item_id)
    if item is None:
        raise HTTPException(404, "There is no such item")
    item.amount = amount
    session.commit()
    return shown(item)


@app.get("/broken", operation_id="break_down", summary="Always fails")
async def break_down():
    raise RuntimeError("the shelf is broken")
"""

FOREVER = """

@app.get("/forever", operation_id="wait_forever", summary="Never answers")
async def wait_forever():
    while True:
        pass
"""


VERIFY_AMOUNT = """
def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    rows = sqlite3.connect(final_db_path).execute("SELECT name, amount FROM items ORDER BY id").fetchall()
    return {"result": "complete" if rows == [("rice", 5), ("beans", 2)] else "others"}
"""
VERIFY_ANSWER = """
def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    return {"result": "complete" if final_answer == "2" else "others"}
"""
SEE_AMOUNT = """
def verify_task(initial_db_path, final_db_path):
    rows = sqlite3.connect(final_db_path).execute("SELECT amount FROM items WHERE name = 'rice'").fetchall()
    return {"rice": rows[0][0]}
"""
BROKEN = "def verify_task_completion(initial_db_path, final_db_path, final_answer=None):\n    return nothing\n"

TASKS = ("Set the amount of rice to 5.", "How many kinds of items are there?", "Tidy up.")


def pantry(name: str = "pantry") -> Environment:
    """Two items; a task to change one, a task to answer, and one whose verifier is broken."""
    return Environment(
        name,
        title="Pantry",
        description="A pantry.",
        origin="blueprint",
        domain="test",
        tasks=TASKS,
        schema=(
            TableSchema(
                "items", "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT NOT NULL, amount INTEGER NOT NULL)"
            ),
        ),
        sample=(
            TableRows("items", ("INSERT INTO items VALUES (1, 'rice', 1)", "INSERT INTO items VALUES (2, 'beans', 2)")),
        ),
        code=CODE,
        verifiers=(
            Verifier(0, Mode.code, VERIFY_AMOUNT),
            Verifier(0, Mode.sql, SEE_AMOUNT),
            Verifier(1, Mode.code, VERIFY_ANSWER),
            Verifier(2, Mode.code, BROKEN),
        ),
        solutions=(
            Solution(0, (Call("list_items", {"name": "rice"}), Call("set_amount", {"item_id": 1, "amount": 5}))),
            Solution(1, (Call("list_items"),), "2"),
        ),
    )


def broken(name: str = "ruin") -> Environment:
    """An environment whose code does not load."""
    return replace(pantry(name), code="app = nothing\n")


def fill(folder: Path, *environments: Environment) -> Path:
    """A workspace with these environments, or with one pantry."""
    folder.mkdir(parents=True, exist_ok=True)
    with Catalog.open(folder / "catalog.db") as catalog, catalog.bulk():
        for environment in environments or (pantry(),):
            put(catalog, environment)
    return folder
