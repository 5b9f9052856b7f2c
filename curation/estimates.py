"""What a sample says of the whole: how often something happens, and how many kinds there really are.

Everything here works on counts, on *abundances* (how many items each concept holds) or on unit vectors, never on text.
Numbers from a sample say little alone: they come with an interval, or with the share of the whole they cover.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

Z_95 = 1.959963984540054
"""The 97.5 % point of the standard normal, for two-sided 95 % intervals."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its 95 % interval."""

    estimate: float
    low: float
    high: float


def rate(successes: float, of: int) -> Interval | None:
    """A share with Wilson's interval (E. B. Wilson, J. Am. Stat. Assoc. 22:209, 1927); None where nothing was tried."""
    if not of:
        return None
    share, square = successes / of, Z_95**2 / of
    centre = (share + square / 2) / (1 + square)
    half = Z_95 * math.sqrt(share * (1 - share) / of + square / (4 * of)) / (1 + square)
    return Interval(share, max(0.0, centre - half), min(1.0, centre + half))


def abundances(labels: Iterable[Hashable]) -> tuple[int, ...]:
    """How many items each class holds, largest first."""
    return tuple(sorted(Counter(labels).values(), reverse=True))


def hill(counts: Sequence[int], order: float) -> float:
    """The Hill number of an order: the effective number of classes.

    Order 0 counts classes, 1 is the exponential of Shannon's entropy, 2 the inverse Simpson concentration
    (Hill 1973, Ecology 54:427; Jost 2006, Oikos 113:363). Nothing has no classes.
    """
    total = sum(counts)
    if not total:
        return 0.0
    shares = [count / total for count in counts]
    if order == 1:
        return math.exp(-sum(share * math.log(share) for share in shares))
    return math.fsum(share**order for share in shares) ** (1 / (1 - order))


def coverage(counts: Sequence[int]) -> float:
    """The share of the whole (by frequency) that the classes seen make up: 1 − f₁/n, f₁ the classes seen once.

    One minus it is the chance that the next item is of a new class (Good 1953, Biometrika 40:237, after Turing).
    """
    total = sum(counts)
    return 1 - counts.count(1) / total if total else 0.0


def chao1(counts: Sequence[int]) -> Interval:
    """A lower bound of the number of classes in the whole, with its 95 % interval, from the rare ones seen.

    Estimate: Chao 1984 (Scand. J. Statist. 11:265), in its bias-corrected form where no class was seen twice.
    Variance and log-normal interval: Chao 1987 (Biometrics 43:783), as in Colwell's EstimateS, appendix B. The
    interval never goes below the number seen.
    """
    total, seen = sum(counts), len(counts)
    once, twice = counts.count(1), counts.count(2)
    if not total:
        return Interval(0.0, 0.0, 0.0)
    if not once:
        return _complete(total, seen)
    shrink = (total - 1) / total
    if twice:
        ratio = once / twice
        unseen = shrink * once * ratio / 2
        variance = twice * (shrink * ratio**2 / 2 + shrink**2 * ratio**3 + shrink**2 * ratio**4 / 4)
    else:
        unseen = shrink * once * (once - 1) / 2
        variance = unseen + shrink**2 * once * (2 * once - 1) ** 2 / 4 - shrink**2 * once**4 / (4 * (seen + unseen))
    if unseen == 0:
        return _complete(total, seen)
    spread = math.exp(Z_95 * math.sqrt(math.log(1 + max(variance, 0.0) / unseen**2)))
    return Interval(seen + unseen, seen + unseen / spread, seen + unseen * spread)


def _complete(total: int, seen: int) -> Interval:
    """The interval where no class is rare: a Poisson model of how many were missed (EstimateS, appendix B)."""
    missed = math.exp(-total / seen)
    centre, half = seen / (1 - missed), Z_95 * math.sqrt(seen * missed) / (1 - missed)
    return Interval(float(seen), max(float(seen), centre - half), centre + half)


def accumulation(labels: Iterable[Hashable]) -> tuple[int, ...]:
    """How many classes have been seen after each item, in the order given."""
    seen: set[Hashable] = set()
    return tuple(len(seen) for label in labels if seen.add(label) is None)


def rarefaction(counts: Sequence[int], size: int) -> float:
    """The number of classes expected among `size` items drawn at random without putting back.

    Hurlbert 1971 (Ecology 52:577). It is the novelty curve freed of the accident of order.
    """
    total = sum(counts)
    if not 0 <= size <= total:
        raise ValueError(f"size {size} is not between 0 and the {total} items")
    log_samples = _log_choose(total, size)
    return math.fsum(
        1.0 if total - count < size else 1 - math.exp(_log_choose(total - count, size) - log_samples)
        for count in counts
    )


def _log_choose(total: int, size: int) -> float:
    return math.lgamma(total + 1) - math.lgamma(size + 1) - math.lgamma(total - size + 1)


def vendi(vectors: np.ndarray) -> float:
    """The Vendi score: the effective number of distinct items among unit vectors (one a row).

    The exponential of the entropy of the eigenvalues of the cosine similarities divided by their number (Friedman
    and Dieng 2023, TMLR, arXiv 2210.02410). It depends on the representation as much as on the items, so it is shown
    only beside its view and another set measured the same way. Nothing scores 0.
    """
    import numpy as np

    count, width = vectors.shape
    if not count:
        return 0.0
    rows = vectors.astype(np.float64)
    gram = rows @ rows.T if count <= width else rows.T @ rows  # both have the same non-zero eigenvalues
    shares = np.linalg.eigvalsh(gram / count)
    shares = shares[shares > 1e-12]
    return float(np.exp(-np.sum(shares * np.log(shares))))
