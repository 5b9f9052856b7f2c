"""Parts as a person edits them, and back."""

from __future__ import annotations

import json
import string
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import UserError
from pipeline.model import Part
from pipeline.parts import canonical
from studio.spelling import Spelling, difference, read, spell

NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=8)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=30)


@st.composite
def samples(draw: st.DrawFn) -> str:
    """Sample data whose strings hold anything, semicolons and quotes included."""
    tables = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)):
        quoted = [text.replace("'", "''") for text in draw(st.lists(TEXTS, min_size=1, max_size=3))]
        inserts = [f"INSERT INTO {name} VALUES ({number}, '{text}')" for number, text in enumerate(quoted)]
        tables.append({"table_name": name, "insert_statements": inserts})
    return json.dumps({"tables": tables})


@given(samples())
def test_sample_data_is_edited_as_sql_and_comes_back_as_it_was(content: str):
    spelling = spell(Part.sample, content)
    assert spelling.language == "sql"
    assert read(Part.sample, spelling) == canonical(Part.sample, content)


def test_a_schema_is_edited_as_sql_with_the_indexes_after_their_table():
    tables = [
        {"name": "bags", "ddl": "CREATE TABLE bags (\n  id INTEGER PRIMARY KEY\n)", "indexes": ["CREATE INDEX i ON bags(id)"]},
        {"name": "claims", "ddl": "CREATE TABLE claims (id INTEGER)", "indexes": []},
    ]  # fmt: skip
    content = canonical(Part.schema, json.dumps({"tables": tables}))
    spelling = spell(Part.schema, content)
    assert spelling.text.splitlines()[3:] == ["CREATE INDEX i ON bags(id);", "", "CREATE TABLE claims (id INTEGER);"]
    assert read(Part.schema, spelling) == content


def test_what_sql_cannot_say_stays_json():
    content = canonical(Part.schema, json.dumps({"tables": [{"name": "a", "ddl": "CREATE VIEW a AS SELECT 1"}]}))
    spelling = spell(Part.schema, content)
    assert (spelling.language, spelling.suffix) == ("json", ".json")
    assert read(Part.schema, spelling) == content


def test_what_sql_does_not_show_is_kept():
    rows = {"table_name": "a", "reasoning": "needed", "insert_statements": ["INSERT INTO a VALUES (1);"]}
    spelling = spell(Part.sample, json.dumps({"tables": [rows]}))
    changed = replace(spelling, text=spelling.text + "INSERT INTO a VALUES (2);\nINSERT INTO b VALUES (3);\n")
    first, second = json.loads(read(Part.sample, changed))["tables"]
    assert first == rows | {"insert_statements": ["INSERT INTO a VALUES (1);", "INSERT INTO a VALUES (2)"]}
    assert second == {"table_name": "b", "insert_statements": ["INSERT INTO b VALUES (3)"]}


def test_remarks_stay_with_their_statement():
    text = "-- bags that came; or not\nCREATE TABLE bags (id INTEGER); -- all\n"
    content = read(Part.schema, Spelling(text.replace(" -- all", ""), "sql"))
    assert json.loads(content)["tables"][0]["ddl"].startswith("-- bags that came; or not\nCREATE TABLE bags")


def test_code_is_edited_as_it_is():
    assert spell(Part.code, "import os\n") == Spelling("import os\n", "python")


@pytest.mark.parametrize(
    ("part", "text", "told"),
    [
        (Part.schema, "CREATE TABLE a (id);\n\nDROP TABLE a;", "Line 3: write CREATE TABLE"),
        (Part.schema, "CREATE INDEX i ON b(id);", "Line 1: write CREATE TABLE, or CREATE INDEX after its table"),
        (Part.schema, "CREATE TABLE a (id", "Line 1: the statement that begins here has no end"),
        (Part.sample, "INSERT INTO a VALUES (1);\nUPDATE a SET id = 2;", "Line 2: write INSERT INTO"),
    ],
)
def test_sql_that_cannot_be_read_is_named_by_its_line(part: Part, text: str, told: str):
    with pytest.raises(UserError, match=told):
        read(part, Spelling(text, "sql"))


def test_a_statement_without_an_end_is_edited_as_json_and_still_compared_as_sql() -> None:
    broken, whole = (
        json.dumps({"tables": [{"table_name": "t", "insert_statements": [f"INSERT INTO t VALUES ({text})"]}]})
        for text in ("'it's'", "'it''s'")
    )
    assert spell(Part.sample, broken).language == "json"
    assert [line for line in difference(Part.sample, broken, whole) if line[0] in "+-"] == [
        "--- sample",
        "+++ sample, proposed",
        "-INSERT INTO t VALUES ('it's');",
        "+INSERT INTO t VALUES ('it''s');",
    ]
