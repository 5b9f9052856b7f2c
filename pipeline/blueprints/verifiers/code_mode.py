"""Verifiers in code mode: what a task means is done to a copy of the initial database, and the final one must equal it.

So whatever leads to the right end is accepted, in any order and by any tool, and whatever else was changed is not.
New rows may have any id, and any value in a column the task leaves free.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pipeline.blueprints.language.domain import Domain
from pipeline.blueprints.rows.world import World
from pipeline.blueprints.tasks.planning import Task
from pipeline.blueprints.verifiers.answers_source import functions_for, refusing
from pipeline.blueprints.verifiers.goal_source import Doing, about, answer, quoted

SOURCE = '''\
"""Task: {text}

Complete when the final database is the initial one with just what the task means done to it{and_answer}.
"""

import json
import re
import sqlite3
from collections import Counter

TASK = {task}
TABLES = {tables}
FREE = {free}


def about(db):
    """What the task is about, found in the initial database; one dict for every acceptable choice."""
{about}


def meaning(db, v):
    """Do to a copy of the initial database what the task means."""
{meaning}


def answered(answer, db, v):
    """Whether the final answer says what the task asks for."""
{answered}

{functions}
def copy_of(path):
    """A private copy of a database, with rows that know their columns."""
    source = sqlite3.connect(f"file:{{path}}?mode=ro", uri=True)
    copy = sqlite3.connect(":memory:")
    source.backup(copy)
    source.close()
    copy.row_factory = sqlite3.Row
    return copy


def value(db, sql, v):
    """The first column of the first row."""
    row = db.execute(sql, v).fetchone()
    if row is None:
        raise LookupError(f"the initial database has no row for: {{sql}}")
    return row[0]


def column(db, sql, v):
    """The first column of all rows."""
    return [row[0] for row in db.execute(sql, v).fetchall()]


def same(value):
    """A value in a form that does not depend on how it is written: 1 and 1.0, dates with T or with midnight."""
    if isinstance(value, (int, float)):
        return round(float(value), 2)
    if isinstance(value, str):
        text = " ".join(value.split())
        if re.match(r"\\d{{4}}-\\d\\d-\\d\\d[T ]\\d\\d:", text):
            text = re.sub(r"(\\.\\d+)?(Z|[+]00:00)?$", "", text.replace("T", " "))
            return text.removesuffix(" 00:00:00")
        return text.casefold()
    return value


def picture(db, known):
    """All rows, by table: those known before by id, new ones as a bag of values that their ids do not matter to."""
    rows = {{table: {{row["id"]: dict(row) for row in db.execute(f"SELECT * FROM {{table}}")}} for table in TABLES}}

    def new(table, row):
        return tuple(
            (name, reference(TABLES[table][name], value) if name in TABLES[table] else same(value))
            for name, value in sorted(row.items())
            if name != "id" and name not in FREE.get(table, ())
        )

    def reference(table, number):
        if number is None or number in known[table] or number not in rows[table]:
            return number
        return new(table, rows[table][number])

    def old(row):
        return {{name: same(value) for name, value in row.items()}}

    return {{
        table: (
            {{number: old(row) for number, row in here.items() if number in known[table]}},
            Counter(new(table, row) for number, row in here.items() if number not in known[table]),
        )
        for table, here in rows.items()
    }}


def verify_task_completion(initial_db_path, final_db_path, final_answer=None):
{verdict}
'''

VERDICT = (
    "initial, final = copy_of(initial_db_path), copy_of(final_db_path)",
    'known = {table: set(column(initial, f"SELECT id FROM {table}", {})) for table in TABLES}',
    "seen = picture(final, known)",
    "for v in about(initial):",
    "    expected = copy_of(initial_db_path)",
    "    meaning(expected, v)",
    "    if picture(expected, known) == seen and answered(final_answer, expected, v):",
    '        return {"result": "complete"}',
    'return {"result": "others"}',
)
"""The body of the function that judges."""


@dataclass(frozen=True)
class Judge:
    """A verifier in parts: the bodies of its functions, as lines. `source` writes it down."""

    text: str
    tables: Mapping[str, Mapping[str, str]]
    free: Mapping[str, tuple[str, ...]]
    about: tuple[str, ...]
    meaning: tuple[str, ...]
    answered: tuple[str, ...]
    verdict: tuple[str, ...] = field(default=VERDICT)

    @property
    def source(self) -> str:
        """The verifier's source."""
        return SOURCE.format(
            text=docstring(self.text),
            and_answer=", and the answer says what is asked" if self.answered != ("return True",) else "",
            task=quoted(self.text),
            tables="{\n" + "".join(f'    "{name}": {keys!r},\n' for name, keys in self.tables.items()) + "}",
            free=dict(self.free),
            about=indented(self.about),
            meaning=indented(self.meaning),
            answered=indented(self.answered),
            functions=functions_for(self.answered),
            verdict=indented(self.verdict),
        )


def judge(task: Task, world: World) -> Judge:
    """The verifier of a task, in parts."""
    doing = Doing(world.domain)
    meaning = doing.lines(task.meaning)
    wanted = answer(task.meaning, world.domain)
    if task.reasons:
        wanted = refusing(task.reasons, task.amount)
    answered = ("said = plain(answer)", f"return {' and '.join(wanted)}") if wanted else ("return True",)
    return Judge(
        text=task.text,
        tables=references(world.domain),
        free={table: tuple(sorted(columns)) for table, columns in sorted(doing.free.items())},
        about=tuple(about(task.meaning, world)),
        meaning=tuple(meaning),
        answered=answered,
    )


def code_verifier(task: Task, world: World) -> str:
    """The source of a task's verifier in code mode."""
    return judge(task, world).source


def references(domain: Domain) -> dict[str, dict[str, str]]:
    """Every table, with the columns that refer to another and to which."""
    return {
        entity.table: {
            one.column: domain.entities[one.reference].table for one in entity.fields.values() if one.reference
        }
        for entity in domain.entities.values()
    }


def docstring(text: str) -> str:
    """A text as it can stand within a docstring."""
    return text.replace("\\", "\\\\").replace('"""', "'''")


def indented(lines: Iterable[str]) -> str:
    """Lines as the body of a function."""
    return "\n".join(f"    {line}" for line in lines)
