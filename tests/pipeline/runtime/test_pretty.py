"""Indented JSON is what json.dumps makes, byte for byte."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.runtime.pretty import indented

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(values)
def test_it_is_what_json_dumps_writes(value: Any) -> None:
    assert indented(value) == json.dumps(value, indent=2, ensure_ascii=False)


def test_a_body_of_rows() -> None:
    body = {"count": 2, "rows": [{"id": 1, "tags": [], "name": "é\n"}, {"id": 2, "tags": ["a", "b"], "of": {}}]}
    assert indented(body) == json.dumps(body, indent=2, ensure_ascii=False)
