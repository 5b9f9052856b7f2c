"""What is made by rules goes into the catalog once, says so, and survives interruption and edits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.blueprints.make import domain_names, environment
from pipeline.blueprints.synthesis import BATCH, Request, planned, start, synthesise
from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.model import Author, AuthorKind, Part

FIVE = Request(count=5, seed=7)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.open(tmp_path / "catalog.db") as opened:
        yield opened


def make(catalog: Catalog, request: Request) -> list[str]:
    return [made.name for made in synthesise(catalog, request, start(catalog, request))]


def held(catalog: Catalog) -> dict[str, list[tuple]]:
    return {name: [(v.part, v.slot, v.number, v.sha) for v in catalog.current(name)] for name in catalog.names()}


def test_what_is_kept_is_what_was_made(catalog: Catalog):
    names = make(catalog, FIVE)
    assert sorted(names) == catalog.names()
    for (domain, index), name in zip(planned(FIVE), names, strict=True):
        assert catalog.environment(name) == environment(domain, 7, index)


def test_everything_says_that_it_was_made_by_rules_and_from_which_domain(catalog: Catalog):
    for name in make(catalog, FIVE):
        summary = next(summary for summary in catalog.summaries() if summary.name == name)
        assert summary.origin == "blueprint"
        assert summary.domain in domain_names()
        authors = {version.author for version in catalog.current(name)}
        assert authors == {Author(AuthorKind.blueprint, summary.domain)}
        scenario = next(version for version in catalog.current(name) if version.part is Part.scenario)
        assert catalog.extra(scenario) == {"made_by": "rules", "domain": summary.domain}


def test_the_same_request_again_changes_nothing(catalog: Catalog):
    make(catalog, FIVE)
    before = held(catalog)
    make(catalog, FIVE)
    assert held(catalog) == before


def test_more_of_the_same_seed_adds_to_what_is_there(catalog: Catalog):
    make(catalog, FIVE)
    before = held(catalog)
    make(catalog, Request(count=8, seed=7))
    assert len(catalog.names()) == 8
    assert {name: versions for name, versions in held(catalog).items() if name in before} == before


def test_an_edit_is_not_undone(catalog: Catalog):
    name = make(catalog, FIVE)[0]
    person = Author(AuthorKind.person, "ada")
    catalog.put(name, Part.tasks, '["Another task."]', author=person)
    make(catalog, FIVE)
    assert catalog.environment(name).tasks == ("Another task.",)


def test_what_was_finished_before_an_interruption_is_kept_and_the_run_says_so(catalog: Catalog):
    request = Request(count=BATCH + 4, seed=7, domain="farm")
    run = start(catalog, request)
    working = synthesise(catalog, request, run)
    for _ in range(3):
        next(working)
    working.close()
    assert len(catalog.names()) == BATCH
    (kept,) = catalog.runs()
    assert (kept.kind, kept.state, kept.pid) == ("blueprints", "stopped", None)
    make(catalog, request)
    assert len(catalog.names()) == BATCH + 4
    assert catalog.runs()[0].state == "done"


def test_progress_can_be_followed(catalog: Catalog):
    make(catalog, FIVE)
    events = catalog.events()
    assert [event.scenario for event in events if event.kind == "made"] == [
        environment(domain, 7, index).name for domain, index in planned(FIVE)
    ]
    assert [event.data for event in events if event.kind == "progress"] == [{"done": 5, "total": 5}]


def test_domains_take_turns_unless_one_is_asked_for():
    count = len(domain_names())
    assert {domain for domain, _ in planned(Request(count=count, seed=3))} == set(domain_names())
    assert {domain for domain, _ in planned(Request(count=4, seed=3, domain="ledger"))} == {"ledger"}
    with pytest.raises(UserError, match="There is no domain 'shops'"):
        next(planned(Request(count=1, seed=0, domain="shops")))
