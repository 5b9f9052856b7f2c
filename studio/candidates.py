"""Values from the rows of a database that an argument of a tool may well take."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from studio.schema_fields import Field, written
from studio.snapshot_reader import Snapshot, TableFacts

MOST = 50
"""Candidates offered for one argument."""
NAMING = ("name", "title", "label", "email", "code", "subject")
"""Columns that tell a person which row an id means, best first."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value as it would be typed, and which row it names."""

    text: str
    label: str


def candidates(field: Field, tool: str, snapshot: Snapshot) -> list[Candidate]:
    """Values for an argument of a tool: its choices, rows an id names, values of columns of its name."""
    if field.choices:
        return [Candidate(written(field, choice), "") for choice in field.choices]
    found = list(_rows_named(field.name, tool, snapshot)) or list(_values_of(field.name, tool, snapshot))
    fitting = [(value, label) for value, label in found if _fits(value, field.kind)]
    return [Candidate(written(field, value), label) for value, label in dict(fitting).items()][:MOST]


def _rows_named(name: str, tool: str, snapshot: Snapshot) -> Iterator[tuple[Any, str]]:
    """The keys of the table an id refers to: by a foreign key of that name, else by the name itself."""
    for table in snapshot.tables:
        for column in table.columns:
            if column.name == name and column.refers_to:
                target, _, key = column.refers_to.partition(".")
                yield from _keys(target, key, snapshot)
                return
    if name != "id" and not name.endswith("_id"):
        return
    stem = name.removesuffix("id").removesuffix("_")
    for table in snapshot.tables:
        if _singular(table.name) == stem if stem else _is_about(tool, table.name):
            key = next((column.name for column in table.columns if column.key), "id")
            yield from _keys(table.name, key, snapshot)
            return


def _values_of(name: str, tool: str, snapshot: Snapshot) -> Iterator[tuple[Any, str]]:
    tables = sorted(snapshot.tables, key=lambda table: not _is_about(tool, table.name))
    for table in tables:
        for value in snapshot.values(table.name, name, MOST):
            yield value, ""


def _keys(table: str, key: str, snapshot: Snapshot) -> Iterator[tuple[Any, str]]:
    facts = next((facts for facts in snapshot.tables if facts.name == table), None)
    if facts is None:
        return
    names = [column.name for column in facts.columns]
    if key not in names:
        return
    label = _naming_column(facts)
    for row in snapshot.page(facts, 0)[:MOST]:
        yield row[names.index(key)], "" if label is None else str(row[names.index(label)])


def _naming_column(table: TableFacts) -> str | None:
    names = [column.name for column in table.columns if not column.key]
    ranked = [name for wanted in NAMING for name in names if wanted in name]
    texts = [column.name for column in table.columns if "CHAR" in column.type.upper() or "TEXT" in column.type.upper()]
    return next(iter([*ranked, *texts]), None)


def _is_about(tool: str, table: str) -> bool:
    """Whether a tool's name speaks of a table: `create_claim` of `claims`."""
    words = {_singular(word) for word in re.split(r"[^a-z0-9]+", tool.lower())}
    return {_singular(word) for word in table.lower().split("_")} <= words


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word.removesuffix("s")


def _fits(value: Any, kind: str) -> bool:
    kinds = {"integer": int, "number": (int, float), "string": str}
    return kind == "any" or (kind in kinds and isinstance(value, kinds[kind]))
