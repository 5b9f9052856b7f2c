"""What went wrong behind an "Internal Server Error", for people and for checks."""

from __future__ import annotations

from typing import Any

from fastapi.exceptions import ResponseValidationError
from sqlalchemy import exc
from sqlalchemy.orm import exc as orm_exc

from pipeline.runtime.program import Program

MISFITS = 3
"""Places of a result that an error names; a long list of rows may not fit in each of them."""

_CAUSES: tuple[tuple[str, type[BaseException] | tuple[type[BaseException], ...]], ...] = (
    ("integrity", exc.IntegrityError),
    ("missing_row", exc.NoResultFound),
    ("detached", orm_exc.DetachedInstanceError),
    ("response", ResponseValidationError),
    ("wrong_type", (exc.StatementError, TypeError, ValueError)),
    ("database", (exc.SQLAlchemyError,)),
)


def server_error(program: Program, error: BaseException | None, content: str) -> dict[str, Any]:
    """The structured error of a reply: which exception, where in the generated code, and the sort of cause.

    Causes: `integrity` (a constraint), `missing_row` (used a row that is not there), `detached` (read an object after
    its session closed), `response` (the result does not fit the declared model), `wrong_type`, `database` (SQL that
    failed), `code` (anything else), `answered` (the handler itself answered with a 5xx status).
    """
    if error is None:
        return {"kind": "server_error", "message": content, "detail": {"cause": "answered"}}
    line = program.line_of(error)
    original = getattr(error, "orig", None) or error
    message = _misfits(original) if isinstance(original, ResponseValidationError) else _first_line(str(original))
    place = "" if line is None else f" (line {line} of the code)"
    return {
        "kind": "server_error",
        "message": f"{type(original).__name__}: {message}{place}",
        "detail": {
            "cause": _cause(error),
            "exception": f"{type(original).__module__}.{type(original).__qualname__}",
            "message": message,
            "line": line,
            "code_line": program.code_line(line),
        },
    }


def _cause(error: BaseException) -> str:
    if isinstance(error, AttributeError) and "'NoneType' object" in str(error):
        return "missing_row"
    if isinstance(error, exc.OperationalError | exc.ProgrammingError):
        return "database"
    return next((cause for cause, kinds in _CAUSES if isinstance(error, kinds)), "code")


def _misfits(error: ResponseValidationError) -> str:
    """Where a result does not fit the declared model: the first few places, as pydantic names them."""
    found = [f"{'.'.join(map(str, one['loc'][1:])) or 'the result'}: {one['msg']}" for one in error.errors()]
    more = f" (and {len(found) - MISFITS} more)" if len(found) > MISFITS else ""
    return "; ".join(found[:MISFITS]) + more


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else ""
