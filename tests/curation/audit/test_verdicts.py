"""Intervals and rules: how counts become a verdict about a verifier."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.audit.summary import bias
from curation.audit.verdicts import RULES, WORST, Rate, wilson


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
def test_intervals_are_wilsons(failed: int, tried: int, low: float, high: float) -> None:
    assert wilson(failed, tried) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


@given(st.integers(1, 500), st.data())
def test_an_interval_holds_its_share_and_narrows_with_more_trials(tried: int, data: st.DataObject) -> None:
    failed = data.draw(st.integers(0, tried))
    low, high = wilson(failed, tried)
    assert 0 <= low <= round(failed / tried, 4) <= high <= 1
    more_low, more_high = wilson(4 * failed, 4 * tried)
    assert more_high - more_low < high - low


def test_nothing_tried_has_no_interval() -> None:
    assert Rate().interval is None
    assert Rate().document("accepted") == {"tried": 0, "accepted": 0, "low": None, "high": None}
    assert (Rate(3, 1) + Rate(2, 2)).document("accepted")["accepted"] == 3


def test_bias_is_told_only_where_intervals_do_not_overlap() -> None:
    assert bias(Rate(100, 40), Rate(100, 2)) == "too loose"
    assert bias(Rate(100, 2), Rate(100, 40)) == "too strict"
    assert bias(Rate(10, 2), Rate(10, 1)) == "even"
    assert bias(Rate(10, 2), Rate()) is None


def test_every_verdict_has_a_rule() -> None:
    assert set(RULES) == set(WORST)
