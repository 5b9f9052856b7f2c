"""Orders of picking, against their definitions and the best subsets found by trying all."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.selection import (
    Method,
    covered,
    distinct,
    facility_location,
    hold_out,
    interleave,
    k_centre,
    order,
    stratified,
)


def unit_vectors(count: int, seed: int, width: int = 4) -> np.ndarray:
    vectors = np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def stood_for(vectors: np.ndarray, chosen: tuple[int, ...]) -> float:
    return float(np.maximum(vectors @ vectors[list(chosen)].T, 0).max(axis=1).sum())


def plain_greedy(vectors: np.ndarray, budget: int) -> list[int]:
    chosen: list[int] = []
    for _ in range(budget):
        left = [item for item in range(len(vectors)) if item not in chosen]
        chosen.append(max(left, key=lambda item: (stood_for(vectors, (*chosen, item)), -item)))
    return chosen


@pytest.mark.parametrize("seed", range(5))
def test_lazy_gains_choose_as_well_as_plain_greedy(seed: int) -> None:
    vectors = unit_vectors(25, seed)
    lazy, plain = facility_location(vectors, 8), plain_greedy(vectors, 8)
    for size in range(1, 9):  # equal but for rounding, which may swap items of equal worth
        assert stood_for(vectors, tuple(lazy[:size])) == pytest.approx(
            stood_for(vectors, tuple(plain[:size])), rel=1e-5
        )


@pytest.mark.parametrize("seed", range(5))
def test_facility_location_keeps_its_guarantee(seed: int) -> None:
    vectors = unit_vectors(12, seed)
    best = max(stood_for(vectors, chosen) for chosen in itertools.combinations(range(12), 3))
    assert stood_for(vectors, tuple(facility_location(vectors, 3))) >= (1 - 1 / math.e) * best


@pytest.mark.parametrize("seed", range(5))
def test_k_centre_is_within_twice_the_best_radius(seed: int) -> None:
    vectors = unit_vectors(12, seed)
    distance = np.arccos(np.clip(vectors @ vectors.T, -1, 1))
    best = min(distance[:, list(chosen)].min(axis=1).max() for chosen in itertools.combinations(range(12), 3))
    assert distance[:, k_centre(vectors, 3, seed)].min(axis=1).max() <= 2 * best + 1e-6


def test_facility_location_takes_one_of_every_cluster_first() -> None:
    vectors = np.repeat(np.eye(4, dtype=np.float32), [9, 5, 3, 1], axis=0)
    labels = np.repeat(range(4), [9, 5, 3, 1])
    assert labels[facility_location(vectors, 4)].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("method", list(Method))
@given(count=st.integers(1, 15), seed=st.integers(0, 99))
def test_orders_nest_and_repeat(method: Method, count: int, seed: int) -> None:
    vectors, labels = unit_vectors(count, seed), [str(item % 3) for item in range(count)]
    whole = order(method, vectors, labels, count + 5, seed)
    assert sorted(whole) == list(range(count))
    assert order(method, vectors, labels, count // 2, seed) == whole[: count // 2]


def test_stratified_takes_every_concept_before_any_twice() -> None:
    labels = [*"aaaaaabbc"]
    picked = [labels[item] for item in stratified(labels, 4)]
    assert [sorted(picked[:3]), sorted(picked[3:5]), picked[5:]] == [["a", "b", "c"], ["a", "b"], ["a"] * 4]


@given(count=st.integers(0, 20), seed=st.integers(0, 50), limit=st.floats(0.1, 0.99))
def test_distinct_items_have_no_twin_and_all_others_do(count: int, seed: int, limit: float) -> None:
    vectors = unit_vectors(count, seed)
    kept = distinct(vectors, limit)
    similar = vectors @ vectors.T >= limit
    assert not any(similar[a, b] for a, b in itertools.combinations(kept, 2))
    assert all(any(similar[item, other] for other in kept if other < item) for item in set(range(count)) - set(kept))


def test_interleaving_balances_every_prefix() -> None:
    bands = ["hard"] * 4 + ["easy"] * 4
    mixed = interleave(range(8), bands.__getitem__)
    assert mixed == [0, 4, 1, 5, 2, 6, 3, 7]


@given(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=40), st.floats(0, 0.9), st.integers(0, 20))
def test_held_out_concepts_are_some_but_never_all(labels: list[str], share: float, seed: int) -> None:
    held = hold_out(labels, share, seed)
    assert held < set(labels)
    assert bool(held) == (share > 0 and len(set(labels)) > 1)
    if len(held) > 1:
        assert sum(label in held for label in labels) <= share * len(labels)


def test_coverage_is_full_when_everything_is_chosen_and_nothing_when_nothing_is() -> None:
    vectors = unit_vectors(6, 1)
    assert covered(vectors, vectors) == pytest.approx(1)
    assert covered(vectors, vectors[:0]) == 0
    assert covered(np.eye(4), np.eye(4)[:2]) == pytest.approx(0.5)
