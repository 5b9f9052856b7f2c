"""Programs loaded in the test's own process, without workers and without a sandbox: trusted ones only."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from pipeline.model import Environment
from pipeline.runtime.build import Build, build
from pipeline.runtime.engine import Engine
from pipeline.runtime.program import Program, load

NOW = datetime(2026, 3, 1, 8, 30, tzinfo=UTC)

_BUILDS: dict[str, Build] = {}
_PROGRAMS: dict[str, Program] = {}

HEAD = """
import os
from typing import Any, Dict, List, Optional
from datetime import datetime, date, timedelta
from fastapi import Body, FastAPI, HTTPException, Path, Query
from pydantic import BaseModel, Field
from sqlalchemy import Column, DateTime, Float, ForeignKey, Integer, String, create_engine, func, text
from sqlalchemy.orm import declarative_base, sessionmaker

engine = create_engine(os.getenv("DATABASE_PATH", "sqlite:///x.db"), connect_args={"check_same_thread": False})
SessionLocal = sessionmaker(autocommit=False, autoflush=False, bind=engine)
Base = declarative_base()
app = FastAPI()


class Item(Base):
    __tablename__ = "items"
    id = Column(Integer, primary_key=True)
    name = Column(String, unique=True)
    made_at = Column(DateTime, default=datetime.utcnow)


Base.metadata.create_all(engine)
"""
"""What generated programs begin with; `program` puts it before a test's own handlers."""


def program(handlers: str = "", *, head: str = HEAD, name: str = "sample", **options: Any) -> Program:
    """A program of one table `items` with the given handlers, on an empty database."""
    return load(head + textwrap.dedent(handlers), name=name, template=b"", now=options.pop("now", NOW), **options)


def engine(handlers: str = "", **options: Any) -> Engine:
    """An engine for such a program."""
    return Engine(program(handlers, **options))


def call(running: Engine, tool: str, *, state: int = 0, tick: int = 0, **arguments: Any) -> dict[str, Any]:
    """The reply of one call."""
    return running.call(state, tick, tool, arguments, timeout=10)[1]


def run(running: Engine, calls: Iterable[tuple[str, dict[str, Any]]], *, state: int = 0) -> tuple[int, list[str]]:
    """The state after calls made one after the other, and what an agent is shown of each."""
    texts = []
    for tick, (tool, arguments) in enumerate(calls):
        state, reply = running.call(state, tick, tool, arguments, timeout=10)
        texts.append(reply["text"])
    return state, texts


def built(environment: Environment) -> Build:
    """A real environment's database; built once for all tests."""
    if environment.name not in _BUILDS:
        _BUILDS[environment.name] = build(environment.schema, environment.sample, now=environment.now)
    return _BUILDS[environment.name]


def loaded(environment: Environment) -> Program:
    """A real environment's program on its database; loaded once, so tests share it, which must not matter."""
    if environment.name not in _PROGRAMS:
        assert environment.code is not None
        _PROGRAMS[environment.name] = load(
            environment.code, name=environment.name, template=built(environment).snapshot, now=environment.now
        )
    return _PROGRAMS[environment.name]
