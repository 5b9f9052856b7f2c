"""What the documentation says of the audit is what the audit does."""

from __future__ import annotations

import re
from pathlib import Path

from curation.audit.kinds import KINDS
from curation.audit.verdicts import RULES

TEXT = (Path(__file__).parents[3] / "docs" / "audit.md").read_text("utf-8")


def test_every_verdict_is_documented_with_its_rule() -> None:
    rows = dict(re.findall(r"^\| (\w+) \| (.+) \|$", TEXT, re.MULTILINE))
    assert {verdict: rows.get(verdict) for verdict in RULES} == RULES


def test_every_kind_of_trial_is_documented_among_the_right_or_the_wrong_ones() -> None:
    wrong, right = (set(re.findall(r"`(\w+)`", part)) for part in TEXT.split("Right, and to be accepted:"))
    for kind, about in KINDS.items():
        assert kind in (right if about.right else wrong), kind
