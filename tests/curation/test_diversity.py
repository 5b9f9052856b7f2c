"""A set measured: sets with known concepts, groups, comparison, and what bad input gets."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")

import numpy as np

from curation.diversity import (
    NGRAMS_ONLY,
    Item,
    compare,
    document,
    keep_concepts,
    measure,
    read_items,
)
from curation.embeddings import Model
from curation.survey import Survey, compare_with, survey
from curation.views import View
from pipeline.errors import UserError
from pipeline.model import Author, AuthorKind, Part
from pipeline.workspace import Workspace
from tests.curation.sets import KNOWN, fill, new_workspace

NGRAMS = Model(NGRAMS_ONLY)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with new_workspace(tmp_path / "ws") as opened:
        yield opened


def known(workspace: Workspace, **options: object) -> Survey:
    return survey(workspace, model=NGRAMS, **{"threshold": 0.4, **options})


def test_concepts_of_a_known_set_are_found(workspace: Workspace) -> None:
    measured = known(workspace).measured()
    assert measured.concepts == 3
    assert measured.ari_vs_known == 1
    assert sorted(map(measured.labels.count, range(3)), reverse=True) == [3, 2, 1]
    assert 1 < measured.hill[2] < measured.hill[1] < measured.hill[0] == 3
    assert 3 <= measured.chao1.low <= measured.chao1.estimate <= measured.chao1.high
    assert measured.coverage == pytest.approx(1 - 1 / 6)
    assert 3 < measured.vendi < 6


def test_masked_names_leave_near_duplicates_bare(workspace: Workspace) -> None:
    found = known(workspace, view=View.scenario)
    measured = found.measured()
    names = [item.name for item in measured.items]
    pairs = {frozenset((names[pair.a], names[pair.b])) for pair in measured.duplicates}
    assert pairs == {
        frozenset(pair)
        for pair in [("uber", "lyft"), ("uber", "bolt_rides"), ("lyft", "bolt_rides"), ("biblio", "shelfmark")]
    }


def test_the_document_has_the_contractual_keys(workspace: Workspace) -> None:
    found = known(workspace)
    facts = json.loads(json.dumps(document(found.measured(), found.view, found.model)))
    assert facts["items"] == 6
    assert facts["concepts"] == len(facts["concept_names"]) == 3
    assert {"threshold": 0.4, "concepts": 3} in facts["curve"]
    assert set(facts["chao1"]) == {"estimate", "low", "high"}
    assert facts["labels"]["uber"] == facts["labels"]["lyft"] != facts["labels"]["furrow"]
    assert facts["ari_vs_known"] == 1
    assert facts["novelty"][-1] == {"items": 6, "concepts": 3, "expected": 3}


def test_other_thresholds_need_no_new_comparison(workspace: Workspace) -> None:
    found = known(workspace)
    assert found.measured(0.99).concepts == 6
    assert found.measured(0.0).concepts == 1


def test_concepts_by_group_say_which_are_found_nowhere_else() -> None:
    items = [Item(str(n), "", {"seed": seed}) for n, seed in enumerate("aaab")]
    vectors = np.eye(3, dtype=np.float32)[[0, 0, 1, 1]]
    groups = measure(items, vectors, 0.5).groups("seed")
    assert [(g.value, g.items, g.concepts, g.own) for g in groups] == [("a", 3, 2, 1), ("b", 1, 1, 0)]
    assert measure(items, vectors, 0.5).groups("unknown") == []


def test_seed_and_category_come_from_the_scenarios_row(workspace: Workspace) -> None:
    row = {"name": "Uber", "description": "x", "seed": "Lyft", "category": "travel"}
    workspace.catalog.put("uber", Part.scenario, json.dumps(row), author=Author(AuthorKind.person))
    items, _ = read_items(workspace.catalog, View.all, ["uber"])
    assert items[0].groups == {"origin": "blueprint", "domain": "rides", "seed": "Lyft", "category": "travel"}


def test_the_novelty_curve_of_a_set_ordered_by_concept_lags_behind_the_expected() -> None:
    vectors = np.repeat(np.eye(10, dtype=np.float32), 10, axis=0)
    measured = measure([Item(str(n), "") for n in range(100)], vectors, 0.5)
    curve = measured.novelty()
    assert [seen for _, seen, _ in curve] == [math.ceil(items / 10) for items, _, _ in curve]
    assert all(expected > seen - 1e-9 for _, seen, expected in curve)
    assert next(expected for items, _, expected in curve if items >= 50) > 9.9


def test_what_lacks_a_view_is_named_and_left_out(workspace: Workspace) -> None:
    workspace.catalog.put("bare", Part.scenario, '{"name": "Bare"}', author=Author(AuthorKind.person))
    found = known(workspace)
    assert found.lacking == ("bare",)
    assert len(found.items) == 6


def test_a_filter_narrows_the_set(workspace: Workspace) -> None:
    assert {item.name for item in known(workspace, where="domain:library").items} == {"biblio", "shelfmark"}
    with pytest.raises(UserError, match="no field domian"):
        known(workspace, where="domian:library")


def test_one_environment_is_one_concept(workspace: Workspace) -> None:
    measured = known(workspace, where="uber").measured()
    assert (measured.concepts, measured.vendi, measured.duplicates) == (1, pytest.approx(1), ())


def test_an_empty_set_has_nothing_to_compare(tmp_path: Path) -> None:
    with (
        Workspace.open(tmp_path / "empty", create=True) as workspace,
        pytest.raises(UserError, match="nothing to compare"),
    ):
        known(workspace).measured()


def test_concepts_can_be_kept_in_the_catalog(workspace: Workspace) -> None:
    measured = known(workspace).measured()
    keep_concepts(workspace.catalog, measured.concept_of())
    concepts = {row.name: row.concept for row in workspace.catalog.summaries()}
    assert concepts["uber"] == concepts["lyft"] == measured.names[0]
    assert len(known(workspace, where="concept:harvest").items) == 1


def test_two_sets_share_the_concepts_that_both_have(workspace: Workspace, tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "other", create=True) as other:
        fill(other, [KNOWN[1], KNOWN[5]])
    comparison = compare_with(workspace, known(workspace), tmp_path / "other")
    assert (comparison.here, comparison.there, comparison.shared) == (3, 2, 2)
    assert (comparison.only_here, comparison.only_there) == (1, 0)
    assert {pair[:2] for pair in comparison.nearest[:2]} == {("lyft", "lyft"), ("furrow", "furrow")}
    assert comparison.vendi_there < comparison.vendi_here


def test_a_folder_in_the_awm_layout_is_a_second_set_too(workspace: Workspace, awm_real: Path) -> None:
    comparison = compare_with(workspace, known(workspace), awm_real)
    assert comparison.there == 5
    assert comparison.shared == 0


def test_a_second_set_that_is_none_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    with pytest.raises(UserError, match="is empty"):
        compare_with(workspace, known(workspace), tmp_path / "nothing")


def test_comparing_does_not_depend_on_order() -> None:
    vectors = np.eye(4, dtype=np.float32)[[0, 1, 1, 2]]
    items = [Item(name, "") for name in "abcd"]
    forward = compare(items[:2], items[2:], vectors, 0.5)
    backward = compare(items[2:], items[:2], vectors[[2, 3, 0, 1]], 0.5)
    assert (forward.only_here, forward.shared, forward.only_there) == (1, 1, 1)
    assert (backward.only_here, backward.shared, backward.only_there) == (1, 1, 1)
