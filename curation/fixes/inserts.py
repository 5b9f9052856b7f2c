"""INSERT statements as text: which rows they hold, and the same statement without one of them. Nothing is run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/|[(),]|[^'\"`\[(),/-]+|.", re.S
)
_VALUES = re.compile(r"\bVALUES\s*$", re.I)
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")

UNKNOWN = object()
"""A value that only SQLite can work out."""


@dataclass(frozen=True, slots=True)
class InsertedRow:
    """One row of an INSERT: where it stands in the statement, brackets included, and its values as they are written."""

    start: int
    end: int
    values: tuple[str, ...]

    def is_row(self, columns: Sequence[str], row: Mapping[str, Any]) -> bool:
        """Whether it makes this row, as far as its plain values tell; `columns` name the values in order."""
        if len(columns) != len(self.values):
            return False
        known = [
            (value, row[column])
            for column, text in zip(columns, self.values, strict=True)
            if column in row and (value := literal(text)) is not UNKNOWN
        ]
        return bool(known) and all(_same(written, kept) for written, kept in known)


def inserted(statement: str) -> tuple[tuple[str, ...], list[InsertedRow]]:
    """The columns that an INSERT names (none: the table's own, in order) and its rows. No rows for other statements."""
    columns: tuple[str, ...] = ()
    rows: list[InsertedRow] = []
    depth = start = piece = 0
    pieces: list[str] = []
    in_values = False
    for token in _TOKEN.finditer(statement):
        text = token.group()
        if text == "(":
            depth += 1
            if depth == 1:
                start, piece, pieces = token.start(), token.end(), []
        elif text in ",)" and depth == 1:
            pieces.append(statement[piece : token.start()].strip())
            piece = token.end()
        if text == ")":
            depth -= 1
            if depth == 0 and in_values:
                rows.append(InsertedRow(start, token.end(), tuple(pieces)))
            elif depth == 0:
                columns = tuple(name.strip("\"`[]' ") for name in pieces)
        elif depth == 0 and _VALUES.search(text):
            in_values = True
        elif depth == 0 and in_values and text.strip() not in ("", ",", ";"):
            break  # ON CONFLICT, RETURNING: what follows are no rows
    return columns, rows


def without_row(statement: str, number: int) -> str | None:
    """The statement without its row of this number (from 0); None where nothing would be left of it."""
    _, rows = inserted(statement)
    if len(rows) <= 1:
        return None
    if number + 1 < len(rows):
        return statement[: rows[number].start] + statement[rows[number + 1].start :]
    return statement[: rows[number - 1].end] + statement[rows[number].end :]


def literal(text: str) -> Any:
    """The value of a plain SQL literal; UNKNOWN for an expression."""
    if text.upper() == "NULL":
        return None
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if _NUMBER.fullmatch(text):
        return float(text)
    return UNKNOWN


def _same(written: Any, kept: Any) -> bool:
    """Whether a literal gives a value; SQLite turns numbers into texts and back by the column's type."""
    if written is None or kept is None:
        return written is kept
    try:
        return float(written) == float(kept)
    except (TypeError, ValueError):
        return str(written) == str(kept)
