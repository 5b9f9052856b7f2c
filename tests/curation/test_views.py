"""What environments are compared by."""

from __future__ import annotations

import pytest

from curation.views import View, column_names, mask, own_names, view_text
from pipeline.model import Environment, Operation, TableSchema

ETSY = Environment(
    name="etsy_digital_downloads",
    title="Etsy Digital Downloads",
    description="Etsy sells digital goods. On Etsy's pages, ETSY sellers offer downloads; write to help@etsy.com.",
    tasks=("Add a listing to my Etsy shop.", "Find all downloads of “Planner”."),
    schema=(
        TableSchema(
            "listings",
            "CREATE TABLE listings (id INTEGER PRIMARY KEY, price NUMERIC(10, 2) CHECK (price IN (1, 2)), -- a, b\n"
            ' "title" TEXT, [kind] TEXT, FOREIGN KEY (id) REFERENCES shops(id), UNIQUE (title, kind)) STRICT;',
        ),
    ),
    operations=(Operation("create_listing", "POST", "/listings", summary="Put something on sale"),),
)


def test_each_view_shows_its_parts() -> None:
    assert "sells digital goods" in view_text(ETSY, View.scenario)
    assert view_text(ETSY, View.tasks).splitlines()[0] == "Add a listing to my   shop."
    assert view_text(ETSY, View.schema) == "listings: id, price, title, kind"
    assert view_text(ETSY, View.tools) == "create listing: Put something on sale"
    everything = view_text(ETSY, View.all)
    assert all(part in everything for part in ("sells digital goods", "Planner", "create listing"))


@pytest.mark.parametrize("view", list(View))
def test_a_view_of_an_environment_that_has_nothing_is_empty(view: View) -> None:
    assert view_text(Environment("empty"), view) == ""


def test_a_scenarios_own_name_is_masked_in_every_case_and_with_its_possessive() -> None:
    text = view_text(ETSY, View.all).lower()
    assert "etsy" not in text
    assert "downloads" in text


@pytest.mark.parametrize(
    ("title", "description", "names"),
    [
        ("Samsara (Fleet & Asset Maintenance)", "Samsara tracks vehicles.", ["samsara fleet asset maintenance", "samsara"]),
        ("Library", "A library lends books to readers.", []),
        ("gofundme", "GoFundMe raises money.", ["gofundme"]),
        ("Riverside Library", "The Riverside Library is a public library.", ["riverside library", "riverside"]),
        ("", "Only a name in the catalog, northwind_traders, has goods.", ["acme"]),
    ],
)  # fmt: skip
def test_a_word_that_says_what_it_does_is_not_a_name(title: str, description: str, names: list[str]) -> None:
    assert own_names(Environment(title.partition(" (")[0] or "acme", title, description)) == names


def test_a_name_is_found_however_it_is_spaced() -> None:
    lyft = Environment("lyft_rides", "Lyft Rides", "Lyft takes people.")
    assert mask("lyft-rides, LYFT_RIDES, create_lyft_trip, lyfting", lyft).split() == [
        ",",
        ",",
        "create_",
        "_trip,",
        "lyfting",
    ]


def test_columns_are_read_without_running_the_ddl() -> None:
    assert column_names(TableSchema("t", "CREATE TABLE t (a INT, b TEXT DEFAULT 'x(', c)); DROP TABLE t")) == [
        "a",
        "b",
        "c",
    ]
    assert column_names(TableSchema("t", "not DDL at all")) == []
