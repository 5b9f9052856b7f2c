"""Verifiers with one fault each, of a kind that model-written verifiers have: known answers for an audit.

A fault is put into the parts of the sound verifier that a task has, so everything else about it stays right. Which
way it errs is part of the label: `loose` ones accept what is wrong, `strict` ones reject what is right, `broken` ones
cannot judge. The kinds are those seen in generated environments and in public bug reports of benchmarks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from pipeline.blueprints.application.database import stored
from pipeline.blueprints.make import Blueprint, blueprint, domain_names, shipped_domain
from pipeline.blueprints.rows.seeding import TODAY
from pipeline.blueprints.rows.world import Row, World
from pipeline.blueprints.tasks.planning import Task
from pipeline.blueprints.variant import Size
from pipeline.blueprints.verifiers.code_mode import VERDICT, Judge, judge
from pipeline.blueprints.verifiers.goal_source import quoted
from pipeline.blueprints.verifiers.sql_source import literal
from pipeline.errors import UserError
from pipeline.model import Environment, Mode, Verifier

Leaning = Literal["loose", "strict", "broken"]
Put = Callable[[Judge, Task, World], Judge | None]


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault: which way it errs, what such a verifier does, and how it is put in (None: it has no place)."""

    leaning: Leaning
    says: str
    put: Put


@dataclass(frozen=True, slots=True)
class Injected:
    """A faulty verifier with its label."""

    verifier: Verifier
    kind: str
    leaning: Leaning
    says: str


def inject(environment: Environment, kind: str, task: int) -> Injected | None:
    """The code-mode verifier of a task with a fault of this kind; None where the task has no place for one.

    `environment` is one that `synth --offline` made. Raises UserError for another, an unknown kind or task.
    """
    made = blueprint_of(environment)
    if kind not in FAULTS:
        raise UserError(f"There is no fault {kind!r}; known are {', '.join(FAULTS)}.")
    if not 0 <= task < len(made.tasks):
        raise UserError(f"{environment.name} has no task {task}; it has {len(made.tasks)}.")
    fault, meant = FAULTS[kind], made.tasks[task]
    faulty = fault.put(judge(meant, made.world), meant, made.world)
    if faulty is None:
        return None
    return Injected(Verifier(task, Mode.code, faulty.source), kind, fault.leaning, fault.says)


def blueprint_of(environment: Environment) -> Blueprint:
    """The blueprint an environment was made from, made again from its name.

    Raises UserError where it was not made by rules from a shipped domain, or its tasks are not the ones made then.
    """
    match = re.fullmatch(r"[a-z0-9_]+?(_paper)?_(\d+)_(\d+)", environment.name)
    if environment.domain not in domain_names() or not match:
        raise UserError(f"{environment.name} was not made by rules from a shipped domain.")
    made = _made(environment.domain, int(match[2]), int(match[3]), "paper" if match[1] else "small")
    if made.environment.tasks != environment.tasks:
        raise UserError(
            f"{environment.name} was edited, or made by another version: its meaning is not known any more."
        )
    return made


@lru_cache(maxsize=32)
def _made(domain: str, seed: int, index: int, size: Size) -> Blueprint:
    return blueprint(shipped_domain(domain), seed, index, size)


# Parts that several faults use


def _compared(one: Judge, same: str, *definitions: str) -> Judge:
    """The verifier with another comparison of the expected and the final rows."""
    lines = (line.replace("picture(expected, known) == seen", same) for line in one.verdict)
    return replace(one, verdict=(*definitions, *lines))


def _blind(one: Judge, table: str, *body: str) -> Judge:
    """The verifier that compares a table's `old` rows (by id) and `new` ones only as far as `body` leaves them."""
    return _compared(
        one,
        "blind(picture(expected, known), v) == blind(seen, v)",
        "def blind(rows, v):",
        f'    old, new = rows["{table}"]',
        *(f"    {line}" for line in body),
        f'    return {{**rows, "{table}": (old, new)}}',
        "",
    )


def _touched(task: Task) -> list[Row]:
    changes = task.meaning.outcomes[0].changes
    return [*changes.changed, *changes.made, *changes.lost]


def _tables(rows: Iterable[Row], world: World) -> set[str]:
    return {world.domain.entities[row.entity].table for row in rows}


