"""Articles follow the nouns, which vary from environment to environment."""

from __future__ import annotations

import pytest

from pipeline.blueprints.tasks.wording import articles


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Give a animal a vaccine", "Give an animal a vaccine"),
        ("Plan an conversation", "Plan a conversation"),
        ("An booking of an hour", "A booking of an hour"),
        ("a one-way trip, a unit, a MRI", "a one-way trip, a unit, a MRI"),
        ("Canada can scan", "Canada can scan"),
    ],
)
def test_articles_follow_the_noun(written: str, read: str) -> None:
    assert articles(written) == read
