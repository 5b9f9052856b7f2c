"""Concepts against environments whose domain is known, because rules made them."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy")
pytest.importorskip("sklearn")

from curation.concepts import grow
from curation.diversity import NGRAMS_THRESHOLD, Item, measure
from curation.ngrams import ngram_vectors
from curation.views import View, view_text
from pipeline.blueprints.make import blueprint, domain_names, shipped_domain
from pipeline.model import Environment

DOMAINS = domain_names()[::4]


@pytest.fixture(scope="module")
def environments() -> list[Environment]:
    return [blueprint(shipped_domain(name), 3, index).environment for name in DOMAINS for index in range(3)]


@pytest.mark.parametrize("view", [View.all, View.tasks, View.tools, View.scenario])
def test_the_concepts_found_are_the_domains(environments: list[Environment], view: View) -> None:
    items = [Item(e.name, view_text(e, view), {"domain": str(e.domain)}) for e in environments]
    vectors = ngram_vectors([item.text for item in items])
    measured = measure(items, vectors, NGRAMS_THRESHOLD, tree=grow(vectors))
    assert measured.ari_vs_known is not None
    assert measured.ari_vs_known >= 0.8
    assert abs(measured.concepts - len(DOMAINS)) <= 0.2 * len(DOMAINS)


def test_environments_of_one_domain_are_not_told_apart_by_their_names(environments: list[Environment]) -> None:
    for environment in environments:
        text = view_text(environment, View.all).lower()
        assert environment.title.lower() not in text
