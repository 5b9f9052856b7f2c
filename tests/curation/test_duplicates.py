"""What a person decides about near-duplicates, and what subsets and filters make of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")
pytest.importorskip("sklearn")

from curation.diversity import NGRAMS_ONLY
from curation.duplicates import Decision, decide
from curation.filters import parse
from curation.making import make_subset
from curation.subset import Method, Recipe
from pipeline.errors import UserError
from pipeline.workspace import Workspace
from tests.curation.sets import new_workspace

ALL = Recipe("all", method=Method.all, model=NGRAMS_ONLY, threshold=0.4)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with new_workspace(tmp_path / "ws") as opened:
        yield opened


def picked(workspace: Workspace, where: str = "") -> set[str]:
    recipe = Recipe("all", where=where, method=Method.all, model=NGRAMS_ONLY, threshold=0.4)
    return set(make_subset(workspace, recipe, replace=True).environments())


def listed(workspace: Workspace, where: str) -> set[str]:
    keep = parse(where)
    return {row.name for row in workspace.catalog.summaries() if keep(row)}


def test_a_dropped_environment_is_never_picked_and_stays_in_the_catalog(workspace: Workspace) -> None:
    decide(workspace.catalog, "uber", "lyft", Decision.drop, leaves="lyft")
    subset = make_subset(workspace, ALL)
    assert set(subset.environments()) == {"uber", "bolt_rides", "biblio", "shelfmark", "furrow"}
    assert subset.card["left_out_tasks"] == {"dropped or merged": 2}
    assert "lyft" in workspace.catalog.names()


def test_of_two_merged_the_one_that_gives_way_is_picked_only_without_the_other(workspace: Workspace) -> None:
    decide(workspace.catalog, "uber", "lyft", Decision.merge, leaves="lyft")
    assert "lyft" not in picked(workspace)
    assert picked(workspace, "-name:uber domain:rides") == {"lyft", "bolt_rides"}


def test_what_was_merged_into_a_dropped_one_stands_for_itself(workspace: Workspace) -> None:
    decide(workspace.catalog, "uber", "lyft", Decision.merge, leaves="lyft")
    decide(workspace.catalog, "uber", "bolt_rides", Decision.drop, leaves="uber")
    assert picked(workspace, "domain:rides") == {"lyft", "bolt_rides"}


def test_filters_see_decisions(workspace: Workspace) -> None:
    decide(workspace.catalog, "uber", "lyft", Decision.merge, leaves="lyft")
    decide(workspace.catalog, "biblio", "shelfmark", Decision.drop, leaves="biblio")
    assert listed(workspace, "aside:dropped") == {"biblio"}
    assert listed(workspace, "aside:merged") == {"lyft"}
    assert listed(workspace, "aside:none") == {"uber", "bolt_rides", "shelfmark", "furrow"}


def test_a_decision_replaces_the_one_before_and_can_be_forgotten(workspace: Workspace) -> None:
    decide(workspace.catalog, "uber", "lyft", Decision.drop, leaves="lyft")
    decide(workspace.catalog, "lyft", "uber", Decision.keep)
    [found] = workspace.catalog.decisions()
    assert (found.a, found.b, found.decision, found.leaves) == ("lyft", "uber", "keep", None)
    assert listed(workspace, "aside:none") == {*workspace.catalog.names()}
    decide(workspace.catalog, "lyft", "uber", None)
    assert workspace.catalog.decisions() == []


def test_a_drop_outlives_another_pair_of_the_same_environment(workspace: Workspace) -> None:
    decide(workspace.catalog, "uber", "lyft", Decision.drop, leaves="lyft")
    decide(workspace.catalog, "bolt_rides", "lyft", Decision.keep)
    assert listed(workspace, "aside:dropped") == {"lyft"}
    assert [found.b for found in workspace.catalog.decisions("bolt_rides")] == ["lyft"]


def test_merges_do_not_go_round_in_a_circle(workspace: Workspace) -> None:
    decide(workspace.catalog, "uber", "lyft", Decision.merge, leaves="lyft")
    decide(workspace.catalog, "lyft", "bolt_rides", Decision.merge, leaves="bolt_rides")
    with pytest.raises(UserError, match="bolt_rides was merged into uber already"):
        decide(workspace.catalog, "bolt_rides", "uber", Decision.merge, leaves="uber")
    assert picked(workspace, "domain:rides") == {"uber"}


@pytest.mark.parametrize(
    ("pair", "decision", "leaves", "said"),
    [
        (("uber", "uber"), Decision.keep, None, "of itself"),
        (("uber", "lyft"), Decision.merge, None, "which of"),
        (("uber", "lyft"), Decision.drop, "furrow", "which of"),
        (("uber", "lift"), Decision.keep, None, "Did you mean lyft"),
    ],
)
def test_a_decision_that_says_nothing_is_refused(
    workspace: Workspace, pair: tuple[str, str], decision: Decision, leaves: str | None, said: str
) -> None:
    with pytest.raises(UserError, match=said):
        decide(workspace.catalog, *pair, decision, leaves=leaves)
    assert workspace.catalog.decisions() == []
