"""What Datasette shows of a workspace: the index of its environments, and a page for each one's database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.model import Environment
from studio.datasette import Entry, Page, TableText, holds

TOOLS_NAMED = 5
"""How many tools a table's description names before it only counts them."""


class EnvironmentPages:
    """The environments of a catalog, or only those in `names`.

    `snapshot` gives the file with an environment's initial database; it is called when somebody opens that page.
    """

    def __init__(self, catalog: Catalog, snapshot: Callable[[Environment], Path], names: Iterable[str] = ()) -> None:
        self._catalog, self._snapshot, self._names = catalog, snapshot, frozenset(names)

    def page(self, name: str) -> Page:
        """An environment's initial database. Raises UserError for a name that is unknown or not among `names`."""
        env = self._catalog.environment(name)
        if self._names and env.name not in self._names:
            raise UserError(f"{name} is not among the environments that are shown here.")
        return Page(
            path=self._snapshot(env),
            title=env.title or env.name,
            description=env.description,
            tables=table_texts(env),
        )

    def entries(self, words: str) -> list[Entry]:
        """The environments whose name, title or domain holds all of the words, by name."""
        return [
            Entry(each.name, each.title, each.domain, each.tables, each.rows, each.tools, each.tasks, each.check)
            for each in self._catalog.summaries()
            if (not self._names or each.name in self._names)
            and holds(f"{each.name} {each.title} {each.domain or ''}", words)
        ]


def table_texts(env: Environment) -> dict[str, TableText]:
    """What an environment's API says about its tables: the tools that use each, and what its columns mean.

    A column is described by the response field or parameter of its name, of an operation that reads it from that
    table alone.
    """
    texts = {}
    for table in (schema.name for schema in env.schema):
        tools = [operation.operation_id for operation in env.operations if table in operation.tables]
        columns: dict[str, str] = {}
        for operation in env.operations:
            said = dict(_descriptions(operation.response)) | dict(_descriptions(operation.parameters))
            for column in operation.fields.get(table, ()):
                if column in said and _tables_with(column, operation.fields) == [table]:
                    columns.setdefault(column, said[column])
        texts[table] = TableText(_used_by(tools), columns)
    return texts


def _used_by(tools: list[str]) -> str:
    if not tools:
        return "No tool says that it uses this table."
    more = len(tools) - TOOLS_NAMED
    return f"Used by {', '.join(tools[:TOOLS_NAMED])}{f' and {more} more tools' if more > 0 else ''}."


def _tables_with(column: str, fields: Mapping[str, Any]) -> list[str]:
    return [table for table, columns in fields.items() if column in columns]


def _descriptions(schema: Any) -> Iterator[tuple[str, str]]:
    """Every described field of a parameter or response description, however deep, by name."""
    if isinstance(schema, list):
        for item in schema:
            yield from _descriptions(item)
    elif isinstance(schema, dict):
        for name, value in schema.items():
            if isinstance(value, dict) and isinstance(value.get("description"), str):
                yield name, value["description"]
            yield from _descriptions(value)
