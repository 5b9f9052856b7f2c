"""Concepts named by a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")

import numpy as np

from curation.diversity import Diversity, Item, measure
from curation.naming import named_by_model
from pipeline.errors import UserError
from pipeline.llm.profiles import Profile
from pipeline.llm.replies import Replies
from tests.curation.sets import KNOWN
from tests.llm_server import Say, Server, Status


@pytest.fixture
def measured() -> Diversity:
    items = [Item(title, description) for title, _, description, _ in KNOWN]
    return measure(items, np.eye(3, dtype=np.float32)[[0, 0, 0, 1, 1, 2]], 0.5)


def by_content(body: dict[str, Any]) -> Say:
    text = body["messages"][0]["content"]
    return Say("“Ride Hailing.”" if "car" in text else "Library lending" if "books" in text else "Farm planning")


def test_concepts_take_the_models_names(measured: Diversity, tmp_path: Path) -> None:
    with Server(by_content) as server:
        profile = Profile(model="m", base_url=server.url)
        named = named_by_model(measured, profile, Replies(tmp_path / "replies.db"))
        assert named.names == ("ride hailing", "library lending", "farm planning")
        assert named_by_model(measured, profile, Replies(tmp_path / "replies.db")) == named
        assert len(server.requests) == 3


@pytest.mark.parametrize("answer", ["the same", "A long story about what these services might have in common", "a\nb"])
def test_a_name_that_is_no_name_is_not_taken(measured: Diversity, tmp_path: Path, answer: str) -> None:
    with Server([Say(answer)]) as server:
        named = named_by_model(measured, Profile(model="m", base_url=server.url), Replies(tmp_path / "replies.db"))
    assert named.names[1:] == measured.names[1:]
    assert len(set(named.names)) == 3


def test_a_model_that_cannot_be_asked_is_said(measured: Diversity, tmp_path: Path) -> None:
    with Server([Status(401, "wrong key")]) as server, pytest.raises(UserError, match="cannot be named"):
        named_by_model(measured, Profile(model="m", base_url=server.url, retries=0), Replies(tmp_path / "replies.db"))
