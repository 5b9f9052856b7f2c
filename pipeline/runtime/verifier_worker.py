"""Runs one verifier, in a process of its own in which no other generated code has run.

Verifiers are functions of (initial database path, final database path, final answer). Upstream runs them over
files; here the paths open copies in memory, and real files (read only) are written only for code that does more with
its paths than connecting to them. What upstream tolerates in signatures is tolerated.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import reprlib
import sqlite3
import time
import types
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

from pipeline.runtime import landlock
from pipeline.runtime.clock import Clock, pin_sql_time
from pipeline.runtime.substitutes import clock_modules, program_builtins
from pipeline.runtime.time_limit import TimeLimit, time_limit
from pipeline.runtime.traced_sqlite import MEMORY, Databases

SOURCE_NAME = "<verifier>"
FUNCTIONS = ("verify_task_completion", "verify_task")
"""The names upstream's prompts ask for, in code mode and in sql mode."""

INITIAL, FINAL = "initial", "final"

NEEDS_NO_FILES = frozenset(
    {
        "__future__",
        "base64",
        "collections",
        "copy",
        "csv",
        "dataclasses",
        "datetime",
        "decimal",
        "difflib",
        "functools",
        "hashlib",
        "html",
        "io",
        "itertools",
        "json",
        "math",
        "operator",
        "random",
        "re",
        "sqlite3",
        "string",
        "textwrap",
        "time",
        "typing",
        "unicodedata",
        "uuid",
        "zoneinfo",
    }
)
"""Modules that do nothing with a path but `sqlite3.connect`. Verifiers that import others get real files."""
FILE_NAMES = frozenset({"open", "os", "exec", "eval", "compile", "__import__"})
FILE_SQL = re.compile(r"\b(attach|temp|temporary)\b", re.IGNORECASE)
"""SQL that a copy in memory would answer differently: another database by path, or a temporary table."""

SQLITE_HEADER = b"SQLite format 3\0"
WAL_VERSION_BYTES = slice(18, 20)
ROLLBACK_JOURNAL = b"\x01\x01"
"""File format versions: a database in WAL mode (2, 2) cannot be opened read only or in memory, one without can."""

TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"
CONSTRAINT_REPORTS = ("CHECK constraint failed", "NULL value in", "non-unique entry")
"""What `integrity_check` says about rows, not about damage to the file."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 200

_encode = json.JSONEncoder(default=str).encode


@dataclass(frozen=True, slots=True)
class Task:
    """What a verifier judges. `mode` is `code` or `sql`; `now` the time it sees."""

    code: str
    mode: str
    initial: bytes
    final: bytes
    answer: str | None
    now: datetime
    timeout_s: float


class JudgeError(Exception):
    """The verifier gave no verdict; the message says why."""


def judge(task: Task, folder: Path) -> dict[str, Any]:
    """Run a verifier once. Returns `verdict`, `evidence` (JSON text or None), `error`, `queries`, `reads`, `said`.

    `folder` is private to this process, whose write access is gone afterwards. `again` in the result tells whether
    the process can judge once more all the same; a verifier that was given files has used it up.
    """
    databases: Databases | None = None
    verdict, evidence, error, said = "judge_error", None, None, None
    again = True
    try:
        snapshots = {INITIAL: _readable(task.initial, INITIAL), FINAL: _readable(task.final, FINAL)}
        clock = Clock(task.now)
        _check_databases(snapshots, clock, task.timeout_s)
        compiled = _compile(task.code)
        paths = {str(folder / f"{label}.db"): label for label in snapshots}
        in_memory = not needs_files(task.code)
        if not in_memory:
            again = False
            _write_files(folder, snapshots)
        with suppress(OSError):  # without Landlock there is nothing more to take away
            landlock.forbid_writing()
        deadline = time.monotonic() + task.timeout_s
        databases = Databases(paths, snapshots if in_memory else {}, clock, deadline=deadline)
        result = _run(task, compiled, databases, clock, list(paths))
        verdict, evidence = _verdict(task.mode, result)
        said = verdict
        if failed := next((s for s in databases.statements if not s["ok"]), None):
            error = f"A statement failed on the {failed['db']} database and the verifier went on: {_shown(failed)}"
            verdict = "judge_error" if task.mode == "code" else verdict
    except JudgeError as reason:
        verdict, error = "judge_error", str(reason)
    return {
        "verdict": verdict,
        "evidence": evidence,
        "error": error,
        "queries": databases.statements if databases else [],
        "reads": sorted(databases.reads) if databases else [],
        "said": said if task.mode == "code" else None,
        "again": again,
    }


@lru_cache(maxsize=1)
def needs_files(code: str) -> bool:
    """Whether a verifier does anything with its paths but connect to them with sqlite3 (when in doubt: yes)."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Import(names=names):
                modules = {alias.name.partition(".")[0] for alias in names}
            case ast.ImportFrom(module=module):
                modules = {(module or "").partition(".")[0]}
            case ast.Name(id=name) if name in FILE_NAMES:
                return True
            case ast.Attribute(attr="open"):
                return True
            case ast.Constant(value=str(text)) if FILE_SQL.search(text):
                return True
            case _:
                continue
        if modules - NEEDS_NO_FILES:
            return True
    return False


