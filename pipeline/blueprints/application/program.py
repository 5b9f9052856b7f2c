"""The FastAPI application of a variant: SQLAlchemy models, pydantic models, and one handler an operation."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.blueprints.application.handlers import detail_labels, handler, python_type
from pipeline.blueprints.application.interface import Endpoint, described, result_entity
from pipeline.blueprints.language.domain import Domain, Entity, Field
from pipeline.blueprints.tasks.wording import spoken
from pipeline.blueprints.verifiers.goal_source import quoted

HEAD = '''\
"""{title}.

Made by rules from the blueprint domain "{domain}" of awm-studio; no model wrote it.
"""

import os
from datetime import date, datetime, timedelta
from typing import List, Literal, Optional

from fastapi import Body, FastAPI, HTTPException, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Boolean, Column, Date, DateTime, Float, ForeignKey, Integer, String, create_engine
from sqlalchemy.orm import declarative_base, relationship, sessionmaker

DATABASE_PATH = os.getenv("DATABASE_PATH", "sqlite:///{name}.db")
engine = create_engine(DATABASE_PATH, connect_args={{"check_same_thread": False}})
SessionLocal = sessionmaker(bind=engine, expire_on_commit=False)
Base = declarative_base()

CURRENT_USER_ID = 1


def found(session, model, number, noun):
    """The row with this id, or a 404 that says what is missing."""
    row = session.get(model, number)
    if row is None:
        raise HTTPException(status_code=404, detail=f"There is no {{noun}} with id {{number}}.")
    return row
'''

NEXT_CODE = '''

def next_code(session, column, prefix, digits):
    """The code after the highest one there is."""
    numbers = [int(code[len(prefix):]) for (code,) in session.query(column)]
    return f"{prefix}{max(numbers, default=0) + 1:0{digits}d}"
'''

AVERAGE = '''

def average(values):
    """The mean of some values, or None of none."""
    values = list(values)
    return sum(values) / len(values) if values else None
'''

TAIL = """

if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host=os.getenv("HOST", "127.0.0.1"), port=int(os.getenv("PORT", "8000")))
"""

ORM_TYPES = {
    "row": "Integer",
    "int": "Integer",
    "money": "Float",
    "real": "Float",
    "bool": "Boolean",
    "date": "Date",
    "stamp": "DateTime",
}


def application(domain: Domain, offered: Iterable[Endpoint], *, name: str, title: str) -> str:
    """The source of the application."""
    offered = tuple(offered)
    entities = domain.entities.values()
    body = "".join(
        (
            *(_model(domain, entity) for entity in entities),
            f"\n\napp = FastAPI(title={quoted(title)})\n",
            *(_shapes(domain, entity, offered) for entity in entities),
            *(handler(domain, endpoint) for endpoint in offered),
        )
    )
    return "".join(
        (
            HEAD.format(title=title, domain=domain.name, name=name),
            NEXT_CODE if "next_code(" in body else "",
            AVERAGE if "average(" in body else "",
            body,
            TAIL,
        )
    )


def _model(domain: Domain, entity: Entity) -> str:
    lines = [f"\n\nclass {entity.model}(Base):", f'    __tablename__ = "{entity.table}"', ""]
    lines.append("    id = Column(Integer, primary_key=True)")
    lines += [f"    {one.column} = {_column(domain, one)}" for one in entity.fields.values()]
    for one in entity.fields.values():
        if one.reference:
            target = domain.entities[one.reference]
            remote = ", remote_side=[id]" if target is entity else ""
            lines.append(f'    {one.word} = relationship("{target.model}", foreign_keys=[{one.column}]{remote})')
    return "\n".join(lines) + "\n"


def _column(domain: Domain, one: Field) -> str:
    kind = one.notation.kind
    words = [ORM_TYPES.get(kind.base, "String")]
    if one.reference:
        words.append(f'ForeignKey("{domain.entities[one.reference].table}.id")')
    if one.notation.unique:
        words.append("unique=True")
    if not kind.nullable:
        words.append("nullable=False")
    if one.notation.form == "stamp":
        words.append("default=datetime.utcnow")
    return f"Column({', '.join(words)})"


def _shapes(domain: Domain, entity: Entity, offered: Iterable[Endpoint]) -> str:
    """The pydantic models that rows of an entity, a page of them and one in detail are given back as."""
    lines = [f"\n\nclass {entity.model}Out(BaseModel):", "    model_config = ConfigDict(from_attributes=True)", ""]
    lines.append(f'    id: int = Field(..., description="Id of the {entity.noun}")')
    for one in entity.fields.values():
        default = "None" if one.notation.kind.nullable else "..."
        words = quoted(described(domain, one))
        lines.append(f"    {one.column}: {python_type(one.notation.kind)} = Field({default}, description={words})")
    forms = {endpoint.form for endpoint in offered if result_entity(domain, endpoint) == entity.name}
    if forms & {"list", "find"}:
        lines += [
            f"\n\nclass {entity.model}Page(BaseModel):",
            f'    total: int = Field(..., description="How many {entity.nouns} fit, before paging")',
            f"    {entity.table}: List[{entity.model}Out]",
        ]
    labels = detail_labels(domain, entity)
    if "get" in forms and labels:
        lines.append(f"\n\nclass {entity.model}Detail({entity.model}Out):")
        for name, one, label in labels:
            words = f"The {spoken(label.word)} of the {domain.entities[one.reference or ''].noun}"
            lines.append(f"    {name}: Optional[str] = Field(None, description={quoted(words)})")
    return "\n".join(lines) + "\n"
