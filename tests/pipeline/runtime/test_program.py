"""Generated programs load as they are, or say in which line they cannot."""

from __future__ import annotations

import gc
import sys

import pytest

from pipeline.model import TableSchema
from pipeline.runtime.build import build
from pipeline.runtime.engine import Engine
from pipeline.runtime.program import LoadError, load
from tests.pipeline.runtime.programs import NOW, call, engine, program

EMPTY = build([], [], now=NOW).snapshot


@pytest.mark.parametrize(
    "how",
    [
        "from sqlalchemy import create_engine\nengine = create_engine('sqlite:////srv/data/app.db', echo=True)",
        "from time import *\nfrom datetime import *\nfrom sqlalchemy import *\nColumn(DateTime, default=datetime.now)\n"
        "engine = create_engine('sqlite:///./app.db', pool_size=3, max_overflow=1)\nstrptime('1', '%d')",
        "import sqlalchemy\nengine = sqlalchemy.create_engine(url='sqlite:///app.db')",
        "import sqlalchemy as sa, sqlalchemy.orm\nengine = sa.engine.create_engine('sqlite://')",
        "from sqlalchemy.engine import create_engine\nengine = create_engine(\n    'sqlite:///app.db',\n    future=True,\n)",
        "from sqlalchemy.engine.create import create_engine as make\nengine = make('sqlite:///app.db')",
        "from sqlalchemy import engine_from_config\nengine = engine_from_config({'sqlalchemy.url': 'sqlite:///x.db'})",
        "def make():\n    from sqlalchemy import create_engine\n    return create_engine(os.environ['DATABASE_PATH'])\n"
        "engine = make()",
        "from sqlalchemy import create_engine\nfrom sqlalchemy.pool import StaticPool\n"
        "engine = create_engine('sqlite://', poolclass=StaticPool, connect_args={'check_same_thread': False})",
        "from sqlalchemy import create_engine\nengine = create_engine('postgresql+psycopg://kit@db/app')",
    ],
)
def test_every_way_to_make_an_engine_reaches_the_instances_database(how: str) -> None:
    running = Engine(
        load(
            f"""
import os
{how}
from fastapi import FastAPI
from sqlalchemy import text
app = FastAPI()

@app.get("/x", operation_id="x")
def x():
    with engine.connect() as connection:
        return connection.execute(text("SELECT x FROM t")).scalars().all()
""",
            name="engines",
            template=build([TableSchema("t", "CREATE TABLE t AS SELECT 7 AS x")], [], now=NOW).snapshot,
            now=NOW,
        )
    )
    assert call(running, "x")["body"] == [7]


def test_a_program_for_another_kind_of_database_runs_on_sqlite_and_is_reported() -> None:
    found = load(
        "from fastapi import FastAPI\nfrom sqlalchemy import create_engine\n"
        "engine = create_engine('postgresql://kit@db/app')\nother = create_engine('app.db')\napp = FastAPI()\n",
        name="other",
        template=EMPTY,
        now=NOW,
    )
    assert [(finding.code, "postgresql" in finding.message) for finding in found.findings] == [("other_database", True)]


def test_tables_that_the_program_makes_itself_are_named() -> None:
    made = program()
    assert made.tables_added == ("items",)
    there = load(made.source, name="again", template=made.template, now=NOW)
    assert there.tables_added == ()
    assert there.template == made.template


def test_start_up_code_runs_before_the_first_call() -> None:
    running = engine(
        """
        from contextlib import asynccontextmanager
        from fastapi import APIRouter

        READY = []

        @asynccontextmanager
        async def lifespan(app):
            session = SessionLocal()
            session.add(Item(name="made at start"))
            session.commit()
            yield
            session.add(Item(name="made at the end"))
            session.commit()

        app = FastAPI(lifespan=lifespan)

        @app.get("/items", operation_id="names")
        def names():
            return [item.name for item in SessionLocal().query(Item)]
        """
    )
    for _ in range(2):
        gc.collect()
        assert call(running, "names")["body"] == ["made at start"]
    older = engine(
        """
        @app.on_event("startup")
        async def seed():
            session = SessionLocal()
            session.add(Item(name="made at start"))
            session.commit()

        @app.get("/items", operation_id="names")
        def names():
            return [item.name for item in SessionLocal().query(Item)]
        """
    )
    assert call(older, "names")["body"] == ["made at start"]


