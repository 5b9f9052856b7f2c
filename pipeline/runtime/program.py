"""Loads a generated FastAPI program: its source runs as it is, once, and then answers calls for any instance."""

from __future__ import annotations

import ast
import contextlib
import sqlite3
import sys
import types
import warnings
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from fastapi import FastAPI
from sqlalchemy.orm import configure_mappers

from pipeline.findings import Finding
from pipeline.runtime import substitutes
from pipeline.runtime.build import build
from pipeline.runtime.clock import Clock
from pipeline.runtime.database import Database, Stored, schema_key
from pipeline.runtime.dialect import needs_newer_python
from pipeline.runtime.listing import ToolRoute, list_tools
from pipeline.runtime.loop import InlineLoop
from pipeline.runtime.module_state import ModuleState
from pipeline.runtime.tools import Tool

LoadFault = Literal["syntax", "newer_python", "missing_module", "async_engine", "no_app", "exception"]


class LoadError(Exception):
    """A program cannot be loaded.

    `line` is the line of the generated source (None if none is to blame), `code_line` its text, `kind` the sort of
    fault. The message is a sentence.
    """

    def __init__(self, message: str, *, kind: LoadFault, line: int | None = None, code_line: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.line = line
        self.code_line = code_line


class AsyncEngineRefused(Exception):
    """The program asks for an asynchronous engine, which would need threads that a worker does not have."""


@dataclass(frozen=True)
class Program:
    """A loaded program.

    `start` is the database after the program's own `create_all` and start-up code; `tables_added` are the tables
    that these made and the DDL lacks. `findings` says what is remarkable about its routes and state.
    """

    name: str
    source: str
    app: FastAPI
    routes: Mapping[str, ToolRoute]
    start: Stored
    tables_added: tuple[str, ...]
    findings: tuple[Finding, ...]
    filename: str
    clock: Clock = field(repr=False)
    database: Database = field(repr=False)
    loop: InlineLoop = field(repr=False)
    state: ModuleState = field(repr=False)
    lifespan: Any = field(repr=False)
    """The context that the start-up code is in; it is never left, since the app is never shut down."""

    @property
    def template(self) -> bytes:
        """The database that instances start from."""
        return self.start.snapshot

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools, in upstream's order."""
        return tuple(entry.tool for entry in self.routes.values())

    def line_of(self, error: BaseException) -> int | None:
        """The innermost line of the generated source that an exception passed through."""
        return _innermost_line(error, self.filename)

    def code_line(self, line: int | None) -> str:
        """A line of the source, stripped."""
        return _line_text(self.source, line)


def load(source: str, *, name: str, template: bytes, now: datetime | None, foreign_keys: bool = False) -> Program:
    """Run a generated program's source and prepare it for calls.

    `template` is the database it finds (none: an empty one), `now` its pinned time (None: the machine's clock).
    Engines, clocks and servers are replaced as it imports them. Raises LoadError.
    """
    filename = f"<{name}>"
    clock = Clock(now)
    found = template or build((), (), now=now).snapshot
    database = Database(clock, Stored(found, schema_key(found)), foreign_keys=foreign_keys)
    loop = InlineLoop()
    module = types.ModuleType(f"awm_program_{name}")
    module.__file__ = filename
    vars(module)["__builtins__"] = substitutes.program_builtins(
        {
            **substitutes.clock_modules(clock),
            **substitutes.server_modules(),
            **substitutes.database_modules(database.create_engine, database.connect, _refuse_async),
        }
    )
    sys.modules[module.__name__] = module  # pydantic and pickle look names up there
    with _load_errors(source, filename), _quiet():
        tree = ast.parse(source, filename)
        exec(compile(tree, filename, "exec"), vars(module))
        app = _app_of(module)
        with contextlib.suppress(Exception):  # what is wrong with the models, the calls that use them will say
            configure_mappers()
        lifespan = loop.run(_start(app))
        routes, findings = list_tools(app, tree)
        database.finish()
        start = database.state()
        added = _tables(start.snapshot) - _tables(found)
        state = ModuleState(module, app.state._state, tree)
    return Program(
        name=name,
        source=source,
        app=app,
        routes={entry.tool.name: entry for entry in routes},
        start=start,
        tables_added=tuple(sorted(added)),
        findings=(*findings, *state.findings, *map(_other_database, sorted(database.written_for))),
        filename=filename,
        clock=clock,
        database=database,
        loop=loop,
        state=state,
        lifespan=lifespan,
    )


def _other_database(kind: str) -> Finding:
    return Finding(
        code="other_database",
        severity="warn",
        where="code",
        message=f"the program is written for {kind}; it runs on SQLite here",
        remedy="make the engine from DATABASE_PATH, and keep to what SQLite can do",
    )


def _refuse_async(*_: Any, **__: Any) -> Any:
    raise AsyncEngineRefused("the program creates an asynchronous engine; only synchronous ones can be run")


def _app_of(module: types.ModuleType) -> FastAPI:
    app = vars(module).get("app")
    if not isinstance(app, FastAPI):
        app = next((value for value in vars(module).values() if isinstance(value, FastAPI)), None)
    if app is None:
        raise LoadError("the program defines no FastAPI application (`app = FastAPI()`)", kind="no_app")
    app.debug = False  # with debug on, errors show tracebacks, which differ from run to run
    return app


async def _start(app: FastAPI) -> Any:
    """Run the app's start-up code, as a server does before its first request; gives the context that it is in."""
    context = app.router.lifespan_context(app)
    await context.__aenter__()
    return context


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    """Silence what programs written for older libraries make those say (`example=`, `on_event`, …)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _load_errors(source: str, filename: str) -> Generator[None]:
    """Turn whatever goes wrong while a program is loaded into a LoadError that names the line."""
    try:
        yield
    except LoadError:
        raise
    except SyntaxError as error:
        line = _syntax_line(error, source, filename)
        newer = error.filename == filename and needs_newer_python(source)
        raise LoadError(
            f"line {line}: {error.msg}"
            + (
                f": this is valid from Python {newer} on, and this worker runs {sys.version_info[0]}."
                f"{sys.version_info[1]}: set worker_python to a newer interpreter"
                if newer
                else ""
            ),
            kind="newer_python" if newer else "syntax",
            line=line,
            code_line=_line_text(source, line),
        ) from error
    except (Exception, SystemExit) as error:
        line = _innermost_line(error, filename)
        place = "" if line is None else f"line {line}: "
        raise LoadError(
            f"{place}{type(error).__name__}: {error}",
            kind=_fault(error),
            line=line,
            code_line=_line_text(source, line),
        ) from error


def _syntax_line(error: SyntaxError, source: str, filename: str) -> int | None:
    if "\0" in source:  # of which Python does not say where
        return source.count("\n", 0, source.index("\0")) + 1
    return error.lineno if error.filename == filename else _innermost_line(error, filename)


def _fault(error: BaseException) -> LoadFault:
    if isinstance(error, AsyncEngineRefused):
        return "async_engine"
    return "missing_module" if isinstance(error, ImportError) else "exception"


def _innermost_line(error: BaseException, filename: str) -> int | None:
    line = None
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == filename:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return line


def _line_text(source: str, line: int | None) -> str:
    lines = source.split("\n")
    return lines[line - 1].strip() if line is not None and 0 < line <= len(lines) else ""


def _tables(snapshot: bytes) -> set[str]:
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(snapshot)
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    finally:
        connection.close()
