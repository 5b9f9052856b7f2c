"""The quick test says yes only where jsonschema does, and does say yes to usual arguments."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pipeline.runtime.accepting import acceptor

words = st.sampled_from(["", "a", "ab", "abc", "é"])
numbers = st.integers(-3, 3) | st.sampled_from([0.0, 1.0, -0.5, 1e300, float("nan"), float("inf")])
values = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
kinds = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
small = st.integers(0, 3)
schemas: st.SearchStrategy[Any] = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": kinds,
            "enum": st.lists(values, min_size=1, max_size=3),
            "minimum": numbers,
            "exclusiveMinimum": numbers,
            "maximum": numbers,
            "exclusiveMaximum": numbers,
            "minLength": small,
            "maxLength": small,
            "pattern": st.sampled_from(["^a", "b$", "."]),
            "minItems": small,
            "maxItems": small,
            "format": st.just("date"),
            "title": words,
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": kinds,
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "items": inner,
            "properties": st.dictionaries(words, inner, max_size=3),
            "required": st.lists(words, max_size=2, unique=True),
            "additionalProperties": st.booleans() | inner,
        },
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(schemas, values)
def test_what_it_accepts_jsonschema_accepts(schema: dict[str, Any], value: Any) -> None:
    accepts = acceptor(schema)
    assert accepts is not None
    if accepts(value):
        assert Draft202012Validator(schema).is_valid(value)


ORDER = {
    "type": "object",
    "title": "create_orderArguments",
    "properties": {
        "order_id": {"type": "integer", "minimum": 1, "title": "Order Id", "description": "which"},
        "email": {"anyOf": [{"type": "string", "format": "email", "maxLength": 40}, {"type": "null"}]},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"sku": {"type": "string", "pattern": "^[A-Z]"}, "price": {"type": "number"}},
                "required": ["sku"],
            },
        },
        "state": {"type": "string", "enum": ["open", "paid"], "default": "open"},
        "notes": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["order_id"],
}


@pytest.mark.parametrize(
    "arguments",
    [
        {"order_id": 1},
        {"order_id": 3, "email": None, "state": "paid", "unheard_of": [1]},
        {"order_id": 3, "email": "a@b", "lines": [{"sku": "A1", "price": 2.5}, {"sku": "B"}], "notes": {"a": "b"}},
    ],
)
def test_usual_arguments_pass_without_jsonschema(arguments: dict[str, Any]) -> None:
    accepts = acceptor(ORDER)
    assert accepts is not None
    assert accepts(arguments)
    assert Draft202012Validator(ORDER).is_valid(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"order_id": 0},
        {"order_id": True},
        {"order_id": "1"},
        {"order_id": 1, "email": "x" * 41},
        {"order_id": 1, "lines": [{"price": 1}]},
        {"order_id": 1, "lines": [{"sku": "a1"}]},
        {"order_id": 1, "state": "lost"},
        {"order_id": 1, "notes": {"a": 1}},
    ],
)
def test_what_does_not_fit_is_never_accepted(arguments: dict[str, Any]) -> None:
    accepts = acceptor(ORDER)
    assert accepts is not None
    assert not accepts(arguments)


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {"oneOf": [{}]},
        {"$ref": "#"},
        {"type": ["string", "null"]},
        {"type": "file"},
        {"items": [{}]},
        {"required": 1},
    ],
)
def test_what_it_does_not_understand_is_left_to_jsonschema(schema: Any) -> None:
    assert acceptor(schema) is None
