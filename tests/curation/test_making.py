"""Subsets: what is picked, that it can be made again, and what bad input gets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")

import numpy as np

from curation.diversity import NGRAMS_ONLY, Item
from curation.making import make_subset
from curation.picking import Candidate, choose_tasks, pick, read_rates
from curation.review import Decision, decide, entries
from curation.subset import (
    TEST,
    TRAIN,
    Method,
    Recipe,
    Subset,
    changed,
    frozen_environment,
    overlap,
)
from curation.views import View
from curation.whole import everything
from pipeline.errors import UserError
from pipeline.model import Author, AuthorKind, Part
from pipeline.workspace import Workspace
from tests.curation.sets import new_workspace

PERSON = Author(AuthorKind.person, "ada")
RECIPE = Recipe("mix", budget=3, model=NGRAMS_ONLY, threshold=0.4)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with new_workspace(tmp_path / "ws") as opened:
        yield opened


def domains(workspace: Workspace, names: list[str]) -> list[str | None]:
    return [workspace.catalog.summary(name).domain for name in names]


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "-rf", "two words", "mix\n", "x" * 81])
def test_a_name_that_could_not_be_a_file_name_is_refused(workspace: Workspace, name: str) -> None:
    with pytest.raises(UserError, match="cannot name a subset"):
        make_subset(workspace, replace(RECIPE, name=name))
    assert workspace.catalog.subsets() == []


def test_a_budget_of_three_covers_all_three_concepts(workspace: Workspace) -> None:
    subset = make_subset(workspace, RECIPE)
    assert sorted(domains(workspace, subset.environments())) == ["farm", "library", "rides"]
    assert subset.card["concepts"] == {"train": 3, "test": 0, "of": 3, "held_out": []}
    assert subset.card["tasks"] == {"train": 6, "test": 0, "of": 12}
    assert subset.card["licences"] == {"Apache-2.0": 3}
    assert subset.card["made_by"] == {"blueprint: tests": 3}
    assert 0.7 < subset.card["coverage"] < 1


def test_the_same_recipe_makes_the_same_subset_and_another_seed_another_draw(workspace: Workspace) -> None:
    recipe = replace(RECIPE, method=Method.random, budget=4)
    once = make_subset(workspace, recipe)
    again = make_subset(workspace, recipe, replace=True)
    assert again.digest == once.digest
    draws = {tuple(make_subset(workspace, replace(recipe, seed=n), replace=True).environments()) for n in range(5)}
    assert len(draws) > 1


def test_a_subset_is_kept_and_read_back_equal(workspace: Workspace) -> None:
    made = make_subset(workspace, replace(RECIPE, held_out=0.4, series=(1, 2)))
    kept = Subset.from_json(workspace.catalog.subset("mix"))
    assert kept == replace(made, card=json.loads(json.dumps(made.card)))
    assert kept.digest == made.digest
    assert [stored.name for stored in workspace.catalog.subsets()] == ["mix"]


def test_held_out_concepts_are_never_trained_on(workspace: Workspace) -> None:
    for seed in range(6):
        subset = make_subset(workspace, replace(RECIPE, budget=6, held_out=0.3, seed=seed), replace=True)
        training, testing = (set(domains(workspace, subset.environments(split))) for split in (TRAIN, TEST))
        assert testing
        assert training
        assert len(subset.environments()) <= 6
        assert not training & testing


def test_something_is_left_to_train_on_however_much_is_held_out(workspace: Workspace) -> None:
    subset = make_subset(workspace, replace(RECIPE, budget=3, held_out=0.99))
    assert len(subset.environments(TRAIN)) >= 1
    assert len(subset.environments(TEST)) >= 1


def test_a_series_ends_with_the_whole_training_split(workspace: Workspace) -> None:
    subset = make_subset(workspace, replace(RECIPE, budget=3, series=(2, 10, 100)))
    assert [(row["size"], row["environments"]) for row in subset.card["series"]] == [(2, 2), (3, 3)]


def test_series_nest(workspace: Workspace) -> None:
    large = make_subset(workspace, replace(RECIPE, budget=6, series=(1, 3, 6)))
    small = make_subset(workspace, replace(RECIPE, name="small", budget=2))
    assert large.environments()[:2] == small.environments()
    assert [row["concepts"] for row in large.card["series"]] == [1, 3, 3]
    coverage = [row["coverage"] for row in large.card["series"]]
    assert coverage == sorted(coverage)
    assert coverage[-1] == pytest.approx(1, abs=1e-5)


def found(*faults: tuple[str, int]) -> str:
    """What a check found: a fault of this severity in each of these tasks."""
    findings = [
        {"code": "f", "severity": severity, "where": f"tasks: {task}", "message": "is wrong", "tasks": [task]}
        for severity, task in faults
    ]
    return json.dumps({"findings": findings})


def test_a_person_can_let_a_blocked_task_through_and_drop_an_environment(workspace: Workspace) -> None:
    catalog = workspace.catalog
    catalog.set_check("furrow", "fail", found(("error", 0)), "key")
    assert 0 not in {pick.task for pick in make_subset(workspace, replace(RECIPE, budget=None)).pairs()["furrow"]}
    [entry] = entries(catalog, "furrow")
    for decision, there in ((Decision.waive, True), (Decision.drop, False)):
        decide(catalog, "furrow", entry.item.key, decision, reviewer="ada", reason="it does no harm")
        pairs = make_subset(workspace, replace(RECIPE, budget=None), replace=True).pairs()
        assert (0 in {pick.task for pick in pairs.get("furrow", ())}) == there
    assert "furrow" not in pairs


def test_tasks_without_a_verifier_or_blocked_by_a_fault_are_left_out(workspace: Workspace) -> None:
    catalog = workspace.catalog
    catalog.put("furrow", Part.tasks, json.dumps(["One.", "Two.", "Three."]), author=PERSON)
    catalog.set_check("furrow", "fail", found(("error", 0), ("warn", 1)), "key")
    subset = make_subset(workspace, replace(RECIPE, budget=None))
    assert [pick.task for pick in subset.pairs()["furrow"]] == [1]
    assert subset.card["left_out_tasks"] == {"no verifier": 1, "blocked by a fault": 1}


def test_a_stale_check_blocks_nothing(workspace: Workspace) -> None:
    catalog = workspace.catalog
    catalog.set_check("furrow", "fail", found(("error", 0), ("error", 1)), "key")
    assert "furrow" not in make_subset(workspace, replace(RECIPE, budget=None)).environments()
    catalog.put("furrow", Part.tasks, json.dumps(["New.", "Tasks."]), author=PERSON)
    assert "furrow" in make_subset(workspace, replace(RECIPE, budget=None), replace=True).environments()


def test_a_filter_decides_what_may_be_picked(workspace: Workspace) -> None:
    subset = make_subset(workspace, replace(RECIPE, where="-domain:rides"))
    assert set(domains(workspace, subset.environments())) == {"library", "farm"}
    with pytest.raises(UserError, match="no field chekc"):
        make_subset(workspace, replace(RECIPE, name="b", where="chekc:pass"))


def test_near_duplicates_may_be_left_out(workspace: Workspace) -> None:
    subset = make_subset(workspace, replace(RECIPE, budget=None, cover=View.scenario, distinct=0.85))
    assert sorted(subset.environments()) == ["biblio", "bolt_rides", "furrow"]
    assert subset.card["left_out_near_duplicates"] == 3
    assert subset.card["environments"]["of"] == 3


def test_a_budget_beyond_the_set_takes_the_set(workspace: Workspace) -> None:
    assert len(make_subset(workspace, replace(RECIPE, budget=1000)).environments()) == 6


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        (replace(RECIPE, where="domain:hospital"), "nothing to compare.*Checks: 6 not done; audits: 6 not done"),
        (replace(RECIPE, where="uber", held_out=0.2), "two concepts"),
        (replace(RECIPE, budget=1, held_out=0.2), "budget of at least two"),
    ],
)
def test_what_cannot_be_picked_is_said(workspace: Workspace, recipe: Recipe, said: str) -> None:
    with pytest.raises(UserError, match=said):
        make_subset(workspace, recipe)
    assert workspace.catalog.subsets() == []


def test_a_name_is_not_taken_twice(workspace: Workspace) -> None:
    make_subset(workspace, RECIPE)
    with pytest.raises(UserError, match="already"):
        make_subset(workspace, RECIPE)


def test_solve_rates_balance_environments(workspace: Workspace) -> None:
    rates = {(name, task): 0.9 for name in ("uber", "lyft", "bolt_rides") for task in (0, 1)}
    rates |= {("biblio", 0): 0.1, ("shelfmark", 0): 0.1, ("furrow", 1): 0.5}
    subset = make_subset(workspace, RECIPE, rates)
    bands = {"uber": "easy", "lyft": "easy", "bolt_rides": "easy", "biblio": "hard", "shelfmark": "hard"}
    assert {bands.get(name, "medium") for name in subset.environments()} == {"easy", "hard", "medium"}
    assert subset.card["difficulty"] == {"easy": 2, "hard": 1, "medium": 1, "unknown": 2}


def test_tasks_that_are_always_or_never_solved_are_taken_last() -> None:
    rates = {0: 0.0, 1: 0.2, 2: 0.9, 3: 0.5, 4: 1.0}
    candidate = Candidate(Item("e", ""), "c", (0, 1, 2, 3, 4), rates)
    for seed in range(10):
        recipe = Recipe("r", tasks_each=3, seed=seed)
        picks = pick(recipe, [candidate], np.ones((1, 2), dtype=np.float32))
        assert [p.task for p in picks] == [1, 2, 3]


def test_a_limit_on_tasks_is_kept() -> None:
    import random

    candidate = Candidate(Item("e", ""), "c", tuple(range(10)))
    chosen = choose_tasks(candidate, 4, random.Random(0))
    assert len(set(chosen)) == 4
    assert chosen == sorted(chosen)
    assert choose_tasks(candidate, None, random.Random(0)) == list(range(10))


def test_a_subset_gives_what_was_picked_even_after_an_edit(workspace: Workspace) -> None:
    subset = make_subset(workspace, replace(RECIPE, budget=6))
    assert changed(workspace.catalog, subset) == []
    before = workspace.catalog.environment("uber")
    workspace.catalog.put("uber", Part.tasks, json.dumps(["Something else."]), author=PERSON)
    assert changed(workspace.catalog, subset) == ["uber"]
    assert frozen_environment(workspace.catalog, subset, "uber") == before


def test_two_subsets_are_compared(workspace: Workspace) -> None:
    one = make_subset(workspace, replace(RECIPE, budget=6, held_out=0.3))
    other = make_subset(workspace, replace(RECIPE, name="other", budget=6))
    found = overlap(one, other)
    assert found.environments == (0, len(one.environments()), 6 - len(one.environments()))
    assert found.test_in_training == tuple(sorted(one.environments(TEST)))


def test_everything_is_a_subset_too(workspace: Workspace) -> None:
    subset = everything(workspace.catalog)
    assert len(subset.picks) == 12
    assert workspace.catalog.subsets() == []
    assert everything(workspace.catalog, ["Bolt Rides"]).environments() == ["bolt_rides"]
    with pytest.raises(UserError, match="Did you mean uber"):
        everything(workspace.catalog, ["ubr"])


def test_nothing_is_no_subset(tmp_path: Path) -> None:
    with Workspace.open(tmp_path / "empty", create=True) as empty, pytest.raises(UserError, match="nothing to export"):
        everything(empty.catalog)


def test_solve_rates_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rates.jsonl"
    path.write_text('{"environment": "uber", "task": 1, "rate": 0.25, "n": 8}\n\n')
    assert read_rates(path) == {("uber", 1): 0.25}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nonsense", "2 is not a solve rate"),
        ('{"environment": "a"}', "2 is not a solve rate"),
        ("[1]", "2 is not a solve rate"),
        ('{"environment": "a", "task": 1e999, "rate": 0}', "2 is not a solve rate"),
        ('{"environment": "a", "task": 0.9, "rate": 0}', "2 is not a solve rate"),
        ("[" * 100_000, "2 is not a solve rate"),
        ('{"environment": "a", "task": 0, "rate": 40}', "2 has the rate 40"),
    ],
)
def test_a_wrong_solve_rate_is_named_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "rates.jsonl"
    path.write_text(f'{{"environment": "a", "task": 0, "rate": 1}}\n{line}\n')
    with pytest.raises(UserError, match=said):
        read_rates(path)
    with pytest.raises(UserError, match="cannot be read"):
        read_rates(tmp_path / "none.jsonl")