def _with_number(one: Judge, name: str, body: str) -> Judge | None:
    """The verifier with `number` in its reading of the answer replaced by a looser function."""
    if not any("number(said, " in line for line in one.answered):
        return None
    lines = (line.replace("number(said, ", f"{name}(said, ") for line in one.answered)
    return replace(one, answered=(f"def {name}(said, wanted):", f"    return {body}", "", *lines))


# Loose: they accept what is wrong


def _accepts_untouched(one: Judge, _: Task, __: World) -> Judge:
    untouched = ("if seen == picture(initial, known):", '    return {"result": "complete"}')
    return replace(one, verdict=(*VERDICT[:3], *untouched, *VERDICT[3:]))


def _any_row(one: Judge, task: Task, world: World) -> Judge | None:
    for row, fields in task.meaning.outcomes[0].changes.changed.items():
        name, (_, new) = next(iter(fields.items()))
        entity = world.domain.entities[row.entity]
        if any(getattr(other, name) == new for other in world[row.entity]):
            test = f"{entity.fields[name].column} = {literal(stored(new))}" if new is not None else "1"
            query = quoted(f"SELECT id FROM {entity.table} WHERE {test}")
            return _compared(one, f"column(final, {query}, v)")
    return None


def _ignores_clause(one: Judge, task: Task, world: World) -> Judge | None:
    for row, fields in task.meaning.outcomes[0].changes.changed.items():
        entity = world.domain.entities[row.entity]
        column = entity.fields[next(iter(fields))].column
        return _blind(
            one,
            entity.table,
            f'old = {{n: {{k: x for k, x in row.items() if k != "{column}"}} for n, row in old.items()}}',
        )
    return None


def _ignores_collateral(one: Judge, task: Task, world: World) -> Judge | None:
    tables = sorted(_tables(_touched(task), world))
    if not tables or len(tables) == len(one.tables):
        return None
    return _compared(one, f"all(picture(expected, known)[table] == seen[table] for table in {tables!r})")


def _ignores_answer(one: Judge, task: Task, _: World) -> Judge | None:
    return replace(one, answered=("return True",)) if task.answer is not None else None


def _checks_fewer(one: Judge, task: Task, world: World) -> Judge | None:
    steps = task.meaning.form.steps
    if len(steps) != 1 or steps[0].each is None:
        return None
    name = steps[0].each[1]
    rows = task.meaning.variables[name]
    tables = _tables(rows, world)
    if _tables(_touched(task), world) != tables:  # what the others do elsewhere would still be looked at
        return None
    return _blind(
        one, tables.pop(), f'old = {{n: row for n, row in old.items() if n not in json.loads(v["{name}"])[1:]}}'
    )


def _counts_only(one: Judge, task: Task, world: World) -> Judge | None:
    made = task.meaning.outcomes[0].changes.made
    return _blind(one, _tables(made, world).pop(), "new = sum(new.values())") if made else None


def _off_by_one(one: Judge, _: Task, __: World) -> Judge | None:
    return _with_number(one, "near", "any(number(said, wanted + off) for off in (-1, 0, 1))")


def _loose_number(one: Judge, _: Task, __: World) -> Judge | None:
    return _with_number(one, "mentioned", 'f"{wanted:g}" in said')


def _swallows_errors(one: Judge, _: Task, __: World) -> Judge:
    lines = (f"    {line}" for line in one.verdict)
    return replace(one, verdict=("try:", *lines, "except Exception:", '    return {"result": "complete"}'))


# Strict: they reject what is right


def _wrong_row(one: Judge, task: Task, _: World) -> Judge | None:
    if not any(item.how in ("first", "last") for item in task.meaning.form.find):
        return None

    def other_end(line: str) -> str:
        if " DESC LIMIT 1" in line:
            return line.replace(" DESC LIMIT 1", " LIMIT 1")
        return line.replace(" LIMIT 1", " DESC LIMIT 1")

    return replace(one, about=tuple(map(other_end, one.about)))


def _hard_coded_id(one: Judge, task: Task, _: World) -> Judge | None:
    used = {name for step in task.meaning.form.steps for e in step.arguments.values() for name in e.variables}
    known: dict[str, Any] = dict(task.meaning.variables)
    rows = {name: known[name].id for name in used if isinstance(known.get(name), Row)}
    fixed = {f'v["{name}"] = value(': f'v["{name}"] = {number}' for name, number in rows.items()}
    lines = tuple(next((new for old, new in fixed.items() if line.startswith(old)), line) for line in one.about)
    return None if lines == one.about else replace(one, about=lines)


