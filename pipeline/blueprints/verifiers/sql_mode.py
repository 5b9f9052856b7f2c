"""Verifiers in sql mode: queries over both databases, clause by clause, as evidence for a judge.

The evidence is a JSON object:

    task        what was to be done
    holds       whether every clause holds, nothing else changed, and the answer says what was asked
    clauses     [{"says", "sql", "expected", "initial", "final", "holds"}]
    unexpected  [what changed that no clause is about]
    answer      {"given", "expected", "holds"}

They are made from the outcome that the generator itself computed, not from the code-mode verifier, so the two can be
compared. Rows are named by what people call them, never by id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pprint import pformat
from typing import Any

from pipeline.blueprints.language.domain import Entity
from pipeline.blueprints.language.expressions import Attribute, Each, Expression
from pipeline.blueprints.rows.world import Changes, Row, World
from pipeline.blueprints.tasks.meaning import Outcome
from pipeline.blueprints.tasks.planning import Task
from pipeline.blueprints.tasks.wording import shown, spoken
from pipeline.blueprints.verifiers.answers_source import functions_for, refusing
from pipeline.blueprints.verifiers.code_mode import docstring, indented
from pipeline.blueprints.verifiers.goal_source import Doing, quoted
from pipeline.blueprints.verifiers.sql_source import literal

SOURCE = '''\
"""Evidence on the task: {text}

One list of clauses for every acceptable end; the evidence shows the one that holds, or the first.
"""

import re
import sqlite3

TASK = {task}
TABLES = {tables}
ENDS = {ends}


def answered(answer, end):
    """Whether the final answer says what the task asks for."""
{answered}

{functions}
def read_only(path):
    """A connection that can only read, with rows as dicts."""
    db = sqlite3.connect(f"file:{{path}}?mode=ro", uri=True)
    db.row_factory = sqlite3.Row
    return db


def look(db, sql):
    """The rows of a query."""
    return [list(row) for row in db.execute(sql).fetchall()]


def alike(found, expected):
    """Whether values are equal, however numbers and dates are written."""
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(alike, found, expected))
    if isinstance(found, (int, float)) and isinstance(expected, (int, float)):
        return abs(found - expected) < 0.006
    if isinstance(found, str) and isinstance(expected, str):
        return found == expected or " ".join(found.casefold().split()) == " ".join(expected.casefold().split())
    return found == expected


def clause(entry, initial, final, covered):
    """The evidence of one clause; notes which rows and columns it is about."""
    before, after = look(initial, entry["sql"]), look(final, entry["sql"])
    expected = entry["expected"]
    if entry["change"] == "made":
        expected = [[before[0][0] + expected]]
    holds = alike(after, expected) and not alike(before, after)
    for row in look(final if entry["change"] == "made" else initial, entry["rows"]):
        covered.setdefault((entry["table"], row[0]), set()).update(entry["columns"])
    return {{
        "says": entry["says"],
        "sql": entry["sql"],
        "expected": expected,
        "initial": before,
        "final": after,
        "holds": holds,
    }}


def unexpected(initial, final, covered):
    """What changed that no clause is about."""
    found = []
    for table in TABLES:
        sides = [{{row["id"]: dict(row) for row in db.execute(f"SELECT * FROM {{table}}")}} for db in (initial, final)]
        for number in sorted(sides[0].keys() | sides[1].keys()):
            before, after = sides[0].get(number), sides[1].get(number)
            about = covered.get((table, number), set())
            if before == after or "*" in about:
                continue
            if before is None or after is None:
                found.append(f"{{table}} {{number}} was {{'made' if before is None else 'deleted'}}")
                continue
            for name in before.keys() - about:
                if not alike(before[name], after[name]):
                    found.append(f"{{table}} {{number}}: {{name}} is {{after[name]!r}}, was {{before[name]!r}}")
    return found


def verify_task(initial_db_path, final_db_path, final_answer=None):
    initial, final = read_only(initial_db_path), read_only(final_db_path)
    shown = None
    for end in ENDS:
        covered = {{}}
        clauses = [clause(entry, initial, final, covered) for entry in end["clauses"]]
        others = unexpected(initial, final, covered)
        said = answered(final_answer, end)
        evidence = {{
            "task": TASK,
            "holds": all(entry["holds"] for entry in clauses) and not others and said,
            "clauses": clauses,
            "unexpected": others,
            "answer": {{"given": final_answer, "expected": end["says"], "holds": said}},
        }}
        if shown is None or evidence["holds"]:
            shown = evidence
    return shown
'''


def sql_verifier(task: Task, world: World) -> str:
    """The source of a task's verifier in sql mode."""
    domain = world.domain
    doing = Doing(domain)
    doing.lines(task.meaning)
    clauses = _Clauses(world, doing.free)
    ends = [
        {
            "clauses": clauses.of(outcome),
            "says": [shown(v, e.kind) for v, e in zip(outcome.answer, task.meaning.form.answer, strict=True)]
            or ([task.meaning.reason] if task.reasons else []),
            "values": list(outcome.answer),
        }
        for outcome in task.meaning.outcomes
    ]
    conditions = [_answer(n, expression, world) for n, expression in enumerate(task.meaning.form.answer)]
    if task.reasons:
        conditions = refusing(task.reasons, task.amount)
    answered = ["said = plain(answer)", f"return {' and '.join(conditions)}"] if conditions else ["return True"]
    return SOURCE.format(
        text=docstring(task.text),
        task=quoted(task.text),
        tables=[entity.table for entity in domain.entities.values()],
        ends=pformat(ends, width=116, sort_dicts=False),
        answered=indented(answered),
        functions=functions_for(answered),
    )


