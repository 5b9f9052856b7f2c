"""Rules about a built database: what its tasks name is there, what they ask for is not there yet, losses are few."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pipeline.findings import Finding
from pipeline.rules.blocked import tasks_naming_thing
from pipeline.rules.dates import task_dates
from pipeline.rules.quotes import quotes
from pipeline.words import number_of

if TYPE_CHECKING:
    from pipeline.model import Environment
    from pipeline.runtime.build import Build

LOST_SHARE = 0.10
"""The share of INSERT statements that may be lost, as upstream allows (arXiv 2602.10090, section 3)."""

Row = dict[str, Any]


def read_rows(snapshot: bytes) -> dict[str, list[Row]]:
    """All rows of all tables of a finished snapshot. Views and triggers, which are generated code, never run."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(snapshot)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.row_factory = sqlite3.Row
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        return {
            name: [dict(row) for row in connection.execute(f'SELECT * FROM "{name.replace(chr(34), chr(34) * 2)}"')]
            for (name,) in names.fetchall()
        }


def rows_findings(environment: Environment, build: Build) -> Iterator[Finding]:
    """What the rows say about the tasks: lost beyond measure, entities absent, goals reached, no signed-in user."""
    yield from too_much_lost(build)
    if build.ok:
        rows = read_rows(build.snapshot)
        yield from empty_tables(environment, rows)
        yield from task_dates(environment, rows)
        yield from nobody_signed_in(rows)
        yield from absent_entities(environment.tasks, rows)
        yield from reached_goals(environment.tasks, rows)


def too_much_lost(build: Build) -> Iterator[Finding]:
    """More INSERT statements lost than upstream allows."""
    lost = sum(statement.kind == "insert" for statement in build.failed)
    tried = lost + sum(build.tables.values())
    if lost > LOST_SHARE * tried:
        yield Finding(
            "rows_lost",
            "error",
            "sample",
            f"{number_of(lost, 'row')} of {tried} lost, more than {LOST_SHARE:.0%}",
            remedy="correct the statements that failed",
        )


MAKING = re.compile(
    r"^\W*(?:please\s+)?(?:add|apply|assign|attach|book|create|design|draft|enrol|enroll|file|generate|invite|issue|leave|"
    r"log|make|open|order|place|plan|post|rate|record|register|report|request|reserve|review|save|schedule|send|set\s+up|"
    r"share|start|submit|subscribe|tag|write)\b",
    re.I,
)
"""How a task begins that makes rows: it needs none of them to be there."""


def empty_tables(environment: Environment, rows: Mapping[str, Sequence[Row]]) -> Iterator[Finding]:
    """Tables without a row: nothing can be found in them, least of all what tasks look for."""
    empty = sorted(table for table, found in rows.items() if not found)
    for table in empty:
        needed = tuple(
            task for task in tasks_naming_thing(environment, table) if not MAKING.match(environment.tasks[task])
        )
        if needed:
            yield Finding(
                "table_empty_needed",
                "warn",
                f"sample: {table}",
                f"{table} has no rows, and {number_of(len(needed), 'task')} cannot find any",
                evidence=environment.tasks[needed[0]],
                remedy=f"add rows of {table}",
                tasks=needed,
            )
    if empty:
        yield Finding(
            "table_empty",
            "warn",
            f"sample: {', '.join(empty)}",
            f"{number_of(len(empty), 'table')} without a row",
            remedy="add rows, unless tasks are to fill them",
        )


def nobody_signed_in(rows: Mapping[str, Sequence[Row]]) -> Iterator[Finding]:
    """A table of users in which the signed-in user, id 1, is missing."""
    table = next((name for name in rows if name.lower() in ("users", "user", "accounts")), None)
    if table and rows[table] and "id" in rows[table][0] and all(row["id"] != 1 for row in rows[table]):
        yield Finding(
            "user_missing",
            "warn",
            f"sample: {table}",
            f"{table} has no row with id 1, the user whose tasks these are",
            remedy="give the signed-in user id 1",
        )


def absent_entities(tasks: Sequence[str], rows: Mapping[str, Sequence[Row]]) -> Iterator[Finding]:
    """Names and ids that a task takes to exist and that no row contains, whole or as part of a text."""
    values = {_plain(value) for found in rows.values() for row in found for value in row.values() if value is not None}
    texts = "\n".join(values)
    for number, task in enumerate(tasks):
        missing = [
            quote.text
            for quote in quotes(task)
            if quote.role == "used" and (key := _plain(quote.text)) not in values and key not in texts
        ]
        if missing:
            yield Finding(
                "entity_absent",
                "warn",
                f"sample: task {number}",
                f"task {number} names {', '.join(map(repr, missing))}, which no row contains",
                evidence=task,
                remedy="add rows for what the task needs to be there; leave out what it asks to be made",
                tasks=(number,),
            )


def reached_goals(tasks: Sequence[str], rows: Mapping[str, Sequence[Row]]) -> Iterator[Finding]:
    """Things that a task asks to be made and that are there already, in a table of such things."""
    for number, task in enumerate(tasks):
        for quote in quotes(task):
            if quote.role != "made":
                continue
            for table, found in rows.items():
                row = next((r for r in found if _plain(quote.text) in map(_plain, r.values())), None)
                if row is not None and is_about(table, quote.thing):
                    yield Finding(
                        "goal_in_seed",
                        "warn",
                        f"sample: {table}",
                        f"task {number} asks for {quote.text!r} to be made, and {table} has it already",
                        evidence=f"{table}: {row}",
                        remedy="leave that row out, or give it another name",
                        tasks=(number,),
                    )


def is_about(table: str, thing: str) -> bool:
    """Whether a table is one of such things: its name is the thing's last word, or ends in its last words."""
    words = [_singular(word) for word in re.findall(r"[a-z]+", thing.lower())]
    name = [_singular(word) for word in table.lower().split("_")]
    return bool(words) and (words[-len(name) :] == name or name[-1:] == words[-1:])


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _plain(value: object) -> str:
    """A value as people compare it: case, typographic quotes, dashes and outer space do not matter."""
    text = str(value).lower().strip()
    return text.translate(str.maketrans("’‘“”–—", "''\"\"--"))
