"""What a verifier's source shows without running it: clock reads, fixed values, errors it swallows.

Its source is parsed, never executed. What cannot be parsed has no facts; running it says why.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from curation.audit.metamorphic import spelled
from curation.audit.subject import Tables
from curation.audit.wording import DATE_TIME, Mentions, plain
from pipeline.findings import Finding
from pipeline.rules.quotes import quotes

CLOCK_METHODS = frozenset({"now", "utcnow", "today"})
CLOCK_FUNCTIONS = frozenset({"time", "time_ns", "localtime", "gmtime", "ctime", "asctime", "monotonic"})
"""What gives the time: methods of date classes, and functions of the module `time` called without a time."""
CLOCK_SQL = re.compile(r"'now'|\bCURRENT_(?:TIMESTAMP|DATE|TIME)\b", re.IGNORECASE)
SQL = re.compile(r"^\s*(?:SELECT|WITH|PRAGMA|INSERT|UPDATE|DELETE)\b", re.IGNORECASE)
QUERYING = frozenset({"connect", "execute", "executemany", "fetchone", "fetchall", "fetchmany"})
SQL_VALUE = re.compile(r"'((?:[^']|'')*)'")
SQL_NUMBER = re.compile(r"[=<>(,]\s*(\d+)\b")

CLOSE = 0.9
"""How alike (difflib's ratio) a literal and a value must be for one to be a slip of the other."""
SHORTEST_SLIP = 6
"""Characters of a literal that may be a slip; short words are alike by chance."""
VERDICT_WORDS = frozenset({"complete", "others", "result", "final", "initial"})
SURELY_AN_ID = 100
"""A number from which on being the id of a row is no coincidence."""
SHOWN = 6
"""Literals and lines that one finding lists."""


@dataclass(frozen=True)
class Source:
    """The facts of one verifier's source; lines count from 1."""

    text: str
    clock: tuple[int, ...] = ()
    swallows: tuple[int, ...] = ()
    numbers: Mapping[int, int] = field(default_factory=dict)
    texts: Mapping[str, int] = field(default_factory=dict)

    def line(self, number: int) -> str:
        """`line 12: …`, as findings show it."""
        lines = self.text.splitlines()
        return f"line {number}: {lines[number - 1].strip()}" if 0 < number <= len(lines) else f"line {number}"


@lru_cache(maxsize=32)
def read_source(text: str) -> Source:
    """The facts of a source; none where it is not Python. Kept for a while: one audit asks several times."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Source(text)
    clock: list[int] = []
    swallows: list[int] = []
    numbers: dict[int, int] = {}
    texts: dict[str, int] = {}
    aside = set(_not_values(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Call() if _reads_clock(node):
                clock.append(node.lineno)
            case ast.Try() if _queries(node.body):
                swallows += [handler.lineno for handler in node.handlers if _swallows(handler)]
            case ast.Constant(value=bool()):
                pass
            case ast.Constant(value=int(number)):
                numbers.setdefault(number, node.lineno)
            case ast.Constant(value=str(value)) if id(node) not in aside:
                if SQL.match(value):
                    if CLOCK_SQL.search(value):
                        clock.append(node.lineno)
                    for found in SQL_VALUE.findall(value):
                        texts.setdefault(found.replace("''", "'"), node.lineno)
                    for found in SQL_NUMBER.findall(value):
                        numbers.setdefault(int(found), node.lineno)
                else:
                    texts.setdefault(value, node.lineno)
    return Source(text, tuple(sorted(set(clock))), tuple(swallows), numbers, texts)


def source_findings(
    source: Source, where: str, number: int, task: str, databases: Iterable[Tables]
) -> Iterator[Finding]:
    """What is remarkable in a verifier's source; `databases` are those its literals may come from."""
    if source.clock:
        yield Finding(
            "reads_clock",
            "warn",
            where,
            "the verifier reads the clock",
            evidence="; ".join(source.line(line) for line in source.clock[:SHOWN]),
            remedy="compare with the times in the initial database",
            tasks=(number,),
        )
    if source.swallows:
        yield Finding(
            "swallows_errors",
            "info",
            where,
            "the verifier goes on when a query fails, so a broken database looks like a task that was not done; here "
            "such a verdict counts as judge_error",
            evidence="; ".join(source.line(line) for line in source.swallows[:SHOWN]),
            remedy="let errors of the database come through",
            tasks=(number,),
        )
    yield from _slips(source, where, number, task, list(databases))
    yield from _clauses_unchecked(source, where, number, task)


def id_lines(source: Source, tables: Tables, task: Mentions) -> list[str]:
    """The lines with numbers that are ids of rows and that the task does not name.

    Small numbers are ids, places and counts alike; they count in lines that speak of ids.
    """
    ids = {number for table in tables.values() for number in table.numbers}
    lines = {line for number, line in source.numbers.items() if number in ids and not task.has(number)}
    large = {line for number, line in source.numbers.items() if number >= SURELY_AN_ID}
    shown = [source.line(line) for line in sorted(lines)]
    told = [text for line, text in zip(sorted(lines), shown, strict=True) if line in large or "id" in text.casefold()]
    return told[:SHOWN]


def date_lines(source: Source) -> list[str]:
    """The lines with a date or moment as a text."""
    found = sorted({line for text, line in source.texts.items() if DATE_TIME.fullmatch(text.strip())})
    return [source.line(line) for line in found[:SHOWN]]


def _slips(source: Source, where: str, number: int, task: str, databases: list[Tables]) -> Iterator[Finding]:
    """Literals that neither the task nor any row has, where one of them has something very like it."""
    said = Mentions(task)
    values = {
        value
        for tables in databases
        for table in tables.values()
        for column in table.columns
        for value in table.values(column)
        if isinstance(value, str)
    }
    names = {
        name.casefold() for tables in databases for table in tables.values() for name in (table.name, *table.columns)
    }
    by_form: dict[str, str] = {}
    for value in sorted(values):
        by_form.setdefault(_form(value), value)
    for text, line in source.texts.items():
        known = text in values or text.casefold() in names or text.casefold() in VERDICT_WORDS or said.has(text)
        if known or len(text) < SHORTEST_SLIP or "\n" in text or "%" in text:
            continue
        near = by_form.get(_form(text))
        if near is None and not DATE_TIME.fullmatch(text):
            alike = [value for value in values if value[:1].casefold() == text[:1].casefold()]
            near = next(iter(difflib.get_close_matches(text, alike, 1, CLOSE)), None)
        if near is None:
            continue
        how = "is another spelling of it" if _form(near) == _form(text) else "is nearly the same"
        yield Finding(
            "literal_differs",
            "info",
            where,
            f"the verifier compares with {text!r}, which is in no row; {near!r} {how}",
            evidence=source.line(line),
            remedy="write the value as the rows have it",
            tasks=(number,),
        )


def _clauses_unchecked(source: Source, where: str, number: int, task: str) -> Iterator[Finding]:
    """What the task quotes that nothing in the verifier speaks of."""
    text = plain(source.text)
    missing = [quote.text for quote in quotes(task) if plain(quote.text) not in text]
    if missing:
        yield Finding(
            "clause_unchecked",
            "info",
            where,
            f"the task speaks of {', '.join(map(repr, missing[:SHOWN]))}, and the verifier does not",
            evidence=f"task: {task}",
            remedy="make it check this too, unless it is covered by what it looks up",
            tasks=(number,),
        )


def _queries(body: list[ast.stmt]) -> bool:
    calls = (inner.func for statement in body for inner in ast.walk(statement) if isinstance(inner, ast.Call))
    return any(isinstance(call, ast.Attribute) and call.attr in QUERYING for call in calls)


def _swallows(handler: ast.ExceptHandler) -> bool:
    caught = ast.unparse(handler.type) if handler.type else "Exception"
    broad = any(word in caught for word in ("Exception", "Error")) and "ValueError" not in caught
    return broad and not any(isinstance(inner, ast.Raise) for inner in ast.walk(handler))


def _reads_clock(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(attr=name) if name in CLOCK_METHODS:
            return True
        case ast.Attribute(value=ast.Name(id="time"), attr=name) if name in CLOCK_FUNCTIONS:
            return not call.args
    return False


def _form(text: str) -> str:
    """A text as slips are told: one form for all spellings of a moment, of case and of punctuation."""
    return spelled(text, "with a space") or plain(text)


def _not_values(tree: ast.AST) -> Iterator[int]:
    """The texts that are compared with nothing: doc strings, texts that stand alone, pieces of f-strings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield id(node.value)
        elif isinstance(node, ast.JoinedStr):
            yield from map(id, node.values)
