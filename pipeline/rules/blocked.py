"""Which tasks a fault blocks, judged from what their text and their verifiers name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipeline.model import Environment

SHORTEST_NAMED_VALUE = 4
"""Shorter literals ("USD", "1") turn up in texts by chance."""

TABLE_IN_SQL = re.compile(r"\b(?:from|join|into|update|table)\s+[\"'`\[]?(\w+)", re.IGNORECASE)
LITERAL = re.compile(r"'((?:[^']|'(?!\s*(?:[,)]|$)))*)'(?=\s*(?:[,)]|$))")
"""A quoted value ends at the quote that a comma, a bracket or the end follows: a stray apostrophe ends nothing."""


def tables_read(source: str) -> set[str]:
    """The table names (lower case) that SQL inside a verifier's source reads or names."""
    return {name.lower() for name in TABLE_IN_SQL.findall(source)}


def tasks_reading(environment: Environment, tables: Iterable[str]) -> tuple[int, ...]:
    """The tasks whose verifiers read any of these tables."""
    wanted = {table.lower() for table in tables}
    return tuple(sorted({v.task for v in environment.verifiers if wanted & tables_read(v.code)}))


def tasks_naming(environment: Environment, values: Iterable[str]) -> tuple[int, ...]:
    """The tasks whose text or verifier names any of these values, whatever their case."""
    wanted = [value.lower() for value in values if len(value) >= SHORTEST_NAMED_VALUE]
    texts = [*enumerate(environment.tasks), *((v.task, v.code) for v in environment.verifiers)]
    return tuple(sorted({task for task, text in texts if any(value in text.lower() for value in wanted)}))


def literals(sql: str) -> list[str]:
    """The quoted strings of a statement, unescaped, leaving out dates and words of SQL's own."""
    found = [value.replace("''", "'") for value in LITERAL.findall(sql)]
    return [value for value in found if not re.fullmatch(r"[-+:\d\sTZ.]*|now|[-+]?\d+ \w+", value)]
