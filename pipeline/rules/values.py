"""Rules about values that a column may hold: the application stores and looks for those that its CHECK lists allow."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pipeline.findings import Finding
from pipeline.model import TableSchema

CHECK_LIST = re.compile(
    r"\bCHECK\s*\(\s*[\"'`\[]?(\w+)[\"'`\]]?\s+IN\s*\(\s*('(?:[^']|'')*'(?:\s*,\s*'(?:[^']|'')*')*)\s*\)", re.I
)
"""`CHECK (status IN ('open', 'closed'))`, with the column and the list."""
_VALUE = re.compile(r"'((?:[^']|'')*)'")
_COLUMN = re.compile(r"[(,]\s*[\"'`\[]?(\w+)[\"'`\]]?\s+(?:TEXT|VARCHAR|CHAR|STRING|NVARCHAR)", re.I)


@dataclass(frozen=True, slots=True)
class Constant:
    """A text that the application gives a column, or compares it with, and the line it stands on."""

    column: str
    text: str
    line: int


def value_findings(schema: Iterable[TableSchema], code: str) -> Iterator[Finding]:
    """Constants in the application that the CHECK list of their column leaves out: stored they fail, sought they lack.

    Columns of one name are judged together, and only where every table that has one has a list for it.
    """
    allowed = allowed_values(schema)
    for constant in constants(code, allowed):
        values = allowed[constant.column]
        if constant.text in values:
            continue
        near = next((value for value in sorted(values) if _form(value) == _form(constant.text)), None)
        spelled = f"; it is spelled {near!r} there" if near else ""
        yield Finding(
            "value_not_allowed",
            "warn",
            f"code:{constant.line}",
            f"the application uses {constant.text!r} for {constant.column}, which the CHECK of the schema leaves "
            f"out{spelled}",
            evidence=f"allowed: {', '.join(map(repr, sorted(values)))}",
            remedy="use a value that the CHECK lists, or add this one to the list",
        )


def allowed_values(schema: Iterable[TableSchema]) -> dict[str, set[str]]:
    """What the CHECK lists allow by column name, of columns that have a list wherever they occur."""
    found: dict[str, set[str]] = {}
    open_to_any: set[str] = set()
    for table in schema:
        lists = {column.lower(): _texts(values) for column, values in CHECK_LIST.findall(table.ddl)}
        for column, values in lists.items():
            found.setdefault(column, set()).update(values)
        open_to_any |= {column.lower() for column in _COLUMN.findall(table.ddl)} - lists.keys()
    return {column: values for column, values in found.items() if column not in open_to_any}


def constants(code: str, columns: Mapping[str, object]) -> Iterator[Constant]:
    """The texts that the application assigns to these columns, makes rows with, and looks for; each once."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # loading it says why
    classes = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and _is_table(node)}
    seen: set[tuple[str, str]] = set()
    for node in ast.walk(tree):
        for column, value in _pairs(node, classes):
            name = column.lower()
            if not isinstance(value, ast.Constant) or not isinstance(value.value, str) or name not in columns:
                continue
            if (name, value.value) not in seen:
                seen.add((name, value.value))
                yield Constant(name, value.value, value.lineno)


def _pairs(node: ast.AST, classes: set[str]) -> Iterator[tuple[str, ast.expr]]:
    """What a node gives a column, or compares it with."""
    match node:
        case ast.Assign(targets=[ast.Attribute(attr=column)], value=value):
            yield column, value
        case ast.Call(func=ast.Name(id=name), keywords=keywords) if name in classes:
            yield from ((keyword.arg, keyword.value) for keyword in keywords if keyword.arg)
        case ast.Compare(left=ast.Attribute(value=ast.Name(id=name), attr=column), comparators=[value]):
            if name in classes:
                yield column, value


def _is_table(node: ast.ClassDef) -> bool:
    """Whether a class is a table of the ORM: it names one."""
    return any(
        isinstance(target, ast.Name) and target.id == "__tablename__"
        for member in node.body
        if isinstance(member, ast.Assign)
        for target in member.targets
    )


def _texts(values: str) -> set[str]:
    return {text.replace("''", "'") for text in _VALUE.findall(values)}


def _form(text: str) -> str:
    """A value apart from case, spaces, dashes and underscores."""
    return re.sub(r"[\s_-]+", "", text).casefold()
