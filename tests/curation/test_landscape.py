"""A survey kept for the screens: what it holds, what a threshold makes of it, and when it is out of date."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")
pytest.importorskip("sklearn")

import numpy as np

from curation.concepts import medoids, neighbours
from curation.diversity import NGRAMS_ONLY
from curation.embeddings import Model
from curation.estimates import vendi
from curation.landscape import Landscape, cut, keep_landscape, kept_landscape, make_landscape, out_of_date
from curation.maps import Layout
from curation.sparse import hint_for, sparsest
from curation.survey import survey
from curation.views import View
from pipeline.errors import UserError
from pipeline.model import Author, AuthorKind, Part
from pipeline.workspace import Workspace
from tests.curation.sets import KNOWN, fill, new_workspace

PERSON = Author(AuthorKind.person, "ada")


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with new_workspace(tmp_path / "ws") as opened:
        yield opened


def measured(workspace: Workspace, where: str = "") -> Landscape:
    version = workspace.catalog.newest_version()
    found = survey(workspace, View.all, Model(NGRAMS_ONLY), where=where)
    return make_landscape(workspace, found, where=where, version=version, layout=Layout.pca)


def test_what_is_kept_comes_back(workspace: Workspace) -> None:
    made = measured(workspace)
    keep_landscape(workspace.path, made)
    kept = kept_landscape(workspace.path)
    assert kept is not None
    assert kept.survey.items == made.survey.items
    assert kept.names == ["biblio", "bolt_rides", "furrow", "lyft", "shelfmark", "uber"]
    for name in ("points", "nearest", "similarities"):
        np.testing.assert_array_equal(getattr(kept, name), getattr(made, name))
    assert (kept.duplicates, kept.vendi, kept.made_at) == (made.duplicates, made.vendi, made.made_at)
    assert cut(kept, 0.4) == cut(made, 0.4)


def test_there_is_none_before_anything_was_kept_or_where_the_file_is_damaged(workspace: Workspace) -> None:
    assert kept_landscape(workspace.path) is None
    keep_landscape(workspace.path, measured(workspace))
    path = workspace.path / "cache" / "landscape.npz"
    path.write_bytes(path.read_bytes()[:1000])
    assert kept_landscape(workspace.path) is None


def test_keeping_leaves_no_draft_behind(workspace: Workspace) -> None:
    keep_landscape(workspace.path, measured(workspace))
    assert not list((workspace.path / "cache").glob("*.new"))


def test_a_threshold_decides_how_many_concepts_there_are_and_how_different_they_are(workspace: Workspace) -> None:
    landscape = measured(workspace)
    found = cut(landscape, 0.4)
    assert sorted(len(found.members(concept)) for concept in range(len(found.names))) == [1, 2, 3]
    assert found.vendi == pytest.approx(vendi(landscape.survey.vectors[list(found.centres)]))
    assert [found.labels[centre] for centre in found.centres] == [0, 1, 2]
    one, all_apart = cut(landscape, 0.0), cut(landscape, 1.0)
    assert (len(one.names), len(all_apart.names)) == (1, 6)
    assert one.vendi == pytest.approx(1.0)
    assert all_apart.vendi == pytest.approx(landscape.vendi)
    assert all_apart.effective == pytest.approx(6.0)


def test_it_says_what_is_new_changed_or_gone_since(workspace: Workspace) -> None:
    landscape = measured(workspace)
    assert out_of_date(workspace.catalog, landscape) == set()
    workspace.catalog.put("uber", Part.code, "app = 1", author=PERSON)
    assert out_of_date(workspace.catalog, landscape) == set(), "code is not compared"
    workspace.catalog.put("uber", Part.tasks, json.dumps(["Fly to the moon."]), author=PERSON)
    fill(workspace, [("Grainline", "farm", "Grainline sells seed.", ("Order seed.",))])
    assert out_of_date(workspace.catalog, landscape) == {"uber", "grainline"}


def test_with_a_filter_only_what_it_lets_through_counts(workspace: Workspace) -> None:
    landscape = measured(workspace, "domain:rides")
    assert landscape.names == ["bolt_rides", "lyft", "uber"]
    workspace.catalog.put("furrow", Part.tasks, json.dumps(["Plough."]), author=PERSON)
    assert out_of_date(workspace.catalog, landscape) == set()
    workspace.catalog.describe("lyft", domain="taxis")
    assert out_of_date(workspace.catalog, landscape) == {"lyft"}


def test_nothing_cannot_be_laid_out(workspace: Workspace) -> None:
    with pytest.raises(UserError, match="nothing to compare"):
        measured(workspace, "domain:space")


def test_one_environment_and_identical_ones_can(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "ws", create=True) as workspace:
        fill(workspace, KNOWN[:1])
        landscape = measured(workspace)
        found = cut(landscape, 0.4)
        assert (len(found.names), found.vendi, landscape.crowding().tolist()) == (1, pytest.approx(1), [0])
        text = ("does one thing and no other.", ("Do it now.",))
        fill(workspace, [(f"Copy {letter}", "farm", *text) for letter in "ABCD"])
        landscape = measured(workspace, "domain:farm")
        found = cut(landscape, 0.4)
        assert (len(found.names), landscape.duplicate_pairs) == (1, 6)
        assert np.isfinite(landscape.points).all()


def test_the_environment_with_the_least_similar_neighbours_is_the_sparsest(workspace: Workspace) -> None:
    landscape = measured(workspace)
    assert landscape.names[sparsest(landscape)[0]] == "furrow"
    assert {landscape.names[n] for n in sparsest(landscape)[-3:]} == {"uber", "lyft", "bolt_rides"}


def test_a_hint_names_the_concept_its_size_and_what_it_is_about_but_no_brand(workspace: Workspace) -> None:
    landscape = measured(workspace)
    found = cut(landscape, 0.4)
    said = hint_for(landscape, found, landscape.names.index("furrow"))
    assert found.names[found.labels[landscape.names.index("furrow")]] in said
    assert "only one scenario" in said
    assert "plans crops by field" in said
    assert "Furrow" not in said
    assert "only 3 scenarios" in hint_for(landscape, found, landscape.names.index("uber"))


def test_neighbours_are_the_others_most_similar_first() -> None:
    vectors = np.array([[1, 0], [0.8, 0.6], [0, 1]], dtype=np.float32)
    nearest, similarities = neighbours(vectors, 5)
    assert nearest.tolist() == [[1, 2], [0, 2], [1, 0]]
    np.testing.assert_allclose(similarities, [[0.8, 0], [0.8, 0.6], [0.6, 0]], atol=1e-6)
    assert neighbours(vectors[:1], 5)[0].shape == (1, 0)


def test_a_medoid_is_the_member_most_like_its_concept() -> None:
    vectors = np.array([[1, 0], [0.8, 0.6], [0.6, 0.8], [-1, 0]], dtype=np.float32)
    assert medoids(vectors, np.array([0, 0, 0, 1])).tolist() == [1, 3]
