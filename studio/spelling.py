"""Parts as a person edits them: schemas and sample data as SQL, other structures as indented JSON, code as it is."""

from __future__ import annotations

import difflib
import json
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pipeline.errors import UserError
from pipeline.model import Part
from pipeline.parts import SOURCE_PARTS, canonical, dumps

_REMARKS = r"(?:\s+|--[^\n]*\n|/\*.*?\*/)*"
_NAME = r"[\"'`\[]?(\w+)[\"'`\]]?"
_TABLE = re.compile(rf"{_REMARKS}CREATE\s+(?:TEMP\w*\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}", re.I | re.S)
_INDEX = re.compile(rf"{_REMARKS}CREATE\s+(?:UNIQUE\s+)?INDEX\s.*?\sON\s+{_NAME}", re.I | re.S)
_INSERT = re.compile(rf"{_REMARKS}(?:INSERT|REPLACE)\b.*?\bINTO\s+{_NAME}", re.I | re.S)


@dataclass(frozen=True, slots=True)
class Spelling:
    """A text to edit and its language (as TextArea and Pygments name it).

    `was` is the content it was spelled from: what SQL does not show of it (a table's other keys) is kept.
    """

    text: str
    language: str
    was: str = ""

    @property
    def suffix(self) -> str:
        """The ending of a file with this text."""
        return {"python": ".py", "sql": ".sql", "json": ".json"}[self.language]


def spell(part: Part, content: str) -> Spelling:
    """A part's content as it is edited. A structure that SQL cannot say in full stays JSON, so that nothing is lost."""
    if part in SOURCE_PARTS:
        return Spelling(content, "python")
    if not content:
        return Spelling("", "sql" if part in (Part.schema, Part.sample) else "json")
    value = json.loads(content)
    if part in (Part.schema, Part.sample):
        sql = Spelling(_as_sql(part, value) or "", "sql", content)
        if sql.text and _says(part, sql, canonical(part, content)):
            return sql
    return Spelling(json.dumps(value, indent=2, ensure_ascii=False), "json")


def difference(part: Part, before: str, after: str) -> list[str]:
    """What differs between two contents of a part as they are read, as a unified diff; statements may be broken."""
    old, new = (_readable(part, content).splitlines() for content in (before, after))
    return list(difflib.unified_diff(old, new, part, f"{part}, proposed", lineterm="", n=1))


def _readable(part: Part, content: str) -> str:
    if part in (Part.schema, Part.sample):
        return _as_sql(part, json.loads(content)) or content
    return spell(part, content).text


def _says(part: Part, spelling: Spelling, content: str) -> bool:
    try:
        return read(part, spelling) == content
    except UserError:  # a statement that SQL cannot tell the end of
        return False


def read(part: Part, spelling: Spelling) -> str:
    """The content that a spelling says. Raises UserError, with the line, where it cannot be read."""
    if spelling.language == "sql":
        tables = _schema(spelling.text) if part is Part.schema else _sample(spelling.text)
        return dumps(_merged(part, tables, json.loads(spelling.was) if spelling.was else {}))
    return canonical(part, spelling.text)


def _as_sql(part: Part, value: Any) -> str | None:
    try:
        if part is Part.schema:
            return "\n".join(
                "".join(f"{_closed(each)}\n" for each in [table["ddl"], *table["indexes"]]) for table in value["tables"]
            )
        return "\n".join(
            "".join(f"{_closed(each)}\n" for each in table["insert_statements"]) for table in value["tables"]
        )
    except (KeyError, TypeError, AttributeError):
        return None


def _closed(statement: str) -> str:
    return statement if statement.rstrip().endswith(";") else f"{statement};"


def _open(statement: str) -> str:
    return statement.strip().removesuffix(";").rstrip()


def _merged(part: Part, tables: list[dict[str, Any]], was: dict[str, Any]) -> dict[str, Any]:
    """The tables with what they had beside SQL; statements that are the same are as they were to the letter."""
    name = "name" if part is Part.schema else "table_name"
    before = {table[name]: table for table in was.get("tables", [])}
    for table in tables:
        old = before.get(table[name], {})
        for key, value in old.items():
            if key not in table:
                table[key] = value
            elif key == "ddl":
                table[key] = value if _open(value) == table[key] else table[key]
            elif isinstance(value, list):
                letters = {_open(each): each for each in value}
                table[key] = [letters.get(each, each) for each in table[key]]
    return was | {"tables": [{key: table[key] for key in before.get(table[name], table)} for table in tables]}


def _schema(text: str) -> list[dict[str, Any]]:
    tables: dict[str, dict[str, Any]] = {}
    for line, statement in _statements(text):
        if found := _TABLE.match(statement):
            tables[found[1]] = {"name": found[1], "ddl": statement, "indexes": []}
        elif (found := _INDEX.match(statement)) and found[1] in tables:
            tables[found[1]]["indexes"].append(statement)
        else:
            raise UserError(f"Line {line}: write CREATE TABLE, or CREATE INDEX after its table.")
    return list(tables.values())


def _sample(text: str) -> list[dict[str, Any]]:
    tables: dict[str, dict[str, Any]] = {}
    for line, statement in _statements(text):
        found = _INSERT.match(statement)
        if found is None:
            raise UserError(f"Line {line}: write INSERT INTO a table.")
        table = tables.setdefault(found[1], {"table_name": found[1], "insert_statements": []})
        table["insert_statements"].append(statement)
    return list(tables.values())


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each statement with the number of its first line, without the semicolon after it."""
    begun, first = "", 1
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if not begun.strip():
            begun, first = "", number
        begun += line
        if sqlite3.complete_statement(begun):
            yield first, _open(begun)
            begun = ""
    if begun.strip():
        raise UserError(f"Line {first}: the statement that begins here has no end; close it with a semicolon.")
