"""Remedies in the schema and the sample rows: an apostrophe that ends a text early, a row that should not be there."""

from __future__ import annotations

import ast
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from curation.fixes.inserts import inserted, without_row
from curation.fixes.proposal import Contents, Fix, PartEdit
from pipeline.findings import Finding
from pipeline.model import Part
from pipeline.parts import dumps
from pipeline.rules.blocked import with_quotes_doubled
from pipeline.words import uncut

_KEY = re.compile(r"[\"`\[]?(\w+)[\"`\]]?\s+INTEGER\b[^,]*?\bPRIMARY\s+KEY", re.I)
_ROWID = re.compile(r"\browid (-?\d+)")

Change = Callable[[str], str | None]
"""What becomes of a statement; None: it goes."""


def quote_apostrophe(finding: Finding, contents: Contents) -> Iterator[Fix]:
    """Write the apostrophe twice in a statement that failed to parse because of it."""
    if "syntax error" not in finding.message:
        return
    part = Part.sample if finding.code == "insert_failed" else Part.schema
    failed = uncut(finding.evidence)

    def repaired(statement: str) -> str:
        doubled = with_quotes_doubled(statement)
        closed = doubled.rstrip().removesuffix(";") + ";"
        return doubled if failed in statement and sqlite3.complete_statement(closed) else statement

    for edit in _edited(contents, part, repaired):
        yield Fix(finding.code, finding.where, "write an apostrophe inside a quoted text twice", (edit,))


def drop_failed_row(finding: Finding, contents: Contents) -> Iterator[Fix]:
    """Take out an INSERT of one row that breaks a rule of its table: the row is not in the database anyway."""
    if "constraint failed" not in finding.message:
        return

    def dropped(statement: str) -> str | None:
        is_it = uncut(finding.evidence) in statement and len(inserted(statement)[1]) == 1
        return None if is_it else statement

    for edit in _edited(contents, Part.sample, dropped):
        says = "take out the row that its table refuses; the database stays the same"
        yield Fix(finding.code, finding.where, says, (edit,))


def drop_seed_row(finding: Finding, contents: Contents) -> Iterator[Fix]:
    """Take out the rows with which a task's goal is reached before anyone acts."""
    named = rows_in(finding.evidence, _tables(contents))
    edit = _without(contents, named)
    if edit is not None:
        which = ", ".join(f"{table} {next(iter(row.values()), '')}" for table, row in named)
        says = f"take out what is there from the start: {which}; what refers to it stays"
        yield Fix(finding.code, finding.where, says, (edit,))


def drop_dangling_rows(finding: Finding, contents: Contents) -> Iterator[Fix]:
    """Take out rows that refer to rows which do not exist."""
    table = finding.where.partition(":")[2].strip()
    key = _KEY.search(_tables(contents).get(table, ""))
    if key is None:
        return
    named = [(table, {key[1]: int(number)}) for number in _ROWID.findall(finding.evidence)]
    edit = _without(contents, named)
    if edit is not None:
        says = f"take out {len(named)} of {table} that refer{'s' if len(named) == 1 else ''} to nothing"
        yield Fix(finding.code, finding.where, says, (edit,))


def rows_in(evidence: str, tables: Sequence[str] | dict[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """The rows that a finding shows as `table: {column: value}`."""
    found = []
    for table in tables:
        for start in (match.end() - 1 for match in re.finditer(rf"(?<!\w){re.escape(table)}: \{{", evidence)):
            ends = (start + match.end() for match in re.finditer(r"\}", evidence[start:]))
            row = next((row for end in ends if (row := _read(evidence[start:end])) is not None), None)
            if row is not None:
                found.append((table, row))
    return found


def _read(text: str) -> dict[str, Any] | None:
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _tables(contents: Contents) -> dict[str, str]:
    """The tables' DDL by name."""
    schema = json.loads(contents.get((Part.schema, ""), "{}"))
    return {table["name"]: table["ddl"] for table in _described(schema, "name", "ddl")}


def _described(value: dict[str, Any], *texts: str) -> list[dict[str, Any]]:
    """The tables of a schema or sample that have these texts; what a generator wrote otherwise is left alone."""
    tables = value.get("tables")
    return [
        table
        for table in (tables if isinstance(tables, list) else ())
        if isinstance(table, dict) and all(isinstance(table.get(text), str) for text in texts)
    ]


def _statements(table: dict[str, Any], key: str) -> list[str]:
    """The statements of a table; none unless all are texts."""
    found = table.get(key)
    return found if isinstance(found, list) and all(isinstance(one, str) for one in found) else []


def _without(contents: Contents, rows: Sequence[tuple[str, dict[str, Any]]]) -> PartEdit | None:
    """The sample without these rows; None unless each of them is found exactly once."""
    before = contents.get((Part.sample, ""))
    if before is None or not rows:
        return None
    value = json.loads(before)
    ddl = _tables(contents)
    for name, row in rows:
        here = (table for table in _described(value, "table_name") if table["table_name"] == name)
        lists = [_statements(table, "insert_statements") for table in here]
        places = [
            (statements, place, number)
            for statements in lists
            for place, statement in enumerate(statements)
            for number in _numbers_of(statement, row, _columns(ddl.get(name, "")))
        ]
        if len(places) != 1:
            return None
        [(statements, place, number)] = places
        rest = without_row(statements[place], number)
        statements[place : place + 1] = [] if rest is None else [rest]
    return PartEdit(Part.sample, "", before, dumps(value))


def _numbers_of(statement: str, row: dict[str, Any], columns: Sequence[str]) -> list[int]:
    named, rows = inserted(statement)
    return [number for number, one in enumerate(rows) if one.is_row(named or columns, row)]


def _columns(ddl: str) -> list[str]:
    """The columns of a CREATE TABLE, in order, read from its text."""
    _, bracket, body = ddl.partition("(")
    if not bracket:
        return []
    _, rows = inserted(f"VALUES ({body}")
    pieces = rows[0].values if rows else ()
    words = [piece.split(maxsplit=1)[0].strip("\"`[]'") for piece in pieces if piece]
    return [word for word in words if word.upper() not in ("PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "CONSTRAINT")]


def _edited(contents: Contents, part: Part, change: Change) -> Iterator[PartEdit]:
    """The schema or sample with each of its statements changed; nothing where none is."""
    before = contents.get((part, ""))
    if before is None:
        return
    value = json.loads(before)
    for table in _described(value, *(("ddl",) if part is Part.schema else ())):
        if part is Part.schema:
            table["ddl"] = change(table["ddl"]) or table["ddl"]
        key = "indexes" if part is Part.schema else "insert_statements"
        if statements := _statements(table, key):
            table[key] = [now for was in statements if (now := change(was)) is not None]
    after = dumps(value)
    if after != before:
        yield PartEdit(part, "", before, after)
