"""A pretended model that makes small, right environments, and goes wrong where a test wants it to.

It recognises what is asked by the prompts' first words and answers from templates, so that the same request gets the
same answer in any order and any process.
"""

from __future__ import annotations

import json
import random
import re
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.llm_server import Answer, Say

OPENINGS = {
    "You invent scenarios": "scenario",
    "You judge whether a service": "score",
    "You write tasks": "tasks",
    "You design the SQLite": "schema",
    "You fill the SQLite": "sample",
    "You design the API": "spec",
    "You write the FastAPI": "code",
    "You write verifiers": "verifier/code",
    "You collect evidence": "verifier/sql",
}
CATEGORIES = ("gardens", "harbours", "archives", "kitchens")

Wrong = Callable[[str, str, int], Answer | None]
"""(step, scenario or task, how often this was asked before) → another answer, or None for the right one."""


def right(step: str, about: str, before: int) -> Answer | None:
    return None


class Model:
    """Answers chat requests; `asked` counts them by step, in the order of the first request of each kind."""

    def __init__(self, wrong: Wrong = right) -> None:
        self.asked: Counter[str] = Counter()
        self._before: Counter[tuple[str, str]] = Counter()
        self._wrong = wrong
        self._lock = threading.Lock()

    def __call__(self, body: dict[str, Any]) -> Answer:
        messages = body["messages"]
        step = next(name for opening, name in OPENINGS.items() if messages[0]["content"].startswith(opening))
        prompt = messages[1]["content"]
        about = _about(step, prompt)
        with self._lock:
            self.asked[step] += 1
            before = self._before[step, about]
            self._before[step, about] += 1
        return self._wrong(step, about, before) or Say(reply(step, prompt), tokens=(len(prompt) // 4, 200))


def _about(step: str, prompt: str) -> str:
    if step.startswith("verifier"):
        return re.findall(r"^The task: (.*)$", prompt, re.M)[-1]
    found = re.search(r"^The service: (.*)$", prompt, re.M)
    return found.group(1) if found else ""


def reply(step: str, prompt: str) -> str:
    """The right answer to a prompt."""
    if step == "scenario":
        taken = set(re.findall(r"Works (\d+)", prompt))
        rng = random.Random(prompt)
        numbers = [number for number in rng.sample(range(1000), 60) if str(number) not in taken][:10]
        return json.dumps({"scenarios": [scenario(number) for number in numbers]})
    if step == "score":
        names = re.findall(r"^(Works \d+):", prompt, re.M)
        return json.dumps({"scores": [{"name": name, "score": 9, "reason": "all records"} for name in names]})
    if step == "tasks":
        wanted = re.search(r"Write exactly (\d+) tasks", prompt)
        return json.dumps({"tasks": TASKS[: int(wanted.group(1)) if wanted else len(TASKS)]})
    if step in ("schema", "sample", "spec"):
        return json.dumps({"schema": SCHEMA, "sample": SAMPLE, "spec": SPEC}[step])
    if step == "code":
        return f"Here it is.\n```python\n{CODE}```"
    task = re.findall(r"^The task: (.*)$", prompt, re.M)[-1]
    return f"```python\n{verifier(task, step.partition('/')[2])}```"


def scenario(number: int) -> dict[str, str]:
    """A scenario whose description shares no words with another one's."""
    rng = random.Random(number)
    words = ["".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(4)) for _ in range(60)]
    return {"name": f"Works {number}", "category": CATEGORIES[number % 4], "description": " ".join(words) + "."}


TASKS = [
    "Return the total price of all my items.",
    *(f'Mark the item "Item {n}" as done.' for n in range(1, 5)),
    *(f'Create an item named "New {n}" with a price of {n}.50.' for n in range(1, 6)),
]
SCHEMA = {
    "tables": [
        {
            "name": "users",
            "ddl": "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);",
            "indexes": [],
        },
        {
            "name": "items",
            "ddl": "CREATE TABLE items (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES users(id), "
            "name TEXT NOT NULL, state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'done')), "
            "price REAL NOT NULL);",
            "indexes": ["CREATE INDEX items_by_user ON items(user_id);"],
        },
    ]
}
SAMPLE = {
    "tables": [
        {
            "table_name": "users",
            "reasoning": "the signed-in user and another one",
            "insert_statements": ["INSERT INTO users VALUES (1, 'Ada');", "INSERT INTO users VALUES (2, 'Ben');"],
        },
        {
            "table_name": "items",
            "reasoning": "items to be marked and counted",
            "insert_statements": [
                f"INSERT INTO items (id, user_id, name, price) VALUES ({n}, {1 + n % 2}, 'Item {n}', {n}.25);"
                for n in range(1, 9)
            ],
        },
    ]
}
_ITEM = {name: {"type": kind} for name, kind in (("id", "integer"), ("name", "string"), ("state", "string"))}


def _endpoint(operation: str, method: str, path: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        "path": path,
        "method": method,
        "summary": operation.replace("_", " "),
        "description": operation.replace("_", " "),
        "operation_id": operation,
        "tags": ["items"],
        "request_params": parameters,
        "response": {"type": "array", "items": _ITEM} if operation.startswith("list_") else _ITEM,
        "required_tables": ["items"],
        "required_fields": {"items": ["id", "name", "state", "price"]},
    }


SPEC = {
    "api_groups": [
        {
            "group_name": "Items",
            "endpoints": [
                _endpoint("list_items", "GET", "/items", {}),
                _endpoint("get_item", "GET", "/items/{id}", {"id": {"type": "integer", "param_type": "path"}}),
                _endpoint(
                    "create_item",
                    "POST",
                    "/items",
                    {n: {"type": k, "param_type": "body"} for n, k in (("name", "string"), ("price", "number"))},
                ),
                _endpoint(
                    "set_item_state",
                    "PUT",
                    "/items/{id}/state",
                    {
                        "id": {"type": "integer", "param_type": "path"},
                        "state": {"type": "string", "param_type": "body"},
                    },
                ),
            ],
        }
    ]
}
CODE = """import os
from typing import Literal

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy import Column, Float, ForeignKey, Integer, String, create_engine, select
from sqlalchemy.orm import declarative_base, sessionmaker

DATABASE_PATH = os.getenv("DATABASE_PATH", "sqlite:///app.db")
engine = create_engine(DATABASE_PATH, connect_args={"check_same_thread": False})
SessionLocal = sessionmaker(bind=engine, expire_on_commit=False)
Base = declarative_base()
current_user_id = 1
app = FastAPI()


class User(Base):
    __tablename__ = "users"
    id = Column(Integer, primary_key=True)
    name = Column(String, nullable=False)


class Item(Base):
    __tablename__ = "items"
    id = Column(Integer, primary_key=True)
    user_id = Column(Integer, ForeignKey("users.id"), nullable=False)
    name = Column(String, nullable=False)
    state = Column(String, nullable=False, default="open")
    price = Column(Float, nullable=False)


class NewItem(BaseModel):
    name: str
    price: float


class State(BaseModel):
    state: Literal["open", "done"]


class Shown(BaseModel):
    id: int
    name: str
    state: str
    price: float


def shown(item):
    return Shown(id=item.id, name=item.name, state=item.state, price=item.price)


def mine(session, id):
    item = session.get(Item, id)
    if item is None or item.user_id != current_user_id:
        raise HTTPException(404, f"there is no item {id}")
    return item


@app.get("/items", operation_id="list_items", response_model=list[Shown])
async def list_items():
    with SessionLocal() as session:
        return [shown(i) for i in session.scalars(select(Item).where(Item.user_id == current_user_id))]


@app.get("/items/{id}", operation_id="get_item", response_model=Shown)
async def get_item(id: int):
    with SessionLocal() as session:
        return shown(mine(session, id))


@app.post("/items", operation_id="create_item", response_model=Shown)
async def create_item(body: NewItem):
    with SessionLocal() as session:
        item = Item(user_id=current_user_id, name=body.name, price=body.price, state="open")
        session.add(item)
        session.commit()
        return shown(item)


@app.put("/items/{id}/state", operation_id="set_item_state", response_model=Shown)
async def set_item_state(id: int, body: State):
    with SessionLocal() as session:
        item = mine(session, id)
        item.state = body.state
        session.commit()
        return shown(item)
"""

_OPEN = """    import sqlite3

    def rows(path, sql, *values):
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            return connection.execute(sql, values).fetchall()
        finally:
            connection.close()

"""


def verifier(task: str, mode: str) -> str:
    """A right verifier of one of the tasks."""
    name = {"code": "verify_task_completion", "sql": "verify_task"}[mode]
    head = f"def {name}(initial_db_path, final_db_path, final_answer=None):\n{_OPEN}"
    quoted = re.search(r'"(.*?)"', task)
    if mode == "sql":
        return head + "    return {'items': rows(final_db_path, 'SELECT id, name, state FROM items')}\n"
    if quoted is None:
        total = "    total = rows(initial_db_path, 'SELECT sum(price) FROM items WHERE user_id = 1')[0][0]\n"
        return (
            head + total + "    return {'result': 'complete' if f'{total:g}' in (final_answer or '') else 'others'}\n"
        )
    state = "done" if task.startswith("Mark") else "open"
    find = f"'SELECT 1 FROM items WHERE name = ? AND state = ?', {quoted.group(1)!r}, {state!r}"
    return head + (
        f"    done = rows(final_db_path, {find}) and not rows(initial_db_path, {find})\n"
        "    return {'result': 'complete' if done else 'others'}\n"
    )
