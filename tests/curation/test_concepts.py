"""Concepts: trees, cuts, pairs and names, on vectors and texts whose groups are known."""

from __future__ import annotations

import itertools

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from curation import concepts
from curation.concepts import Tree, by_size, concept_names, curve, grow, near_duplicates
from curation.ngrams import ngram_vectors
from pipeline.errors import UserError
from tests.curation.sets import KNOWN


def around(centres: list[list[float]], copies: int, spread: float, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    points = np.repeat(np.array(centres), copies, axis=0) + draw.normal(
        0, spread, (len(centres) * copies, len(centres[0]))
    )
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)


def test_groups_that_are_apart_are_found_at_every_threshold_between() -> None:
    tree = grow(around(np.eye(5).tolist(), copies=6, spread=0.03))
    for threshold in (0.2, 0.5, 0.9):
        assert tree.count(threshold) == 5
        assert tree.cut(threshold).tolist() == np.repeat(range(5), 6).tolist()


def test_a_lower_threshold_never_gives_more_concepts() -> None:
    vectors = around(np.random.default_rng(3).normal(size=(20, 8)).tolist(), copies=3, spread=0.2)
    counts = [count for _, count in curve(grow(vectors), np.linspace(0.05, 0.95, 19))]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_the_count_is_that_of_the_cut() -> None:
    tree = grow(around(np.random.default_rng(4).normal(size=(15, 6)).tolist(), copies=2, spread=0.3))
    for threshold in np.linspace(-0.2, 1, 25):
        assert tree.count(threshold) == len(set(tree.cut(threshold).tolist()))


def test_average_linkage_joins_groups_by_their_mean_similarity() -> None:
    vectors = around(np.random.default_rng(5).normal(size=(3, 4)).tolist(), copies=3, spread=0.05)
    tree = grow(vectors)
    similarity = vectors @ vectors.T
    between = [similarity[a : a + 3, b : b + 3].mean() for a, b in itertools.combinations((0, 3, 6), 2)]
    assert 1 - tree.merges[-2, 2] == pytest.approx(max(between), abs=1e-5)


def test_a_pair_is_joined_at_the_threshold_that_puts_it_into_one_concept() -> None:
    tree = grow(around(np.random.default_rng(6).normal(size=(6, 5)).tolist(), copies=2, spread=0.3))
    pairs = list(itertools.combinations(range(12), 2))
    for (a, b), at in zip(pairs, tree.joined_at(pairs), strict=True):
        below, above = tree.cut(at - 1e-6), tree.cut(at + 1e-6)
        assert below[a] == below[b]
        assert above[a] != above[b]
    assert tree.joined_at([(4, 4)]).tolist() == [1]


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_items_to_compare_are_as_many_concepts(count: int) -> None:
    tree = grow(np.ones((count, 3), dtype=np.float32))
    assert tree.count(0.5) == count
    assert tree.cut(0.5).tolist() == [0] * count


def test_identical_items_are_one_concept() -> None:
    tree = grow(ngram_vectors(["the same"] * 40))
    assert [tree.count(threshold) for threshold in (0.1, 0.5, 0.99)] == [1, 1, 1]


def test_more_items_than_memory_allows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concepts, "ITEM_LIMIT", 3)
    with pytest.raises(UserError, match="4 items are more than"):
        grow(np.eye(4, dtype=np.float32))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_numbering_by_size_keeps_the_grouping(labels: list[int]) -> None:
    numbered = by_size(np.array(labels))
    pairs = itertools.combinations(range(len(labels)), 2)
    assert all((labels[a] == labels[b]) == (numbered[a] == numbered[b]) for a, b in pairs)
    sizes = np.bincount(numbered)
    assert sizes.tolist() == sorted(sizes, reverse=True)


def test_near_duplicates_are_all_counted_and_the_closest_named() -> None:
    vectors = around(np.eye(3).tolist(), copies=4, spread=0.02)
    total, named = near_duplicates(vectors, 0.9, limit=5)
    assert total == 3 * 6
    every = near_duplicates(vectors, 0.9)[1]
    assert named == every[:5]
    assert all(pair.a < pair.b and pair.a // 4 == pair.b // 4 for pair in every)
    assert [pair.similarity for pair in every] == sorted((pair.similarity for pair in every), reverse=True)


def test_near_duplicates_do_not_depend_on_the_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = around(np.eye(3).tolist(), copies=5, spread=0.1)
    whole = near_duplicates(vectors, 0.8)
    monkeypatch.setattr(concepts, "_BLOCK", 4)
    assert [(p.a, p.b) for p in near_duplicates(vectors, 0.8)[1]] == [(p.a, p.b) for p in whole[1]]
    assert isinstance(grow(vectors), Tree)


def test_concepts_are_named_by_what_sets_them_apart() -> None:
    texts = [f"{description} {' '.join(tasks)}" for _, _, description, tasks in KNOWN]
    names = concept_names(texts, [0, 0, 0, 1, 1, 2])
    assert "driver" in names[0]
    assert "loan" in names[1] or "book" in names[1]
    assert "harvest" in names[2]


def test_no_two_concepts_have_one_name() -> None:
    names = concept_names(["green words", "green words", "…"], [0, 1, 2])
    assert names == ["green, word (0)", "green, word (1)", "unnamed"]
