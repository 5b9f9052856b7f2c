"""Estimates from samples: each against values worked by hand, published examples, or its definition."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.estimates import abundances, accumulation, chao1, coverage, hill, rarefaction, rate, vendi

counts_strategy = st.lists(st.integers(1, 20), min_size=1, max_size=15).map(lambda c: tuple(sorted(c, reverse=True)))


def test_abundances_are_sizes_of_classes_largest_first() -> None:
    assert abundances(["b", "a", "b", "c", "b", "a"]) == (3, 2, 1)


@pytest.mark.parametrize("order", [0, 0.5, 1, 2, 5])
def test_equally_common_classes_all_count(order: float) -> None:
    assert hill((7, 7, 7, 7), order) == pytest.approx(4)


def test_hill_numbers_of_an_uneven_sample() -> None:
    counts = (8, 1, 1)
    assert hill(counts, 0) == 3
    assert hill(counts, 1) == pytest.approx(math.exp(-(0.8 * math.log(0.8) + 0.2 * math.log(0.1))))
    assert hill(counts, 2) == pytest.approx(1 / (0.64 + 0.01 + 0.01))


@given(counts_strategy)
def test_hill_numbers_fall_with_their_order(counts: tuple[int, ...]) -> None:
    values = [hill(counts, order) for order in (0, 1, 2, 3)]
    assert all(low <= high + 1e-9 for high, low in itertools.pairwise(values))
    assert values[-1] >= 1 - 1e-9
    assert values[0] == pytest.approx(len(counts))


def test_coverage_is_what_singletons_leave() -> None:
    assert coverage((5, 3, 1, 1)) == pytest.approx(0.8)
    assert coverage((1, 1, 1)) == 0
    assert coverage((4, 4)) == 1
    assert coverage(()) == 0


def test_chao1_by_hand_with_doubletons() -> None:
    counts = (10, 5, 2, 2, 1, 1, 1)  # n = 22, f1 = 3, f2 = 2
    shrink = 21 / 22
    found = chao1(counts)
    assert found.estimate == pytest.approx(7 + shrink * 9 / 4)
    variance = 2 * (shrink * 1.5**2 / 2 + shrink**2 * 1.5**3 + shrink**2 * 1.5**4 / 4)
    spread = math.exp(1.959964 * math.sqrt(math.log(1 + variance / (found.estimate - 7) ** 2)))
    assert found.low == pytest.approx(7 + (found.estimate - 7) / spread, rel=1e-5)
    assert found.high == pytest.approx(7 + (found.estimate - 7) * spread, rel=1e-5)


def test_chao1_without_doubletons_uses_the_corrected_form() -> None:
    assert chao1((5, 1, 1, 1)).estimate == pytest.approx(4 + 7 / 8 * 3)


def test_chao1_of_a_sample_without_rare_classes_is_what_was_seen() -> None:
    found = chao1((30, 30, 30))
    assert found.estimate == 3
    assert 3 <= found.low <= found.high < 3.01


@given(counts_strategy)
def test_chao1_never_falls_below_what_was_seen(counts: tuple[int, ...]) -> None:
    found = chao1(counts)
    assert len(counts) <= found.low + 1e-9
    assert found.low <= found.high
    assert found.estimate >= len(counts)


def test_chao1_interval_holds_the_truth_of_an_even_community() -> None:
    """100 equally common classes, 150 draws: about 78 are seen; the interval should reach 100 nearly always."""
    draw = np.random.default_rng(5)
    held = 0
    for _ in range(200):
        found = chao1(abundances(draw.integers(0, 100, 150).tolist()))
        held += found.low <= 100 <= found.high
    assert held >= 180


def test_accumulation_follows_the_order_given() -> None:
    assert accumulation("aabac") == (1, 1, 2, 2, 3)


def test_rarefaction_equals_the_mean_over_all_samples() -> None:
    labels = "aaabbc"
    for size in range(7):
        drawn = [len(set(sample)) for sample in itertools.combinations(labels, size)]
        assert rarefaction((3, 2, 1), size) == pytest.approx(sum(drawn) / len(drawn))


def test_rarefaction_beyond_the_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="size 4"):
        rarefaction((2, 1), 4)


def test_vendi_counts_orthogonal_items_and_sees_through_copies() -> None:
    assert vendi(np.eye(6)) == pytest.approx(6)
    assert vendi(np.repeat(np.eye(3), 5, axis=0)) == pytest.approx(3)
    assert vendi(np.ones((4, 1))) == pytest.approx(1)
    assert vendi(np.zeros((0, 3))) == 0


def test_vendi_is_the_same_through_either_gram_matrix() -> None:
    vectors = np.random.default_rng(1).normal(size=(12, 7))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    shares = np.linalg.eigvalsh(vectors @ vectors.T / 12)
    shares = shares[shares > 1e-12]
    assert vendi(vectors) == pytest.approx(math.exp(-np.sum(shares * np.log(shares))))


@pytest.mark.parametrize(
    ("failed", "tried", "low", "high"),
    [
        (0, 10, 0.0, 0.2775),  # Newcombe, Statistics in Medicine 17 (1998), tables of method 3
        (1, 29, 0.0061, 0.1718),
        (15, 148, 0.0624, 0.1605),
        (81, 263, 0.2553, 0.3662),
        (10, 10, 0.7225, 1.0),
    ],
)
def test_intervals_of_rates_are_wilsons(failed: int, tried: int, low: float, high: float) -> None:
    found = rate(failed, tried)
    assert found is not None
    assert (found.estimate, found.low, found.high) == pytest.approx((failed / tried, low, high), abs=1e-4)


@given(st.integers(1, 500), st.data())
def test_an_interval_holds_its_share_and_narrows_with_more_trials(tried: int, data: st.DataObject) -> None:
    failed = data.draw(st.integers(0, tried))
    found, more = rate(failed, tried), rate(4 * failed, 4 * tried)
    assert found is not None and more is not None
    assert 0 <= found.low <= found.estimate + 1e-12 and found.estimate - 1e-12 <= found.high <= 1
    assert more.high - more.low < found.high - found.low


def test_nothing_tried_has_no_rate() -> None:
    assert rate(0, 0) is None
