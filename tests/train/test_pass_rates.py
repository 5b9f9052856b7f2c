"""pass@k, pass^k and the intervals of means over tasks."""

from __future__ import annotations

from itertools import combinations

import pytest

from train.pass_rates import mean_of_tasks, pass_at_k, pass_hat_k


@pytest.mark.parametrize(("tries", "passed"), [(4, 0), (4, 1), (5, 3), (6, 6)])
def test_both_are_the_averages_over_all_choices_of_k_tries(tries: int, passed: int) -> None:
    results = [True] * passed + [False] * (tries - passed)
    for k in range(1, tries + 1):
        chosen = list(combinations(results, k))
        assert pass_at_k(tries, passed, k) == pytest.approx(sum(map(any, chosen)) / len(chosen))
        assert pass_hat_k(tries, passed, k) == pytest.approx(sum(map(all, chosen)) / len(chosen))


@pytest.mark.parametrize(("tries", "passed", "k"), [(2, 1, 3), (2, 3, 1), (2, 1, 0)])
def test_more_tries_than_there_were_is_an_error(tries: int, passed: int, k: int) -> None:
    with pytest.raises(ValueError, match="tries"):
        pass_at_k(tries, passed, k)


def test_a_mean_of_tasks_that_all_pass_is_not_certain() -> None:
    found = mean_of_tasks([1.0] * 10)
    assert found is not None
    assert found.estimate == 1.0
    assert 0.6 < found.low < 0.8


def test_an_interval_counts_tasks_and_not_tries() -> None:
    few, many = mean_of_tasks([0.25, 0.75] * 5), mean_of_tasks([0.25, 0.75] * 50)
    assert few is not None
    assert many is not None
    assert few.estimate == many.estimate == 0.5
    assert few.low < many.low < 0.5 < many.high < few.high


def test_the_same_results_have_the_same_interval() -> None:
    values = [0.0, 0.5, 0.25, 1.0]
    assert mean_of_tasks(values) == mean_of_tasks(values)


def test_no_tasks_have_no_mean() -> None:
    assert mean_of_tasks([]) is None
