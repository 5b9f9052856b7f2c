"""What the documentation says of reviews and remedies is what they are."""

from __future__ import annotations

import re
from pathlib import Path

from curation.fixes.proposals import GUARD, REMEDIES
from curation.review import Decision

TEXT = (Path(__file__).parents[2] / "docs" / "review.md").read_text("utf-8")


def test_every_decision_is_documented() -> None:
    assert set(re.findall(r"^\| (\w+) \| [A-Z]", TEXT, re.MULTILINE)) == {decision.value for decision in Decision}


def test_every_remedy_is_documented() -> None:
    cells = re.findall(r"^\| (`.+?) \|", TEXT, re.MULTILINE)
    assert {code for cell in cells for code in re.findall(r"`(\w+)`", cell)} == {*REMEDIES, GUARD}
