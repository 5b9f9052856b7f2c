"""Plausible arguments for a tool, from its input schema and the rows of a database.

They are for checks that call every tool without a model: they fit the schema, ids name rows that exist in the table
they are meant for, words are words the database uses. The same seed gives the same arguments.
"""

from __future__ import annotations

import functools
import random
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

OPTIONAL = 0.5  # how often an optional argument is given
EXAMPLE = 0.35  # how often a schema's own example is taken where the database has values too

_FORMATS = {
    "date-time": "2026-01-15T10:00:00",
    "date": "2026-01-15",
    "time": "10:00:00",
    "email": "robin@example.com",
    "uri": "https://example.com/page",
    "uuid": "7d444840-9dc0-11d1-b245-5ffdce74fad2",
    "ipv4": "192.0.2.10",
    "duration": "PT1H",
}
_FORMAT_OF_NAMES = (
    (re.compile(r"(_at|_time|timestamp|datetime)$"), "date-time"),
    (re.compile(r"(^|_)(date|day|from|until|deadline)($|_)"), "date"),
    (re.compile(r"e?mail"), "email"),
    (re.compile(r"ur[li]$"), "uri"),
)


def sample_arguments(schema: Mapping[str, Any], snapshot: bytes, *, seed: int) -> dict[str, Any]:
    """Arguments for a tool with this input schema, called on a database with these rows.

    Required arguments are always there, optional ones about half the time.
    """
    title = str(schema.get("title", ""))
    rng = random.Random(f"{seed} {title}")  # noqa: S311 (reproducible on purpose)
    return _Chooser(rng, _vocabulary(snapshot), _words(title)).members(schema)


@dataclass(frozen=True)
class _Vocabulary:
    """The values a database holds: by table and column, and which column refers to which table's key."""

    columns: Mapping[str, Mapping[str, Sequence[Any]]] = field(default_factory=dict)
    parents: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def of_column(self, name: str, tables: Sequence[str], kinds: type | tuple[type, ...]) -> list[Any]:
        """Values of that type in columns of that name, in the preferred tables if any of those has some."""
        found: list[Any] = []
        for table, columns in self.columns.items():
            values = [value for value in columns.get(name, ()) if isinstance(value, kinds)]
            if values and table in tables:
                return values
            found += values
        return found

    def keys(self, name: str, tables: Sequence[str]) -> Sequence[Any]:
        """Values an argument called `name` may take if it names a row: `driver_id`, `id`."""
        if name in self.parents:
            table, column = self.parents[name]
            return self.columns.get(table, {}).get(column, ())
        base = name.removesuffix("_id") if name != "id" else ""
        named = [table for table in self.columns if _singular(table) == base or table == base] if base else tables
        ending = [table for table in self.columns if base and _singular(table).endswith(base.rpartition("_")[2])]
        for table in (*named, *ending):
            if self.columns[table].get("id"):
                return self.columns[table]["id"]
        return ()


@functools.lru_cache(maxsize=4)
def _vocabulary(snapshot: bytes) -> _Vocabulary:
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(snapshot)
        connection.execute("PRAGMA trusted_schema = OFF")
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = {table: dict(_columns(connection, table)) for table in tables}
        parents = {}
        for table in tables:
            for row in connection.execute(f"SELECT * FROM pragma_foreign_key_list('{table.replace(chr(39), '')}')"):
                parents.setdefault(row[3], (row[2], row[4] or "id"))
        return _Vocabulary(columns, parents)
    finally:
        connection.close()


def _columns(connection: sqlite3.Connection, table: str) -> Iterator[tuple[str, list[Any]]]:
    name = table.replace('"', '""')
    cursor = connection.execute(f'SELECT * FROM "{name}" LIMIT 200')
    rows = cursor.fetchall()
    for number, column in enumerate(cursor.description):
        yield column[0], [row[number] for row in rows if row[number] is not None]