def _strict_wording(one: Judge, task: Task, _: World) -> Judge | None:
    if task.answer is None:
        return None
    return replace(one, answered=(f'return str(answer or "") == {task.answer!r}',))


def _reads_clock(one: Judge, _: Task, __: World) -> Judge:
    late = f'if date.today().isoformat() != "{TODAY.isoformat()}":'
    return replace(
        one, verdict=("from datetime import date", "", late, '    return {"result": "others"}', *one.verdict)
    )


def _wants_order(one: Judge, task: Task, _: World) -> Judge | None:
    made = task.meaning.outcomes[0].changes.made
    if len(task.meaning.outcomes[0].performed) < 2:  # one action makes its rows in one order
        return None
    by_entity: dict[str, list[Mapping[str, Any]]] = {}
    for row, values in made.items():
        by_entity.setdefault(row.entity, []).append({n: v for n, v in values.items() if not isinstance(v, Row)})
    if not any(values != list(reversed(values)) for values in by_entity.values()):
        return None
    return _compared(
        one,
        "picture(expected, known) == seen and in_order(expected) == in_order(final)",
        "def in_order(db):",
        '    """The new rows as they were made, one after another."""',
        "    return [",
        '        [same(row[name]) for name in row.keys() if name not in ("id", *FREE.get(table, ()), *TABLES[table])]',
        "        for table in TABLES",
        '        for row in db.execute(f"SELECT * FROM {table} ORDER BY id")',
        '        if row["id"] not in known[table]',
        "    ]",
        "",
    )


def _wants_free(one: Judge, task: Task, _: World) -> Judge | None:
    return replace(one, free={}) if one.free and task.meaning.outcomes[0].changes.made else None


def _wants_extra(one: Judge, task: Task, world: World) -> Judge | None:
    for row, fields in task.meaning.outcomes[0].changes.changed.items():
        entity = world.domain.entities[row.entity]
        for name, field in entity.fields.items():
            if field.notation.kind.choices and name not in fields and not field.notation.formula:
                other = next(choice for choice in field.notation.kind.choices if choice != getattr(row, name))
                label = entity.label
                where = f"{label.column} = {literal(getattr(row, label.name))}" if label else f"id = {row.id}"
                extra = f"UPDATE {entity.table} SET {field.column} = {literal(other)} WHERE {where}"
                return replace(one, meaning=(*one.meaning, f"db.execute({quoted(extra)}, v)"))
    return None


# Broken: they cannot judge


def _crashes(one: Judge, _: Task, __: World) -> Judge:
    table = next(iter(one.tables))
    return replace(one, verdict=(*VERDICT[:1], f'column(final, "SELECT status_text FROM {table}", {{}})', *VERDICT[1:]))


FAULTS: Mapping[str, Fault] = {
    "accepts_untouched": Fault("loose", "accepts a database in which nothing was done", _accepts_untouched),
    "any_row": Fault("loose", "is content with any row that has the wanted value", _any_row),
    "ignores_clause": Fault("loose", "does not look at one of the columns that have to change", _ignores_clause),
    "ignores_collateral": Fault("loose", "looks only at the tables of the goal", _ignores_collateral),
    "ignores_answer": Fault("loose", "does not look at the answer", _ignores_answer),
    "checks_fewer": Fault("loose", "checks only the first of the rows that the task is about", _checks_fewer),
    "counts_only": Fault("loose", "counts new rows without looking at their values", _counts_only),
    "off_by_one": Fault("loose", "takes a number that is one off", _off_by_one),
    "loose_number": Fault("loose", "takes any answer in which the digits occur", _loose_number),
    "swallows_errors": Fault("loose", "takes an error of its own for success", _swallows_errors),
    "wrong_row": Fault("strict", "expects the change on the row at the other end of the order", _wrong_row),
    "hard_coded_id": Fault("strict", "knows the rows by their ids in one particular database", _hard_coded_id),
    "strict_wording": Fault("strict", "takes the answer in one wording only", _strict_wording),
    "reads_clock": Fault("strict", "gives another verdict on another day", _reads_clock),
    "wants_order": Fault("strict", "wants new rows to have been made in one order", _wants_order),
    "wants_free": Fault("strict", "judges values that the task leaves open", _wants_free),
    "wants_extra": Fault("strict", "wants a change that the task does not ask for", _wants_extra),
    "crashes": Fault("broken", "asks for a column that is not there", _crashes),
}
"""The kinds of faults, by name."""
