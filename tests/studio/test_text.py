"""Text in cells, lines and fields: whatever it contains, it fits and nothing in it reaches the terminal as a command."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from studio.schema_fields import MISSING, Field, fields_of, read_value, written
from studio.widgets.cells import count, cut, duration, fit, one_line, shown
from studio.widgets.source import _folded, highlight, plain


@given(st.text(), st.integers(0, 40), st.booleans())
def test_fitted_text_has_exactly_the_width(text: str, width: int, right: bool) -> None:
    assert cell_len(fit(text, width, right=right)) == width


@given(st.text())
def test_no_control_character_is_left(text: str) -> None:
    assert all(character.isprintable() or character == " " or ord(character) > 0x9F for character in one_line(text))
    assert "\x1b" not in one_line(text)
    assert "\x9b" not in one_line(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("a\nb\tc\r", "a⏎b c"),
        ("\x1b]52;c;aGk=\x07", "�]52;c;aGk=�"),
        ("gnp\u202eexe.", "gnp�exe."),
        ("陳美玲 🧳", "陳美玲 🧳"),
    ],
)
def test_a_name_is_shown_on_one_line_and_does_nothing(text: str, expected: str) -> None:
    assert one_line(text) == expected


def test_what_is_cut_says_so() -> None:
    assert cut("lost baggage", 8) == "lost ba…"
    assert cut("lost baggage", 12) == "lost baggage"
    assert cut("陳美玲", 4) == "陳…"


@pytest.mark.parametrize(
    ("number", "expected"),
    [(None, "·"), (0, "0"), (999, "999"), (1_000, "1.0k"), (2_449, "2.4k"), (99_949, "99.9k"), (99_950, "100k"),
     (999_949, "1000k"), (999_950, "1.0M"), (14_200_000, "14.2M")],
)  # fmt: skip
def test_counts_take_few_cells(number: int | None, expected: str) -> None:
    assert count(number) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.0031, "3 ms"), (0.84, "840 ms"), (41, "41 s"), (182, "3m02"), (6480, "1h48")]
)
def test_durations_take_few_cells(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(None, "∅"), (b"\x00\x01", "<2 bytes>"), ({"a": "é"}, '{"a": "é"}'), (1.5, "1.5")]
)
def test_values_are_shown_as_a_person_reads_them(value: Any, expected: str) -> None:
    assert shown(value) == expected


@example("\x1e\x85", "python")
@given(
    st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(["python", "sql", "json", "diff", "", "no such"])
)
def test_highlighting_changes_no_text(text: str, language: str) -> None:
    def words(lines: list[list[tuple[str, str]]]) -> list[str]:
        return ["".join(piece for piece, _ in line) for line in lines]

    highlighted = words(highlight(text, language))
    expected = words(plain(text))
    assert highlighted[: len(expected)] == expected
    assert not any(highlighted[len(expected) :]), "at most an empty line more"


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])), st.integers(2, 30))
def test_a_folded_line_keeps_its_words_and_fits(text: str, room: int) -> None:
    rows = list(_folded(7, [(text, "")], room))
    assert [number for number, _ in rows] == [7] + [None] * (len(rows) - 1)
    folded = ["".join(piece for piece, _ in row) for _, row in rows]
    assert all(cell_len(row) <= room for row in folded)
    assert "".join(folded).replace(" ", "") == text.replace(" ", "")


def test_lines_break_at_spaces() -> None:
    rows = list(_folded(1, [("What changes is ", ""), ("the status", "ok")], 12))
    assert [row for _, row in rows] == [[("What changes", "")], [("is ", ""), ("the", "ok")], [("status", "ok")]]


# Schemas as fields

SCHEMA = {
    "type": "object",
    "required": ["bag_id", "note"],
    "properties": {
        "amount": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100, "description": "In euros"},
        "bag_id": {"type": "integer"},
        "note": {"anyOf": [{"type": "string", "maxLength": 20}, {"type": "null"}]},
        "state": {"$ref": "#/$defs/State"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "big": {"type": "number", "minimum": 0.5, "maximum": 2147483647.0},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "open": {"type": ["boolean", "null"], "default": None},
    },
    "$defs": {"State": {"type": "string", "enum": ["lost", "found"]}},
}


def test_a_schema_becomes_fields_required_ones_first() -> None:
    fields = {field.name: field for field in fields_of(SCHEMA)}
    assert list(fields) == ["bag_id", "note", "amount", "state", "tags", "big", "either", "open"]
    assert (fields["bag_id"].required, fields["amount"].required) == (True, False)
    assert (fields["amount"].default, fields["bag_id"].default) == (100, MISSING)
    assert fields["amount"].says == "integer, 1 to 1000"
    assert (fields["note"].kind, fields["note"].nullable) == ("string", True)
    assert fields["note"].says == "string or null, at most 20 characters"
    assert fields["state"].choices == ("lost", "found")
    assert fields["big"].says == "number, 0.5 to 2147483647"
    assert fields["tags"].says == "array of string"
    assert (fields["either"].kind, fields["either"].says) == ("any", "integer or string")
    assert (fields["open"].kind, fields["open"].nullable, fields["open"].default) == ("boolean", True, None)


def test_a_schema_that_refers_to_itself_ends() -> None:
    [field] = fields_of({"properties": {"node": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": {"$ref": "#/$defs/Node"}}})
    assert field.name == "node"


keywords = st.sampled_from(
    ["type", "properties", "required", "enum", "const", "default", "anyOf", "oneOf", "allOf", "items", "$ref", "$defs",
     "format", "minimum", "maximum", "maxLength", "description", "nullable"]
)  # fmt: skip
words = st.sampled_from(["integer", "string", "null", "#/$defs/a", "a"])
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keywords | words, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(keywords, any_json), any_json)
def test_a_schema_may_be_anything(schema: dict[str, Any], value: Any) -> None:
    """Schemas come from generated code: whatever is in them, there is a form, and a value is taken or refused."""
    for described in fields_of(schema):
        assert described.says
        assert all(isinstance(written(described, choice), str) for choice in described.choices)
        try:
            read_value(described, written(described, value))
        except ValueError as error:
            assert described.name in str(error)


def field(kind: str, *, nullable: bool = False) -> Field:
    return Field("f", kind, True, nullable, (), MISSING, "", kind)


values = {
    "string": st.text(),
    "integer": st.integers(),
    "number": st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    "boolean": st.booleans(),
    "array": st.lists(st.integers() | st.text()),
    "object": st.dictionaries(st.text(), st.integers() | st.none()),
    "any": st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text()),
}


@given(st.sampled_from(sorted(values)).flatmap(lambda kind: st.tuples(st.just(kind), values[kind])))
def test_a_value_written_into_a_field_is_read_back(case: tuple[str, Any]) -> None:
    kind, value = case
    text = written(field(kind), value)
    if kind == "string" and value == '""':
        return  # two quotes stand for the empty text
    assert json.dumps(read_value(field(kind), text)) == json.dumps(value)


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("integer", "two", "a whole number"),
        ("integer", "1.5", "a whole number"),
        ("integer", "true", "a whole number"),
        ("boolean", "yes", "true or false"),
        ("array", "{}", "a JSON array"),
        ("object", "[1", "a JSON object"),
    ],
)
def test_what_is_no_value_of_the_type_is_refused_in_words(kind: str, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_value(field(kind), text)


def test_null_is_for_fields_that_allow_it() -> None:
    assert read_value(field("integer", nullable=True), "null") is None
    assert read_value(field("string", nullable=True), "null") == "null", "text is taken as it is"
    with pytest.raises(ValueError, match="whole number"):
        read_value(field("integer"), "null")
