"""The filter language of the environments list and of `--where`."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.filters import FIELDS, NUMBER_FIELDS, TEXT_FIELDS, FilterError, Term, parse


@dataclass
class Row:
    name: str = "airline_lost_bag"
    title: str = "Airline: lost bag"
    origin: str = "blueprint"
    domain: str | None = "travel"
    tables: int | None = 12
    rows: int | None = 2400
    tools: int | None = 14
    tasks: int | None = 10
    code_verifiers: int | None = 10
    sql_verifiers: int | None = 7
    missing: tuple[str, ...] = ()
    check: str | None = "pass"
    audit: str | None = None
    concept: int | None = 4
    aside: str | None = None
    review: str | None = None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "bag",
        "BAG airline",
        '"lost bag"',
        "travel",
        "domain:trav",
        "domain=travel",
        "domain:food,travel",
        "tables>10",
        "tables>=12 tables<=12",
        "rows>2k",
        "rows<0.01m",
        "verifiers=17",
        "code:10 sql:7",
        "check:pass",
        "-check:fail",
        "-museum",
        "audit:none",
        "missing:none",
        "concept:4",
        "Tables>10",
        "origin:none,blueprint",
        "checks=pass and tables>10",
    ],
)
def test_lets_the_row_through(text: str) -> None:
    assert parse(text)(Row())


@pytest.mark.parametrize(
    "text",
    [
        "museum",
        "bag museum",
        "domain=trav",
        "tables>12",
        "tables<12",
        "rows>3k",
        "-bag",
        "check:fail",
        "audit:loose",
        "missing:code",
        "tables:none",
        '-"lost bag"',
    ],
)
def test_keeps_the_row_out(text: str) -> None:
    assert not parse(text)(Row())


def test_unknown_numbers_meet_only_none() -> None:
    row = Row(tables=None, code_verifiers=None, sql_verifiers=3)
    assert parse("tables:none")(row)
    assert not parse("tables>0")(row)
    assert not parse("tables<0")(row)
    assert parse("verifiers:3")(row), "a sum is of what is known"


def test_missing_parts_are_matched_one_by_one() -> None:
    row = Row(missing=("spec", "code"))
    assert parse("missing:code")(row)
    assert parse("missing=spec")(row)
    assert not parse("missing:none")(row)


def test_quoted_punctuation_is_not_syntax() -> None:
    assert parse('"airline: lost"')(Row())
    assert parse('"-"')(Row(title="a - b"))
    assert parse('title:"a,b"')(Row(title="x a,b"))
    assert not parse('title:"a,b"')(Row(title="a"))


@pytest.mark.parametrize(
    ("text", "token", "words"),
    [
        ("bag tabels>10", "tabels>10", ["tabels", "tables", "domain", "verifiers"]),
        ("colour:red", "colour:red", ["colour", "Fields"]),
        ("tables>many", "tables>many", ["tables", "number", "many"]),
        ("tables>", "tables>", ["value"]),
        ("tables>none", "tables>none", ["number"]),
        ("domain>travel", "domain>travel", ["text", "domain:word"]),
        ('title:"open', "title:open", ["quote"]),
        ("-", "-", ["word"]),
        ("domain:a,,b", "domain:a,,b", ["value"]),
    ],
)
def test_a_mistake_names_the_term_and_what_is_valid(text: str, token: str, words: list[str]) -> None:
    with pytest.raises(FilterError) as caught:
        parse(text)
    assert caught.value.token == token
    for word in words:
        assert word in str(caught.value)


values = st.text(min_size=1).map(str.lower).filter(lambda value: value.lower() == value)
numbers = st.integers(0, 10**6).map(str) | st.just("none")
terms = st.one_of(
    st.builds(
        Term, st.lists(values, min_size=1, max_size=3).map(tuple), st.just(""), st.just(""), negated=st.booleans()
    ),
    st.builds(
        Term,
        st.lists(values, min_size=1, max_size=3).map(tuple),
        st.sampled_from(TEXT_FIELDS),
        st.sampled_from([":", "="]),
        negated=st.booleans(),
    ),
    st.builds(
        Term,
        st.lists(numbers, min_size=1, max_size=3).map(tuple),
        st.sampled_from(NUMBER_FIELDS),
        st.sampled_from([":", "="]),
        negated=st.booleans(),
    ),
    st.builds(
        Term,
        st.integers(0, 10**6).map(lambda n: (str(n),)),
        st.sampled_from(NUMBER_FIELDS),
        st.sampled_from([">", ">=", "<", "<="]),
        negated=st.booleans(),
    ),
)


@given(st.lists(terms, max_size=4))
def test_a_filter_written_out_reads_back_the_same(wanted: list[Term]) -> None:
    assert parse(" ".join(map(str, wanted))).terms == tuple(wanted)


@given(st.text())
def test_any_text_is_a_filter_or_a_message(text: str) -> None:
    try:
        parse(text)(Row())
    except FilterError as error:
        assert str(error)


@dataclass
class Blank:
    name: str = "x"
    title: str = ""
    origin: None = None
    domain: None = None
    missing: tuple[str, ...] = ()
    check: None = None
    audit: None = None
    concept: None = None
    aside: None = None
    review: None = None
    tables: None = None
    rows: None = None
    tools: None = None
    tasks: None = None
    code_verifiers: None = None
    sql_verifiers: None = None


@given(st.sampled_from([name for name in FIELDS if name != "name"]))
def test_a_row_that_knows_nothing_is_none_everywhere(name: str) -> None:
    assert parse(f"{name}:none")(Blank())
    assert not parse(f"-{name}:none")(Blank())


def test_and_joins_terms_and_can_be_looked_for_in_quotes() -> None:
    assert parse("bag and airline").terms == parse("bag airline").terms
    assert not parse('"and"')(Row())
    assert parse('"and"')(Row(title="Sand and gravel"))
    assert parse(str(parse('"and"'))).terms == parse('"and"').terms
