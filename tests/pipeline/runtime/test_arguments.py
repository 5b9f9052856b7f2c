"""Sampled arguments fit the schema, name rows that exist, and are the same for the same seed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from pipeline.model import Environment, TableRows, TableSchema
from pipeline.runtime.arguments import sample_arguments
from pipeline.runtime.build import build
from tests.pipeline.runtime.programs import NOW, loaded

SNAPSHOT = build(
    [
        TableSchema("drivers", "CREATE TABLE drivers(id INTEGER PRIMARY KEY, full_name TEXT, rating REAL, state TEXT)"),
        TableSchema(
            "deliveries",
            "CREATE TABLE deliveries(id INTEGER PRIMARY KEY, handled_by INTEGER REFERENCES drivers(id), state TEXT)",
        ),
        TableSchema("categories", "CREATE TABLE categories(id TEXT PRIMARY KEY, name TEXT)"),
    ],
    [
        TableRows("drivers", ("INSERT INTO drivers VALUES (41, 'Ann', 4.5, 'resting'), (42, 'Kit', 3.0, 'resting')",)),
        TableRows("deliveries", ("INSERT INTO deliveries VALUES (7, 41, 'open'), (8, NULL, 'done')",)),
        TableRows("categories", ("INSERT INTO categories VALUES ('food', 'Food')",)),
    ],
    now=NOW,
).snapshot


def samples(properties: dict[str, Any], title: str = "do_somethingArguments", count: int = 30) -> list[dict[str, Any]]:
    schema = {"type": "object", "title": title, "properties": properties, "required": list(properties)}
    found = [sample_arguments(schema, SNAPSHOT, seed=seed) for seed in range(count)]
    for arguments in found:
        jsonschema.validate(arguments, schema)
    return found


def values(name: str, schema: dict[str, Any], **options: Any) -> set[Any]:
    return {arguments[name] for arguments in samples({name: schema}, **options)}


def test_ids_name_rows_of_the_table_they_are_for() -> None:
    integer = {"type": "integer"}
    assert values("driver_id", integer) == {41, 42}
    assert values("handled_by", integer) == {41}
    assert values("assigned_driver_id", integer) == {41, 42}
    assert values("delivery_id", integer) == {7, 8}
    assert values("category_id", {"type": "string"}) == {"food"}
    assert values("id", integer, title="get_deliveryArguments") == {7, 8}
    assert values("id", integer, title="list_driversArguments") == {41, 42}


def test_words_and_numbers_are_those_of_the_database() -> None:
    text = {"type": "string"}
    assert {"Ann", "Kit"} <= values("full_name", text)
    assert "open" in values("state", text, title="update_deliveryArguments")
    assert "resting" not in values("state", text, title="update_deliveryArguments")
    assert values("rating", {"type": "number", "maximum": 4}) == {3.0}


def test_examples_enums_formats_and_bounds_are_respected() -> None:
    assert values("size", {"type": "integer", "enum": [3, 5]}) == {3, 5}
    assert values("kind", {"const": "x"}) == {"x"}
    assert "blue" in values("colour", {"type": "string", "example": "blue"})
    assert "red" in values("colour", {"type": "string", "examples": ["red"]})
    assert values("when", {"type": "string", "format": "date"}) == {"2026-01-15"}
    assert all(10 < value < 12 for value in values("n", {"type": "integer", "exclusiveMinimum": 10, "maximum": 11}))
    assert all(-5 <= value <= -4 for value in values("x", {"type": "number", "minimum": -5, "maximum": -4}))
    assert {len(value) for value in values("code", {"type": "string", "minLength": 30, "maxLength": 31})} <= {30, 31}
    nullable = {"anyOf": [{"type": "integer", "minimum": 3, "maximum": 3}, {"type": "null"}], "type": "integer"}
    assert values("n", nullable) == {3}


def test_nested_values_are_made_like_the_others() -> None:
    item = {
        "type": "object",
        "properties": {"driver_id": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["driver_id"],
    }
    for arguments in samples(
        {
            "stops": {"type": "array", "items": item, "minItems": 2},
            "driver_ids": {"type": "array", "items": {"type": "integer"}},
        }
    ):
        assert {stop["driver_id"] for stop in arguments["stops"]} <= {41, 42}
        assert len(arguments["stops"]) >= 2
        assert set(arguments["driver_ids"]) <= {41, 42}


def test_optional_arguments_are_given_sometimes() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a"]}
    given_names = [set(sample_arguments(schema, SNAPSHOT, seed=seed)) for seed in range(40)]
    assert all("a" in names for names in given_names)
    assert 5 < sum("b" in names for names in given_names) < 35


def test_the_same_seed_gives_the_same_arguments() -> None:
    schema = {"type": "object", "title": "xArguments", "properties": {"n": {"type": "number"}}, "required": ["n"]}
    drawn = [sample_arguments(schema, SNAPSHOT, seed=seed) for seed in range(20)]
    assert drawn == [sample_arguments(schema, SNAPSHOT, seed=seed) for seed in range(20)]
    assert len({arguments["n"] for arguments in drawn}) > 10


def test_real_tools_get_arguments_that_fit(real: list[Environment]) -> None:
    for environment in real:
        found = loaded(environment)
        for tool in found.tools:
            for seed in range(3):
                arguments = sample_arguments(tool.input_schema, found.template, seed=seed)
                jsonschema.Draft202012Validator(tool.input_schema).validate(arguments)


SCHEMAS = st.deferred(
    lambda: st.one_of(
        st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "number", "boolean"])}),
        st.fixed_dictionaries({"type": st.just("integer"), "minimum": st.integers(-9, 9)}),
        st.fixed_dictionaries({"type": st.just("number"), "exclusiveMaximum": st.integers(-9, 99)}),
        st.fixed_dictionaries({"type": st.just("string"), "minLength": st.integers(0, 40)}),
        st.fixed_dictionaries({"enum": st.lists(st.integers() | st.text(), min_size=1)}),
        st.fixed_dictionaries({"type": st.just("array"), "items": SCHEMAS, "minItems": st.integers(0, 3)}),
        st.fixed_dictionaries({"anyOf": st.lists(SCHEMAS, min_size=1, max_size=2)}),
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from(["id", "state", "x"]), SCHEMAS)}
        ),
    )
)


@given(
    st.dictionaries(st.sampled_from(["id", "driver_id", "name", "full_name", "at", "n"]), SCHEMAS), st.integers(0, 9)
)
def test_arguments_fit_any_such_schema(properties: dict[str, Any], seed: int) -> None:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    jsonschema.validate(sample_arguments(schema, SNAPSHOT, seed=seed), schema)


def test_an_empty_database_is_enough() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("VACUUM")
        empty = connection.serialize()
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
    assert sample_arguments(schema, empty, seed=0)["id"] > 0