def _readable(snapshot: bytes, label: str) -> bytes:
    if not snapshot.startswith(SQLITE_HEADER):
        raise JudgeError(f"The {label} database is not a SQLite database ({len(snapshot)} bytes).")
    if snapshot[WAL_VERSION_BYTES] == ROLLBACK_JOURNAL:
        return snapshot
    patched = bytearray(snapshot)
    patched[WAL_VERSION_BYTES] = ROLLBACK_JOURNAL
    return bytes(patched)


def _check_databases(snapshots: Mapping[str, bytes], clock: Clock, timeout_s: float) -> None:
    tables = {}
    for label, snapshot in snapshots.items():
        with closing(sqlite3.connect(MEMORY)) as connection:
            connection.deserialize(snapshot)
            pin_sql_time(connection, clock)
            deadline = time.monotonic() + timeout_s
            connection.set_progress_handler(lambda until=deadline: time.monotonic() > until, 100_000)
            try:
                reports = [row[0] for row in connection.execute("PRAGMA integrity_check")]
                tables[label] = {
                    row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
                }
            except sqlite3.Error as error:
                raise JudgeError(f"The {label} database is damaged: {error}.") from error
        for report in reports:
            if report != "ok" and not report.startswith(CONSTRAINT_REPORTS):
                raise JudgeError(f"The {label} database is damaged: {report}")
    if lost := sorted(tables[INITIAL] - tables[FINAL]):
        raise JudgeError(f"The final database lacks tables of the initial one: {', '.join(lost)}.")


@lru_cache(maxsize=1)
def _compile(code: str) -> types.CodeType:
    try:
        return compile(code, SOURCE_NAME, "exec")
    except SyntaxError as error:
        line = f" (line {error.lineno}: `{(error.text or '').strip()}`)" if error.lineno else ""
        raise JudgeError(f"The verifier is not Python: {error.msg}{line}") from error
    except (ValueError, RecursionError, MemoryError) as error:  # NUL characters; nesting too deep to compile
        raise JudgeError(f"The verifier cannot be compiled: {error or type(error).__name__}") from error


def _write_files(folder: Path, snapshots: Mapping[str, bytes]) -> None:
    for label, snapshot in snapshots.items():
        path = folder / f"{label}.db"
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
            with os.fdopen(handle, "wb") as file:
                file.write(snapshot)
        except OSError as error:
            size = f"{len(snapshot) / 1e6:.1f} MB"
            raise JudgeError(f"The {label} database ({size}) cannot be given as a file: {error.strerror}.") from error


def _run(task: Task, code: types.CodeType, databases: Databases, clock: Clock, paths: list[str]) -> Any:
    modules = clock_modules(clock)
    namespace = {
        "__name__": "verifier",
        "__builtins__": program_builtins(modules),
        # Upstream's verifiers find these without importing them.
        **{"sqlite3": sqlite3, "json": json, "re": re, "os": modules["os"]},
    }
    try:
        with _sqlite3_opening(databases), time_limit(task.timeout_s):
            exec(code, namespace)
            function = find_function(namespace)
            result = call_verifier(function, *paths, task.answer or "")
    except JudgeError:
        raise
    except TimeLimit as error:
        if databases.interrupted:  # its alarm came while it got over that
            raise JudgeError(f"The verifier's SQL was stopped after {task.timeout_s:g} s.") from error
        raise JudgeError(f"The verifier was stopped after {task.timeout_s:g} s{_where(error, task.code)}.") from error
    except BaseException as error:
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise JudgeError(f"{said}{_where(error, task.code)}") from error
    if databases.expired():
        raise JudgeError(f"The verifier's SQL was stopped after {task.timeout_s:g} s.")
    return result


