"""How often something succeeds, and how sure that is, as records and documents have it."""

from __future__ import annotations

from curation.estimates import Interval, rate

__all__ = ["rate", "shown_interval"]


def shown_interval(interval: Interval | None) -> list[float] | None:
    """The ends of an interval as JSON has them, to four digits."""
    return None if interval is None else [round(interval.low, 4), round(interval.high, 4)]