@pytest.mark.parametrize(
    "ending",
    [
        "import uvicorn\nuvicorn.run(app, host='127.0.0.1', port=8000)",
        "from uvicorn import run\nrun(app)",
        "import uvicorn\nuvicorn.Server(uvicorn.Config(app, port=1)).run()",
        "if __name__ == '__main__':\n    raise RuntimeError('started as a script')",
        "import warnings\nwarnings.warn('old', DeprecationWarning)",
        "from typing import Optional\nfrom fastapi import Query\n@app.get('/q')\n"
        "def q(a: Optional[int] = Query(None, example=3, regex=None)):\n    return a",
    ],
)
def test_servers_do_not_start_and_old_habits_are_no_fault(ending: str, recwarn: pytest.WarningsRecorder) -> None:
    load(f"from fastapi import FastAPI\napp = FastAPI()\n{ending}\n", name="ending", template=EMPTY, now=NOW)
    assert not [warning for warning in recwarn if "ending" in str(warning.filename)]


def test_annotated_models_of_sqlalchemy_2_take_the_pinned_classes() -> None:
    running = engine(
        """
        from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

        class Declared(DeclarativeBase):
            pass

        class Event(Declared):
            __tablename__ = "events"
            id: Mapped[int] = mapped_column(primary_key=True)
            at: Mapped[datetime] = mapped_column(default=datetime.now)
            day: Mapped[Optional[date]] = mapped_column(server_default=func.current_date())

        Declared.metadata.create_all(engine)

        @app.post("/events", operation_id="add")
        def add():
            session = SessionLocal()
            event = Event()
            session.add(event)
            session.commit()
            return [event.at, event.day]
        """
    )
    assert call(running, "add", tick=1)["body"] == ["2026-03-01T08:30:01", "2026-03-01"]


def error_of(source: str) -> LoadError:
    with pytest.raises(LoadError) as caught:
        load(source, name="broken", template=EMPTY, now=NOW)
    return caught.value


@pytest.mark.parametrize(
    ("source", "kind", "line", "code_line", "message"),
    [
        ("x = 1\ndef f(:\n  pass", "syntax", 2, "def f(:", "invalid syntax"),
        ("x = 1\ny = (1,\n", "syntax", 2, "y = (1,", "'(' was never closed"),
        ("import nowhere_to_be_found", "missing_module", 1, "import nowhere_to_be_found", "nowhere_to_be_found"),
        ("from sqlalchemy import no_such_thing", "missing_module", 1, "", "no_such_thing"),
        ("def f():\n    return 1 / 0\n\nf()", "exception", 2, "return 1 / 0", "ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit(4)", "exception", 2, "sys.exit(4)", "SystemExit: 4"),
        ("x = 1", "no_app", None, "", "no FastAPI application"),
        ("", "no_app", None, "", "no FastAPI application"),
        (
            "from sqlalchemy.ext.asyncio import create_async_engine\n\n"
            "engine = create_async_engine('sqlite+aiosqlite:///x.db')",
            "async_engine",
            3,
            "engine = create_async_engine('sqlite+aiosqlite:///x.db')",
            "asynchronous engine",
        ),
        (
            "from sqlalchemy import Column, Integer\nfrom sqlalchemy.orm import declarative_base\n"
            "class T(declarative_base()):\n    __tablename__ = 't'\n    x = Column(Integer)\n",
            "exception",
            3,
            "class T(declarative_base()):",
            "could not assemble any primary key",
        ),
        ("x = '\0'", "syntax", 1, "x = ", "null bytes"),
        (
            "from fastapi import FastAPI\napp = FastAPI()\n\n@app.on_event('startup')\ndef start():\n    raise OSError('no')",
            "exception",
            6,
            "raise OSError('no')",
            "OSError: no",
        ),
    ],
)
def test_a_program_that_cannot_load_says_where_and_why(
    source: str, kind: str, line: int | None, code_line: str, message: str
) -> None:
    error = error_of(source)
    assert (error.kind, error.line) == (kind, line)
    assert code_line in error.code_line
    assert message in error.message
    assert line is None or error.message.startswith(f"line {line}: ")


def test_a_null_byte_is_told_with_its_line() -> None:
    error = error_of("name = 'a'\nother = 'b\0'\n")
    assert (error.kind, error.line, error.message) == (
        "syntax",
        2,
        "line 2: source code string cannot contain null bytes",
    )


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python has the f-strings of 3.12")
def test_what_only_a_newer_python_parses_says_so() -> None:
    error = error_of('from fastapi import FastAPI\napp = FastAPI()\nd = {"a": 1}\nx = f"{d["a"]}"\n')
    assert (error.kind, error.line) == ("newer_python", 4)
    assert "valid from Python 3.12 on" in error.message
    assert "worker_python" in error.message


def test_an_app_by_another_name_is_found() -> None:
    found = load("from fastapi import FastAPI\nservice = FastAPI()\n", name="other", template=EMPTY, now=NOW)
    assert found.tools == ()
