"""What several tries at each of many tasks say: pass@k, pass^k, and how sure that is.

Tries at one task resemble each other, so tasks are what intervals count, not tries.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

from curation.estimates import Interval, rate

RESAMPLES = 2_000
"""Bootstrap resamples: the ends of a 95 % interval then vary by about a fiftieth of its width."""

SEED = 0
"""Of the bootstrap, so that the same results always give the same interval."""


def pass_at_k(tries: int, passed: int, k: int) -> float:
    """The chance that at least one of k tries passes: 1 − C(n−c, k) / C(n, k).

    Unbiased (Chen et al. 2021, arXiv 2107.03374, equation 1). Raises ValueError for k above the number of tries.
    """
    _require(tries, passed, k)
    return 1.0 - math.comb(tries - passed, k) / math.comb(tries, k)


def pass_hat_k(tries: int, passed: int, k: int) -> float:
    """The chance that all of k tries pass, written pass^k: C(c, k) / C(n, k).

    Unbiased (Yao et al. 2024, τ-bench, arXiv 2406.12045, section 3). Raises ValueError for k above the number of tries.
    """
    _require(tries, passed, k)
    return math.comb(passed, k) / math.comb(tries, k)


def mean_of_tasks(values: Sequence[float]) -> Interval | None:
    """The mean over tasks of values between 0 and 1, with a 95 % interval; None for no tasks.

    The interval is the percentile bootstrap over tasks (Efron and Tibshirani 1993, chapter 13), which keeps a task's
    tries together. It is Wilson's for a rate where all values are 0 or 1, and also where they are all equal, so that a
    bootstrap would claim to be certain: no mean of values between 0 and 1 varies more than a rate.
    """
    if not values:
        return None
    if all(value in (0.0, 1.0) for value in values) or min(values) == max(values):
        return rate(math.fsum(values), len(values))
    mean = math.fsum(values) / len(values)
    low, high = bootstrap_interval(values, lambda drawn: math.fsum(drawn) / len(drawn))
    return Interval(mean, low, high)


def bootstrap_interval(values: Sequence[float], statistic: Callable[[Sequence[float]], float]) -> tuple[float, float]:
    """The 2.5 % and 97.5 % points of a statistic over resamples of the values."""
    rng = random.Random(SEED)  # noqa: S311 (reproducible on purpose)
    drawn = sorted(statistic(rng.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return drawn[math.floor(0.025 * RESAMPLES)], drawn[math.ceil(0.975 * RESAMPLES) - 1]


def _require(tries: int, passed: int, k: int) -> None:
    if not 1 <= k <= tries or not 0 <= passed <= tries:
        raise ValueError(f"k = {k} of {tries} tries, {passed} passed")
