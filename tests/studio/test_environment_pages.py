"""What is shown of a workspace in Datasette."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.model import Author, AuthorKind, Environment, Operation, Part, TableSchema
from studio.datasette import TableText
from studio.environment_pages import EnvironmentPages, table_texts


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    author = Author(AuthorKind.person, "test")
    with Catalog.open(tmp_path / "catalog.db") as catalog:
        for name, title, domain in (("ferry", "Ferry office", "travel"), ("zoo", "City Zoo", "leisure")):
            schema = {"tables": [{"name": "animals", "ddl": "CREATE TABLE animals (id INTEGER)", "indexes": []}]}
            catalog.put(name, Part.schema, json.dumps(schema), author=author, title=title, domain=domain)
        yield catalog


def no_snapshot(env: Environment) -> Path:
    raise AssertionError(f"{env.name} was built before anybody opened its page")


def test_the_index_is_searched_without_building_anything(catalog: Catalog) -> None:
    pages = EnvironmentPages(catalog, no_snapshot)
    assert [entry.name for entry in pages.entries("")] == ["ferry", "zoo"]
    assert [entry.name for entry in pages.entries("TRAVEL office")] == ["ferry"]
    assert pages.entries("travel zoo") == []
    (zoo,) = pages.entries("city")
    assert (zoo.title, zoo.domain, zoo.tables, zoo.tasks, zoo.check) == ("City Zoo", "leisure", 1, None, None)


def test_a_page_shows_the_built_database(catalog: Catalog, tmp_path: Path) -> None:
    page = EnvironmentPages(catalog, lambda env: tmp_path / f"{env.name}.db").page("zoo")
    assert (page.path, page.title) == (tmp_path / "zoo.db", "City Zoo")
    assert page.tables == {"animals": TableText("No tool says that it uses this table.")}


def test_only_the_chosen_environments_are_shown(catalog: Catalog) -> None:
    pages = EnvironmentPages(catalog, no_snapshot, ["zoo"])
    assert [entry.name for entry in pages.entries("")] == ["zoo"]
    with pytest.raises(UserError, match="ferry is not among"):
        pages.page("ferry")
    with pytest.raises(UserError, match="Did you mean ferry"):
        pages.page("fery")


def test_tables_say_which_tools_use_them_and_columns_what_the_spec_says() -> None:
    def operation(name: str, fields: dict, response: dict) -> Operation:
        return Operation(name, "GET", f"/{name}", tables=tuple(fields), fields=fields, response=response)

    env = Environment(
        "zoo",
        schema=(TableSchema("animals", ""), TableSchema("keepers", "")),
        operations=(
            operation(
                "list_animals",
                {"animals": ["id", "name"], "keepers": ["id", "shift"]},
                {
                    "id": {"type": "integer", "description": "An id of either table"},
                    "animals": {"type": "array", "items": {"name": {"description": "What visitors call it"}}},
                },
            ),
            operation("get_animal", {"animals": ["id"]}, {"id": {"description": "The animal's number"}}),
            *(operation(f"more_{n}", {"animals": []}, {}) for n in range(5)),
        ),
    )
    texts = table_texts(env)
    assert texts["animals"] == TableText(
        "Used by list_animals, get_animal, more_0, more_1, more_2 and 2 more tools.",
        {"name": "What visitors call it", "id": "The animal's number"},
    )
    assert texts["keepers"] == TableText("Used by list_animals.", {})
