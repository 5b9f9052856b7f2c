"""Small workspaces for the studio's tests: an airline that can be called, and others to list."""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.catalog import Catalog
from pipeline.model import Author, AuthorKind, Cost, Part

BY_TEST = Author(AuthorKind.blueprint, "travel")

AIRLINE_CODE = """
from fastapi import FastAPI, HTTPException, Query
from pydantic import BaseModel, Field
from sqlalchemy import Column, ForeignKey, Integer, String, create_engine
from sqlalchemy.orm import declarative_base, sessionmaker

app = FastAPI(title="Airline")
engine = create_engine("sqlite:///airline.db")
Session = sessionmaker(bind=engine)
Base = declarative_base()


class Bag(Base):
    __tablename__ = "bags"
    id = Column(Integer, primary_key=True)
    owner = Column(String, nullable=False)
    status = Column(String, nullable=False)


class Claim(Base):
    __tablename__ = "claims"
    id = Column(Integer, primary_key=True)
    bag_id = Column(Integer, ForeignKey("bags.id"), nullable=False)
    amount = Column(Integer, nullable=False)


class NewClaim(BaseModel):
    bag_id: int = Field(description="The bag that was lost")
    amount: int = Field(100, ge=1, le=1000, description="Compensation in euros")


@app.get("/bags", operation_id="list_bags", summary="List bags", tags=["bags"])
async def list_bags(status: str | None = Query(None, description="Only bags with this status")):
    session = Session()
    query = session.query(Bag)
    if status is not None:
        query = query.filter(Bag.status == status)
    return [{"id": bag.id, "owner": bag.owner, "status": bag.status} for bag in query.order_by(Bag.id)]


@app.post("/claims", operation_id="create_claim", summary="Claim a lost bag", tags=["claims"])
async def create_claim(claim: NewClaim):
    session = Session()
    bag = session.get(Bag, claim.bag_id)
    if bag is None:
        raise HTTPException(404, "There is no such bag")
    bag.status = "claimed"
    made = Claim(bag_id=bag.id, amount=claim.amount)
    session.add(made)
    session.commit()
    return {"id": made.id, "bag_id": made.bag_id, "amount": made.amount}


@app.get("/broken", operation_id="break_down", summary="Always fails", tags=["faults"])
async def break_down():
    raise RuntimeError("the conveyor is stuck")


@app.get("/forever", operation_id="wait_forever", summary="Never answers", tags=["faults"])
async def wait_forever():
    while True:
        pass
"""

AIRLINE_SCHEMA = {
    "tables": [
        {
            "name": "bags",
            "ddl": "CREATE TABLE bags (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, status TEXT NOT NULL)",
            "indexes": [],
        },
        {
            "name": "claims",
            "ddl": "CREATE TABLE claims (id INTEGER PRIMARY KEY, bag_id INTEGER NOT NULL REFERENCES bags(id), "
            "amount INTEGER NOT NULL DEFAULT 100)",
            "indexes": [],
        },
    ]
}

AIRLINE_ROWS = [
    "INSERT INTO bags VALUES (1, 'Ada Lovelace', 'arrived')",
    "INSERT INTO bags VALUES (2, 'Grace Hopper', 'lost')",
    "INSERT INTO bags VALUES (3, '陳美玲 🧳', 'lost')",
]

AIRLINE_VERIFIER = """
def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
    import sqlite3

    rows = sqlite3.connect(final_db_path).execute("SELECT amount FROM claims WHERE bag_id = 2").fetchall()
    return {"result": "complete" if rows == [(250,)] else "others"}
"""

AIRLINE_TASKS = [
    "Claim 250 euros for the bag of Grace Hopper.",
    "How many bags are lost?",
]


def airline(catalog: Catalog) -> None:
    """An environment with everything: two tables, four tools, two tasks, a verifier."""
    title = "Airline: lost baggage"
    put = {
        Part.scenario: {"name": "airline_lost_baggage", "description": "A desk for bags that did not arrive."},
        Part.tasks: AIRLINE_TASKS,
        Part.schema: AIRLINE_SCHEMA,
        Part.sample: {"tables": [{"table_name": "bags", "insert_statements": AIRLINE_ROWS}]},
        Part.spec: {"api_groups": [{"group_name": "Bags", "endpoints": [
            {"operation_id": name, "method": "GET", "path": f"/{name}", "summary": name}
            for name in ("list_bags", "create_claim", "break_down", "wait_forever")
        ]}]},
    }  # fmt: skip
    for part, content in put.items():
        catalog.put("airline_lost_baggage", part, json.dumps(content), author=BY_TEST, title=title, domain="travel")
    catalog.put("airline_lost_baggage", Part.code, AIRLINE_CODE, author=BY_TEST, cost=Cost(1200, 3400, 0.05, 41.0))
    catalog.put("airline_lost_baggage", Part.verifier, AIRLINE_VERIFIER, slot="0/code", author=BY_TEST)


def named(catalog: Catalog, name: str, title: str, *, domain: str, tables: int, check: str | None = None) -> None:
    """An environment with a database and tasks and nothing to call."""
    schema = {
        "tables": [{"name": f"t{n}", "ddl": f"CREATE TABLE t{n} (id INTEGER)", "indexes": []} for n in range(tables)]
    }
    catalog.put(name, Part.scenario, json.dumps({"name": title, "description": f"About {title}."}), author=BY_TEST,
                title=title, domain=domain)  # fmt: skip
    catalog.put(name, Part.schema, json.dumps(schema), author=BY_TEST)
    catalog.put(name, Part.tasks, json.dumps(["Do it."]), author=BY_TEST)
    if check:
        finding = {"code": "foreign_key_broken", "severity": "error" if check == "fail" else "warn", "where": "schema: t3",
                   "message": "3 rows refer to rows that do not exist.", "evidence": "t0.id = 7",
                   "remedy": "Insert the rows they refer to.", "tasks": [0]}  # fmt: skip
        document = {"name": name, "status": check, "tables": tables, "rows": 0, "tools": None,
                    "findings": [] if check == "pass" else [finding]}  # fmt: skip
        catalog.set_check(name, check, json.dumps(document), "key")


def fill(folder: Path) -> Path:
    """A workspace with the airline and three others."""
    folder.mkdir(parents=True, exist_ok=True)
    with Catalog.open(folder / "catalog.db") as catalog, catalog.bulk():
        airline(catalog)
        named(catalog, "museum_loans", "Museum loans", domain="culture", tables=12, check="fail")
        named(catalog, "bike_fleet", "Bike fleet", domain="travel", tables=5, check="pass")
        named(catalog, "film_festival", "Film 陳美玲 🎬 festival", domain="culture", tables=3, check="warn")
    return folder


def fill_many(folder: Path, number: int) -> Path:
    """A workspace with so many environments to list."""
    folder.mkdir(parents=True, exist_ok=True)
    domains = ("travel", "culture", "food", "health")
    with Catalog.open(folder / "catalog.db") as catalog, catalog.bulk():
        for n in range(number):
            description = json.dumps({"name": f"scenario {n}", "description": "One of many."})
            name = f"scenario_{n}"
            catalog.put(
                name, Part.scenario, description, author=BY_TEST, title=f"Scenario {n:05}", domain=domains[n % 4]
            )
    return folder