def _answer(number: int, expression: Expression, world: World) -> str:
    wanted = f'end["values"][{number}]'
    match expression.kind.base:
        case "int" | "money" | "real":
            return f"number(said, {wanted})"
        case "bool":
            return f"yes_or_no(said, {wanted})"
        case "date":
            return f"day(said, {wanted})"
        case "list":
            return f"names(said, {wanted}, {_universe(expression, world)!r})"
        case _:
            return f"names(said, [{wanted}], {_universe(expression, world)!r})"


def _universe(expression: Expression, world: World) -> list[str]:
    node = expression.node.value if isinstance(expression.node, Each) else expression.node
    if not isinstance(node, Attribute):
        return list(node.kind.choices)
    return sorted({str(value) for row in world[node.entity] if (value := getattr(row, node.field)) is not None})


class _Clauses:
    """Writes what must be different as queries."""

    def __init__(self, world: World, free: Mapping[str, set[str]]) -> None:
        self.world, self.domain, self.free = world, world.domain, free

    def of(self, outcome: Outcome) -> list[dict[str, Any]]:
        """A clause for every row that is changed, made or gone."""
        changes = outcome.changes
        found = {entry["sql"]: entry for entry in (self.changed(row, changes) for row in changes.changed)}
        counted: dict[str, dict[str, Any]] = {}
        for row in changes.made:
            entry = self.made(row, changes)
            entry = counted.setdefault(entry["sql"], entry)
            entry["expected"] += 1
        return [*found.values(), *counted.values(), *(self.lost(row, changes) for row in changes.lost)]

    def changed(self, row: Row, changes: Changes) -> dict[str, Any]:
        entity = self.domain.entities[row.entity]
        where = self.where(row, changes)
        fields = {name: new for name, (_, new) in changes.changed[row].items()}
        shown_columns = ", ".join(self.column(entity, name) for name in fields)
        words = (f"{spoken(entity.fields[name].word)} is {self.words(new)}" for name, new in fields.items())
        ends = [[self.plain(value) for value in end] for end in self.ends(row, changes)]
        order = "" if len(ends) == 1 else f" ORDER BY {', '.join(str(n) for n, _ in enumerate(fields, 1))}"
        return {
            "change": "changed",
            "says": f"{self.called(row)}: {', '.join(words)}",
            "table": entity.table,
            "sql": f"SELECT {shown_columns} FROM {entity.table} WHERE {where}{order}",
            "rows": f"SELECT id FROM {entity.table} WHERE {where}",
            "columns": [entity.fields[name].column for name in fields],
            "expected": sorted(ends, key=_as_sqlite_sorts),
        }

    def made(self, row: Row, changes: Changes) -> dict[str, Any]:
        entity = self.domain.entities[row.entity]
        values = changes.made[row]
        where = self.describing(entity, values, changes)
        words = (
            f"{spoken(one.word)} {self.words(values[name])}"
            for name, one in entity.fields.items()
            if self.told(entity, name) and values[name] is not None
        )
        return {
            "change": "made",
            "says": f"there is a new {entity.noun} with {' and '.join(words)}",
            "table": entity.table,
            "sql": f"SELECT COUNT(*) FROM {entity.table} WHERE {where}",
            "rows": f"SELECT id FROM {entity.table} WHERE {where}",
            "columns": ["*"],
            "expected": 0,
        }

    def lost(self, row: Row, changes: Changes) -> dict[str, Any]:
        entity = self.domain.entities[row.entity]
        where = self.where(row, None)
        left = [twin for twin in self.twins(row, entity.fields, None) if twin not in changes.lost]
        return {
            "change": "lost",
            "says": f"{self.called(row)} is gone",
            "table": entity.table,
            "sql": f"SELECT COUNT(*) FROM {entity.table} WHERE {where}",
            "rows": f"SELECT id FROM {entity.table} WHERE {where}",
            "columns": ["*"],
            "expected": [[len(left)]],
        }

    def told(self, entity: Entity, name: str) -> bool:
        """Whether a field of a new row is judged."""
        return entity.fields[name].column not in self.free.get(entity.table, ())

    def where(self, row: Row, changes: Changes | None, *, at_end: bool = False) -> str:
        """A condition that holds for a row before and after the changes, whatever its id, and for what is like it.

        Where nothing that stays tells the row from others, and it need only hold `at_end`, what is new of it is used.
        """
        entity = self.domain.entities[row.entity]
        label = entity.label
        changed = changes.changed.get(row, {}) if changes else {}
        if label and label.name not in changed:
            return f"{label.column} = {literal(getattr(row, label.name))}"
        values = {name: getattr(row, name) for name in entity.fields if name not in changed}
        if at_end and len(self.twins(row, values, changes)) > 1:
            values |= {name: new for name, (_, new) in changed.items()}
        return self._all(self.test(entity, name, value, changes, at_end=at_end) for name, value in values.items())

    def describing(self, entity: Entity, values: Mapping[str, Any], changes: Changes | None) -> str:
        """A condition that holds for a new row with these values."""
        told = (name for name in entity.fields if self.told(entity, name))
        return self._all(self.test(entity, name, values[name], changes, at_end=True) for name in told)

    def _all(self, tests: Iterable[str]) -> str:
        return " AND ".join(tests) or "1"

    def twins(self, row: Row, names: Iterable[str], changes: Changes | None) -> list[Row]:
        """The rows with the same values in these fields, this one among them."""
        return [
            other
            for other in self.world[row.entity]
            if all(self.alike(getattr(other, name), getattr(row, name), changes) for name in names)
        ]

    def alike(self, one: Any, other: Any, changes: Changes | None) -> bool:
        """Whether no condition tells two values apart."""
        if one == other or not (isinstance(one, Row) and isinstance(other, Row)):
            return one == other
        return self.where(one, changes) == self.where(other, changes)

    def ends(self, row: Row, changes: Changes) -> list[list[Any]]:
        """What the changed fields of a row, and of all that are like it in what stays, are in the end."""
        entity, changed = self.domain.entities[row.entity], changes.changed[row]
        if entity.label and entity.label.name not in changed:
            return [[new for _, new in changed.values()]]
        stays = [name for name in entity.fields if name not in changed]
        found = []
        for other in self.world[row.entity]:
            if other in changes.lost:
                continue
            end = {name: getattr(other, name) for name in entity.fields}
            end |= {name: new for name, (_, new) in changes.changed.get(other, {}).items()}
            if all(self.alike(end[name], getattr(row, name), changes) for name in stays):
                found.append([end[name] for name in changed])
        return found

    def test(self, entity: Entity, name: str, value: Any, changes: Changes | None, *, at_end: bool) -> str:
        column = entity.fields[name].column
        if value is None:
            return f"{column} IS NULL"
        if isinstance(value, Row):
            target = self.domain.entities[value.entity]
            new = changes.made.get(value) if changes else None
            if new is not None:
                where = self.describing(target, new, changes)
            else:
                where = self.where(value, changes, at_end=at_end)
            return f"{column} IN (SELECT id FROM {target.table} WHERE {where})"
        if isinstance(value, float):
            return f"ABS({column} - {value!r}) < 0.006"
        return f"{column} = {literal(value)}"

    def column(self, entity: Entity, name: str) -> str:
        """A field as it is shown: a reference by what the row it refers to is called."""
        one = entity.fields[name]
        label = self.domain.entities[one.reference].label if one.reference else None
        if not one.reference or not label:
            return one.column
        target = self.domain.entities[one.reference]
        return f"(SELECT {label.column} FROM {target.table} WHERE id = {one.column}) AS {one.word}"

    def plain(self, value: Any) -> Any:
        if not isinstance(value, Row):
            return int(value) if isinstance(value, bool) else value
        label = self.domain.entities[value.entity].label
        return getattr(value, label.name) if label else value.id

    def words(self, value: Any) -> str:
        return str(self.plain(value)) if value is not None else "empty"

    def called(self, row: Row) -> str:
        entity = self.domain.entities[row.entity]
        return f"{entity.noun} {getattr(row, entity.label.name)}" if entity.label else f"one {entity.noun}"


def _as_sqlite_sorts(row: list[Any]) -> list[tuple[int, Any]]:
    """A key that puts rows into the order of SQLite's ORDER BY: nothing, numbers, texts."""
    return [(0, 0) if value is None else (2, value) if isinstance(value, str) else (1, value) for value in row]
