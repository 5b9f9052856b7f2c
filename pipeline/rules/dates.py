"""Rules about time: rows that move with the clock, and tasks that are right on one day only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from pipeline.findings import Finding
from pipeline.model import Environment
from pipeline.rules.blocked import tasks_reading
from pipeline.words import number_of

MOVING = re.compile(r"'now'|\bcurrent_(?:timestamp|date|time)\b", re.I)
"""SQL that depends on the clock."""

DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b")

RELATIVE = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|"
    r"(?:this|next|last|past|coming|current|previous)\s+(?:week(?:end)?|month|quarter|year|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day)|"
    r"(?:in|within|over|for|during)?\s*(?:the\s+)?(?:next|last|past|coming)\s+\w+\s+(?:hours?|days?|weeks?|months?|years?)|"
    r"\d+\s+(?:hours?|days?|weeks?|months?)\s+(?:ago|from\s+(?:now|today)))\b",
    re.I,
)
"""Words that mean another day every day."""


def clock_in_rows(environment: Environment) -> Iterator[Finding]:
    """Rows whose values depend on the day the database is built."""
    inserts = [sql for table in environment.sample for sql in table.inserts]
    moving = sum(MOVING.search(sql) is not None for sql in inserts)
    if moving:
        yield Finding(
            "relative_dates",
            "info",
            "sample",
            f"{number_of(moving, 'insert')} of {len(inserts)} with the current time",
            remedy=f"instances are pinned to {environment.now:%Y-%m-%d %H:%M} so that rebuilding gives the same rows",
        )


def task_dates(environment: Environment, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[Finding]:
    """Tasks that are right on the pinned day only, by what moves against what stays.

    A task that counts from today is wrong as soon as its verifier expects a fixed day, and one that names a day is
    wrong as soon as the row it means has moved. `rows` are those of the built database.
    """
    moved = _moved_days(environment, rows)
    resting = {table.table.lower() for table in environment.sample} - _moving_tables(environment)
    fixed_rows = set(tasks_reading(environment, resting)) - set(tasks_reading(environment, _moving_tables(environment)))
    for number, task in enumerate(environment.tasks):
        if found := RELATIVE.search(task):
            yield from _counts_from_today(environment, number, found.group().strip(), number in fixed_rows)
        for day in dict.fromkeys(DAY.findall(task)):
            if day in moved:
                yield Finding(
                    "date_moves",
                    "warn",
                    f"sample: {moved[day]}",
                    f"task {number} names {day}, which {moved[day]} has only while the clock is pinned to "
                    f"{environment.now:%Y-%m-%d}",
                    evidence=task,
                    remedy="write the day itself into the row, or let the task count from today",
                    tasks=(number,),
                )


def _counts_from_today(environment: Environment, number: int, words: str, fixed_rows: bool) -> Iterator[Finding]:
    """A task that says `words`: what it means must move with the clock too."""
    code = "\n".join(verifier.code for verifier in environment.verifiers if verifier.task == number)
    days = [day for day in dict.fromkeys(DAY.findall(code)) if _is_day(day)]
    if days:
        yield Finding(
            "relative_task",
            "warn",
            f"verifier: task {number}",
            f"task {number} says {words!r}, and its verifier expects {', '.join(days[:3])}, whatever day it is",
            evidence=environment.tasks[number],
            remedy=f"name the day in the task; an agent is told that it is {environment.now:%Y-%m-%d}",
            tasks=(number,),
        )
    elif fixed_rows and not MOVING.search(code):
        yield Finding(
            "relative_task",
            "info",
            f"tasks: {number}",
            f"task {number} says {words!r}, and the rows it is about stay on their days: it means the same only while "
            f"the clock is pinned to {environment.now:%Y-%m-%d}",
            evidence=environment.tasks[number],
            remedy="name the day in the task, or let the rows count from today",
            tasks=(number,),
        )


def _moving_tables(environment: Environment) -> set[str]:
    """The tables (lower case) with rows whose values depend on the clock."""
    return {table.table.lower() for table in environment.sample if any(map(MOVING.search, table.inserts))}


def _moved_days(environment: Environment, rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, str]:
    """Days in rows that no insert writes, each with its table: the clock made them."""
    moving = _moving_tables(environment)
    written = {day for table in environment.sample for sql in table.inserts for day in DAY.findall(sql)}
    return {
        day: table
        for table, found in rows.items()
        if table.lower() in moving
        for row in found
        for value in row.values()
        if isinstance(value, str)
        for day in DAY.findall(value)
        if day not in written
    }


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
