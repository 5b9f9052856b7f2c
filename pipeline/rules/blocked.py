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


def tasks_about(environment: Environment, table: str) -> tuple[int, ...]:
    """The tasks whose verifiers read a table, or whose text names what its rows are."""
    return tuple(sorted({*tasks_reading(environment, [table]), *tasks_naming_thing(environment, table)}))


def tasks_naming_thing(environment: Environment, table: str) -> tuple[int, ...]:
    """The tasks whose text names what a table's rows are ("question" for `questions`)."""
    words = table.lower().replace("_", " ")
    thing = re.compile(rf"\b{re.escape(words.removesuffix('s'))}(s|es)?\b")
    return tuple(task for task, text in enumerate(environment.tasks) if thing.search(text.lower()))


def tasks_naming(environment: Environment, values: Iterable[str]) -> tuple[int, ...]:
    """The tasks whose text or verifier names any of these values, whatever their case."""
    wanted = [value.lower() for value in values if len(value) >= SHORTEST_NAMED_VALUE]
    texts = [*enumerate(environment.tasks), *((v.task, v.code) for v in environment.verifiers)]
    return tuple(sorted({task for task, text in texts if any(value in text.lower() for value in wanted)}))


def with_quotes_doubled(sql: str) -> str:
    r"""The statement with every apostrophe inside a quoted value written twice, as SQL wants it, not as \'."""
    return LITERAL.sub(lambda value: "'" + re.sub(r"(?<!')\\?'(?!')", "''", value[1]) + "'", sql)


def literals(sql: str) -> list[str]:
    """The quoted strings of a statement, unescaped, leaving out dates and words of SQL's own."""
    found = [value.replace("''", "'") for value in LITERAL.findall(sql)]
    return [value for value in found if not re.fullmatch(r"[-+:\d\sTZ.]*|now|[-+]?\d+ \w+", value)]