class _Chooser:
    def __init__(self, rng: random.Random, vocabulary: _Vocabulary, words: set[str]) -> None:
        self._rng = rng
        self._vocabulary = vocabulary
        self._tables = [table for table in vocabulary.columns if {table, _singular(table)} & words]

    def members(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """A value for every required and some optional properties of an object."""
        required = schema.get("required", ())
        return {
            name: self.value(name, member)
            for name, member in schema.get("properties", {}).items()
            if name in required or self._rng.random() < OPTIONAL
        }

    def value(self, name: str, schema: Mapping[str, Any]) -> Any:
        """A value for one property."""
        schema = _without_null(schema)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self._rng.choice(schema["enum"])
        examples = [example for example in _examples(schema) if _has_type(example, schema)]
        if examples and self._rng.random() < EXAMPLE:
            return self._rng.choice(examples)
        make = {
            "array": self._array,
            "object": self._object,
            "boolean": self._boolean,
            "integer": self._integer,
            "number": self._number,
        }.get(str(schema.get("type")), self._string)
        return make(name, schema, examples)

    def _array(self, name: str, schema: Mapping[str, Any], examples: list[Any]) -> list[Any]:
        low = schema.get("minItems", 1)
        length = min(low + self._rng.randrange(2), schema.get("maxItems", low + 1))
        return [self.value(_singular(name), schema.get("items", {})) for _ in range(length)]

    def _object(self, name: str, schema: Mapping[str, Any], examples: list[Any]) -> dict[str, Any]:
        if "properties" in schema:
            return self.members(schema)
        if examples:
            return self._rng.choice(examples)
        member = schema.get("additionalProperties")
        return {"sample": self.value("sample", member)} if isinstance(member, dict) else {}

    def _boolean(self, name: str, schema: Mapping[str, Any], examples: list[Any]) -> bool:
        return self._rng.random() < 0.5

    def _integer(self, name: str, schema: Mapping[str, Any], examples: list[Any]) -> int:
        if name == "id" or name.endswith("_id"):
            keys = [key for key in self._vocabulary.keys(name, self._tables) if _is_int(key)]
            if keys:
                return self._rng.choice(keys)
        known = [value for value in self._vocabulary.of_column(name, self._tables, int) if _within(value, schema)]
        if known:
            return self._rng.choice(known)
        low, high = _bounds(schema, 1, 10)
        return self._rng.randint(int(-(-low // 1)), int(high // 1))

    def _number(self, name: str, schema: Mapping[str, Any], examples: list[Any]) -> float:
        known = self._vocabulary.of_column(name, self._tables, (int, float))
        known = [value for value in known if _within(value, schema)]
        if known:
            return self._rng.choice(known)
        low, high = _bounds(schema, 0.5, 100.0)
        return round(low + (high - low) * self._rng.uniform(0.1, 0.9), 2)

    def _string(self, name: str, schema: Mapping[str, Any], examples: list[Any]) -> str:
        if "format" in schema and schema["format"] in _FORMATS:
            return _FORMATS[schema["format"]]
        if name == "id" or name.endswith("_id"):
            keys = [key for key in self._vocabulary.keys(name, self._tables) if isinstance(key, str)]
            if keys:
                return self._rng.choice(keys)
        known = [value for value in self._vocabulary.of_column(name, self._tables, str) if _fits(value, schema)]
        if known and self._rng.random() < 0.9:
            return self._rng.choice(known)
        if examples:
            return self._rng.choice(examples)
        kind = next((kind for pattern, kind in _FORMAT_OF_NAMES if pattern.search(name)), None)
        text = _FORMATS[kind] if kind else f"{name.replace('_', ' ') or 'sample'} {self._rng.randrange(1000)}"
        text = text[: schema.get("maxLength", len(text))]
        return text.ljust(schema.get("minLength", 0), "x")


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of the first alternative that is not null, with what is said beside the alternatives."""
    for keyword in ("anyOf", "oneOf", "allOf"):
        members = [m for m in schema.get(keyword, ()) if m.get("type") != "null"]
        if members:
            beside = {key: value for key, value in schema.items() if key not in (keyword, "type")}
            # a type written beside the alternatives holds for all of them
            chosen = next((m for m in members if m.get("type") == schema.get("type")), members[0])
            return _without_null({**beside, **chosen})
    return schema


def _examples(schema: Mapping[str, Any]) -> Iterator[Any]:
    if "example" in schema:
        yield schema["example"]
    examples = schema.get("examples", ())
    for example in examples.values() if isinstance(examples, dict) else examples:
        yield example["value"] if isinstance(example, dict) and "value" in example else example


_PYTHON_TYPES = {"string": str, "boolean": bool, "array": list, "object": dict, "number": (int, float), "integer": int}


def _has_type(value: Any, schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    expected = _PYTHON_TYPES.get(kind) if isinstance(kind, str) else None
    if expected is None:
        return True
    return isinstance(value, expected) and (kind == "boolean" or not isinstance(value, bool))


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _within(value: float, schema: Mapping[str, Any]) -> bool:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    return (
        (low is None or value >= low)
        and (high is None or value <= high)
        and (above is None or value > above)
        and (below is None or value < below)
    )


def _bounds(schema: Mapping[str, Any], low: float, high: float) -> tuple[float, float]:
    """The range to choose from: what the schema says, completed by the usual `low` and `high`."""
    step = 1 if schema.get("type") == "integer" else 0
    above = [schema[key] + extra for key, extra in (("minimum", 0), ("exclusiveMinimum", step)) if key in schema]
    below = [schema[key] - extra for key, extra in (("maximum", 0), ("exclusiveMaximum", step)) if key in schema]
    if above and below:
        return max(above), min(below)
    if above:
        return max(above), max(high, max(above) + 9)
    if below:
        return min(low, min(below) - 9), min(below)
    return low, high


def _fits(text: str, schema: Mapping[str, Any]) -> bool:
    if not schema.get("minLength", 0) <= len(text) <= schema.get("maxLength", len(text)):
        return False
    return "pattern" not in schema or re.search(schema["pattern"], text) is not None


def _words(title: str) -> set[str]:
    """The words of an operation's name, and neighbouring words together (`order_item`)."""
    words = title.removesuffix("Arguments").lower().split("_")
    return {"_".join(words[start:stop]) for start in range(len(words)) for stop in range(start + 1, len(words) + 1)}


def _singular(name: str) -> str:
    if name.endswith("ies"):
        return f"{name[:-3]}y"
    if re.search(r"(ss|x|ch|sh)es$", name):
        return name[:-2]
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else name
