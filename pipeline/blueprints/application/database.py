"""The tables of a variant as DDL, and the rows of a world as INSERT statements."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.blueprints.language.domain import Domain, Entity, Field
from pipeline.blueprints.rows.world import Row, World
from pipeline.blueprints.verifiers.sql_source import literal
from pipeline.model import TableRows, TableSchema

COLUMN_TYPES = {
    "row": "INTEGER",
    "int": "INTEGER",
    "money": "REAL",
    "real": "REAL",
    "bool": "BOOLEAN",
    "date": "DATE",
    "stamp": "DATETIME",
}
"""The declared type of a column by kind; everything else is TEXT."""


def schema(domain: Domain) -> tuple[TableSchema, ...]:
    """The DDL of every table, with keys, references and enumerated values."""
    return tuple(
        TableSchema(entity.table, _ddl(domain, entity), tuple(_indexes(entity))) for entity in domain.entities.values()
    )


def _ddl(domain: Domain, entity: Entity) -> str:
    lines = ["id INTEGER PRIMARY KEY"]
    lines += [_column(domain, one) for one in entity.fields.values()]
    body = ",\n    ".join(lines)
    return f"CREATE TABLE {entity.table} (\n    {body}\n);"


def _column(domain: Domain, one: Field) -> str:
    kind = one.notation.kind
    words = [one.column, COLUMN_TYPES.get(kind.base, "TEXT")]
    if not kind.nullable:
        words.append("NOT NULL")
    if one.notation.unique:
        words.append("UNIQUE")
    if one.notation.form == "stamp":
        words.append("DEFAULT CURRENT_TIMESTAMP")
    if one.reference:
        words.append(f"REFERENCES {domain.entities[one.reference].table}(id)")
    elif kind.choices:
        words.append(f"CHECK ({one.column} IN ({', '.join(map(literal, kind.choices))}))")
    return " ".join(words)


def _indexes(entity: Entity) -> Iterator[str]:
    for one in entity.fields.values():
        if one.reference or one.notation.form == "state":
            yield f"CREATE INDEX idx_{entity.table}_{one.column} ON {entity.table}({one.column});"


def sample(world: World) -> tuple[TableRows, ...]:
    """The INSERT statements of every row. An entity without rows has none, and is not listed."""
    return tuple(
        TableRows(entity.table, tuple(_insert(entity, row) for row in world[entity.name]))
        for entity in world.domain.entities.values()
        if world[entity.name]
    )


def _insert(entity: Entity, row: Row) -> str:
    columns = ["id", *(one.column for one in entity.fields.values())]
    values = [row.id, *(stored(getattr(row, name)) for name in entity.fields)]
    return f"INSERT INTO {entity.table} ({', '.join(columns)}) VALUES ({', '.join(map(literal, values))});"


def stored(value: object) -> object:
    """A field's value as its column holds it: a row is its id."""
    return value.id if isinstance(value, Row) else value