@contextmanager
def _sqlite3_opening(databases: Databases) -> Generator[None]:
    """While this lasts, `sqlite3` opens a verifier's databases."""
    real = {"connect": sqlite3.connect, "Connection": sqlite3.Connection}
    modules = (sqlite3, sqlite3.dbapi2)
    for module in modules:
        vars(module).update(connect=databases.connect, Connection=databases.factory)
    try:
        yield
    finally:
        for module in modules:
            vars(module).update(real)


def find_function(namespace: Mapping[str, Any]) -> Callable[..., Any]:
    """The verifier's function: by upstream's names, else the first `verify_…`, else the only one there is.

    Raises JudgeError where none fits.
    """
    own = {
        name: value
        for name, value in namespace.items()
        if isinstance(value, types.FunctionType) and value.__code__.co_filename == SOURCE_NAME
    }
    named = [name for name in FUNCTIONS if name in own] or [name for name in own if name.startswith("verify_")]
    if named or len(own) == 1:
        return own[next(iter(named or own))]
    there = f"there are {', '.join(own)}" if own else "there is none"
    raise JudgeError(f"The verifier has no function verify_task_completion or verify_task; {there}.")


def call_verifier(function: Callable[..., Any], initial: str, final: str, answer: str) -> Any:
    """Call a verifier whatever its parameters are called and in whatever order they come.

    A name that says which value it wants gets that one; the rest get what is left, in the usual order; parameters
    with a default that nothing is left for keep it. Raises JudgeError where a parameter would stay empty.
    """
    values = {"initial": initial, "final": final, "answer": answer}
    parameters = inspect.signature(function).parameters.values()
    single = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    wanted = {parameter.name: meaning_of(parameter.name) for parameter in single}
    left = [name for name in values if name not in wanted.values()]
    positional, named = [], {}
    for parameter in single:
        meaning = wanted[parameter.name] or (left.pop(0) if left else None)
        if meaning is None:
            if parameter.default is parameter.empty:
                raise JudgeError(f"The verifier asks for {parameter.name!r}, which is none of what it is given.")
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(values[meaning])
        else:
            named[parameter.name] = values[meaning]
    if not single:
        positional = list(values.values())
    return function(*positional, **named)


def meaning_of(parameter: str) -> str | None:
    """Which value a parameter of that name wants: `initial`, `final`, `answer`, or None where it does not say."""
    words = set(parameter.lower().split("_"))
    if words & {"answer", "response", "output", "message", "reply"}:
        return "answer"
    if words & {"initial", "init", "before", "original", "start", "old", "seed"}:
        return "initial"
    if words & {"final", "after", "end", "new", "current"}:
        return "final"
    return None


def _verdict(mode: str, result: Any) -> tuple[str, str | None]:
    """The verdict and, in sql mode, the evidence as JSON text. Raises JudgeError for anything else than those."""
    if not isinstance(result, dict):
        raise JudgeError(f"The verifier returned {_brief(result)}, not a dict.")
    if result.get("execution_status") == "error":  # how upstream's verifiers say that they could not judge
        raise JudgeError(f"The verifier reports an error: {_brief(result.get('error_message'))}")
    if mode == "sql":
        try:
            return "evidence", _encode(result)
        except (TypeError, ValueError, RecursionError) as error:
            raise JudgeError(f"The verifier's evidence cannot be written as JSON: {error}") from error
    word = result.get("result")
    if isinstance(word, str) and len(word) < 100 and (said := word.strip().lower()) in ("complete", "others"):
        return said, None
    raise JudgeError(f"The verifier returned {_brief(result)}; its 'result' is neither 'complete' nor 'others'.")


def _where(error: BaseException, code: str) -> str:
    """` (line 12: `…`)`: the last line of the verifier that the error passed through."""
    lines = [number for frame, number in _frames(error) if frame == SOURCE_NAME]
    if not lines:
        return ""
    source = code.splitlines()
    text = source[lines[-1] - 1].strip() if lines[-1] <= len(source) else ""
    return f" (line {lines[-1]}: `{text}`)"


def _frames(error: BaseException) -> list[tuple[str, int]]:
    frames, step = [], error.__traceback__
    while step is not None:
        frames.append((step.tb_frame.f_code.co_filename, step.tb_lineno))
        step = step.tb_next
    return frames


def _shown(statement: Mapping[str, Any]) -> str:
    return f"{' '.join(statement['sql'].split())} ({statement['error']})"


def _brief(value: Any) -> str:
    return _SHORT.repr(value)
