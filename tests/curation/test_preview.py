"""What a recipe would pick, said before it is followed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")
pytest.importorskip("sklearn")

from curation.diversity import NGRAMS_ONLY
from curation.duplicates import Decision, decide
from curation.embeddings import Model
from curation.landscape import make_landscape
from curation.making import make_subset
from curation.maps import Layout
from curation.preview import Pool, preview, read_pool
from curation.subset import Recipe
from curation.survey import survey
from curation.views import View
from pipeline.errors import UserError
from pipeline.model import Author, AuthorKind, Part
from pipeline.workspace import Workspace
from tests.curation.sets import fill, new_workspace

RECIPE = Recipe("mix", budget=3, model=NGRAMS_ONLY, threshold=0.4)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with new_workspace(tmp_path / "ws") as opened:
        yield opened


def pool(workspace: Workspace) -> Pool:
    version = workspace.catalog.newest_version()
    found = survey(workspace, View.all, Model(NGRAMS_ONLY), threshold=0.4)
    landscape = make_landscape(workspace, found, where="", version=version, layout=Layout.pca)
    return read_pool(workspace.catalog, landscape, 0.4)


@pytest.mark.parametrize(
    "recipe",
    [
        RECIPE,
        replace(RECIPE, budget=5, held_out=0.2, seed=3),
        replace(RECIPE, budget=None, where="domain:rides,farm"),
        replace(RECIPE, budget=6, distinct=0.7, tasks_each=1),
    ],
)
def test_it_says_what_making_it_then_gives(workspace: Workspace, recipe: Recipe) -> None:
    said = preview(pool(workspace), recipe).figures
    card = make_subset(workspace, recipe).card
    assert said is not None
    assert said["environments"] == card["environments"]
    assert said["concepts"] == card["concepts"]
    assert said["coverage"] == pytest.approx(card["coverage"])
    assert {split: said["tasks"][split] for split in ("train", "test")} == {
        split: card["tasks"][split] for split in ("train", "test")
    }


def test_it_obeys_decisions_and_checks(workspace: Workspace) -> None:
    decide(workspace.catalog, "uber", "lyft", Decision.merge, leaves="lyft")
    assert preview(pool(workspace), RECIPE).candidates == 5
    assert preview(pool(workspace), replace(RECIPE, where="name:lyft")).candidates == 1


def test_what_is_new_since_the_measurement_is_counted_apart(workspace: Workspace) -> None:
    there = pool(workspace)
    fill(workspace, [("Grainline", "farm", "Grainline sells seed.", ("Order seed.",))])
    there = replace(there, summaries=workspace.catalog.summaries())
    found = preview(there, RECIPE)
    assert (found.matching, found.unmeasured, found.candidates) == (7, 1, 6)


def test_of_a_view_that_was_not_measured_only_counts_are_said(workspace: Workspace) -> None:
    found = preview(pool(workspace), replace(RECIPE, cover=View.tools))
    assert (found.candidates, found.figures) == (6, None)
    assert preview(pool(workspace), replace(RECIPE, where="nowhere")).figures is None


def test_an_environment_without_verifiers_is_no_candidate(workspace: Workspace) -> None:
    author = Author(AuthorKind.person, "ada")
    workspace.catalog.put(
        "cinema", Part.scenario, json.dumps({"name": "Cinema", "description": "Shows films."}), author=author
    )
    workspace.catalog.put("cinema", Part.tasks, json.dumps(["Book a seat."]), author=author)
    found = preview(pool(workspace), RECIPE)
    assert (found.matching, found.candidates) == (7, 6)


def test_a_filter_that_cannot_be_read_is_said(workspace: Workspace) -> None:
    with pytest.raises(UserError, match="no field domian"):
        preview(pool(workspace), replace(RECIPE, where="domian:x"))
