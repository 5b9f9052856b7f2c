"""Intervals and rules: how counts become a verdict about a verifier."""

from __future__ import annotations

from curation.audit.summary import bias
from curation.audit.verdicts import RULES, WORST, Rate


def test_an_interval_is_told_to_four_digits() -> None:
    assert Rate(148, 15).interval == (0.0624, 0.1605)


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
