"""Reading replies: what is nearly right is read, what is cut is never completed by guessing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.llm.text import Unreadable, joined, problems_with, read_json, split_thinking, unfence

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(st.text(max_size=6), VALUES, min_size=1, max_size=4) | st.lists(
    VALUES, min_size=1, max_size=4
)


@given(
    DOCUMENTS,
    st.sampled_from(["{}", "```json\n{}\n```", "Here it is:\n```\n{}\n```\nI hope it helps!", "Sure. {}\n\nDone."]),
)
def test_a_json_document_is_read_however_it_is_wrapped(document, wrapping):
    read = read_json(wrapping.replace("{}", json.dumps(document)))
    assert read.value == document
    assert not read.repaired


@given(DOCUMENTS, st.data())
def test_a_cut_document_is_never_completed(document, data):
    text = json.dumps(document)
    cut = data.draw(st.integers(1, len(text) - 1))
    with pytest.raises(Unreadable):
        read_json(text[:cut])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ("{'a': 'b'}", {"a": "b"}),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
        ('{"a": 1, // the first\n "b": 2}', {"a": 1, "b": 2}),
        ('{"a": "say "hi" to them"}', {"a": 'say "hi" to them'}),
    ],
)
def test_small_faults_are_repaired_and_said_to_be(text, value):
    read = read_json(text)
    assert read.value == value
    assert read.repaired


def test_a_raw_line_break_in_a_string_is_no_fault():
    assert read_json('{"code": "a\nb"}').value == {"code": "a\nb"}


@pytest.mark.parametrize("text", ["", "I am sorry, I cannot do that.", "]", "42"])
def test_no_json_is_said_to_be_no_json(text):
    with pytest.raises(Unreadable, match="JSON"):
        read_json(text)


@pytest.mark.parametrize(
    ("text", "thinking", "rest"),
    [
        ("<think>first\nsecond</think>\n\nanswer", "first\nsecond", "answer"),
        ("  <thinking>a</thinking>b", "a", "b"),
        ("no tag here, then</think>answer", "no tag here, then", "answer"),  # the template opened it
        ("<think>never closed", "never closed", ""),
        ("plain <b>answer</b>", "", "plain <b>answer</b>"),
        ('{"x": "<think>quoted</think>"}', "", '{"x": "<think>quoted</think>"}'),
    ],
)
def test_thinking_is_split_off_and_kept(text, thinking, rest):
    assert split_thinking(text) == (thinking, rest)


def test_the_longest_fenced_block_is_the_code():
    assert (
        unfence("Run `x`:\n```sh\npip install x\n```\nthen\n```python\nimport x\nx.go()\n```\n") == "import x\nx.go()"
    )
    assert unfence("import x\n") == "import x"


@given(st.text(alphabet="abc\n", min_size=40, max_size=80), st.integers(1, 39), st.integers(16, 20))
def test_a_continuation_that_repeats_the_last_words_joins_without_repeating_them(text, at, overlap):
    at = min(at, len(text) - 1)
    repeated = text[max(0, at - overlap) :]
    whole = joined(text[:at], repeated)
    assert whole.startswith(text[:at])
    assert len(whole) <= at + len(repeated)
    assert joined("x = 1\ny = ", "2\nz = 3") == "x = 1\ny = 2\nz = 3"


def test_a_continuation_that_opens_a_new_fence_joins_inside_the_old_one():
    assert joined("```python\nx = 1\n", "```python\ny = 2\n```") == "```python\nx = 1\ny = 2\n```"


def test_departures_from_a_schema_name_their_path():
    schema = {"type": "object", "properties": {"n": {"type": "array", "items": {"type": "integer"}}}, "required": ["m"]}
    told = problems_with({"n": [1, "two"]}, schema)
    assert told == ["at $: 'm' is a required property", "at $.n[1]: 'two' is not of type 'integer'"]
