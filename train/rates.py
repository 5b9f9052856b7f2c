"""How often something succeeds, and how sure that is."""

from __future__ import annotations

import math

from curation.estimates import Z_95, Interval


def rate(successes: int, of: int) -> Interval | None:
    """A rate with its 95 % interval (Wilson 1927, JASA 22:209); None where nothing was tried."""
    if not of:
        return None
    share, square = successes / of, Z_95**2 / of
    centre = (share + square / 2) / (1 + square)
    half = Z_95 * math.sqrt(share * (1 - share) / of + square / (4 * of)) / (1 + square)
    return Interval(share, max(0.0, centre - half), min(1.0, centre + half))


def shown_interval(interval: Interval | None) -> list[float] | None:
    """The ends of an interval as JSON has them, to four digits."""
    return None if interval is None else [round(interval.low, 4), round(interval.high, 4)]
