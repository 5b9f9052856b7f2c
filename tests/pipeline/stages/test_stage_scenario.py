"""Stage 1: which scenarios are admitted, and what the next request is steered to."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipeline.errors import UserError
from pipeline.nearness import Matrix, Nearness, by_ngrams, by_vectors, ngram_cosines, unnamed
from pipeline.stages.scenario import (
    Scenario,
    admit,
    candidates_in,
    category_cap,
    check_scores,
    invent_step,
    rare_categories,
    read_seeds,
    requests_in_round,
    scored,
)


def one(name: str, category: str = "gardens", score: float | None = 9, description: str = "") -> Scenario:
    return Scenario(name, category, description or f"About {name}.", score)


def cosines(**near: float) -> Nearness:
    """Cosines by candidate name, to everything that is known before it."""

    async def compare(new: Sequence[str], known: Sequence[str]) -> Matrix:
        return [[near.get(text.split()[1].rstrip("."), 0.0) for _ in known] for text in new]

    return Nearness("given", compare)


async def admitted(
    candidates: list[Scenario], nearness: Nearness | None = None, **options
) -> tuple[list[str], dict[str, str]]:
    usual = {"known": [one("Known")], "admitted": [], "taken": frozenset({"taken_name"}), "cap": 2, "room": 10}
    accepted, refused = await admit(candidates, nearness=nearness or cosines(), **{**usual, **options})
    return [each.name for each in accepted], {each.name: each.why for each in refused}


@pytest.fixture(autouse=True)
def names_are_not_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.stages.scenario.unnamed", lambda _, description: description)


async def test_new_ones_are_admitted_in_their_order():
    assert await admitted([one("B"), one("A")]) == (["B", "A"], {})


async def test_a_poor_score_a_taken_name_and_no_name_are_refused():
    names, why = await admitted([one("A", score=5), one("Taken Name"), one("known"), one("漢字"), one("B"), one("b")])
    assert names == ["B"]
    assert why["A"] == "its suitability is 5 of 10"
    assert why["Taken Name"] == why["known"] == why["b"] == "there is one of that name"
    assert why["漢字"] == "it has no usable name"


async def test_near_duplicates_are_refused_and_neighbours_only_where_the_category_is_full():
    near = cosines(Same=0.86, Near=0.80, Also=0.84, Far=0.74)
    names, why = await admitted([one("Same"), one("Near"), one("Far"), one("Also")], near, cap=2)
    assert names == ["Near", "Far"]
    assert why["Same"] == "it is Known again (0.86)"
    assert "enough of gardens" in why["Also"]


async def test_no_more_than_there_is_room_for():
    names, why = await admitted([one("A"), one("B"), one("C")], room=2)
    assert (names, why) == (["A", "B"], {})


def test_a_hint_goes_into_the_request_and_without_one_nothing_changes():
    def prompt(**hint: str) -> str:
        return invent_step([one("A")], [], "1.0", random.Random(1), **hint).prompt[-1].content

    assert "The person who asks for them says: More bell foundries." in prompt(hint="More bell foundries.")
    assert prompt(hint="") == prompt()
    assert "The person who asks" not in prompt()


def test_requests_are_steered_to_rare_categories_and_are_reproducible():
    known = [one(f"K{n}", category) for n, category in enumerate(["a", "b", "b", "c"] * 4)]
    first = invent_step(known, [one("X", "a"), one("Y", "c")], "1.0", random.Random("seed"))
    again = invent_step(known, [one("X", "a"), one("Y", "c")], "1.0", random.Random("seed"))
    assert first.prompt == again.prompt
    assert "have too few scenarios so far: b, a, c." in first.prompt[1].content
    assert rare_categories(["a", "b"], [one("X", "b")]) == ["a", "b"]


@pytest.mark.parametrize(("missing", "requests"), [(1, 1), (10, 2), (20, 3), (1000, 8)])
def test_as_many_requests_as_are_likely_to_be_needed(missing: int, requests: int):
    assert requests_in_round(missing) == requests


def test_no_category_may_fill_up_with_neighbours():
    assert category_cap(20, 5) == 6
    assert category_cap(1, 27) == 2


def test_scores_are_matched_by_place_and_counted():
    content = json.dumps({"scores": [{"name": "?", "score": 7, "reason": "r"}]})
    assert [each.score for each in scored([one("A", score=None)], content)] == [7.0]
    assert [finding.code for finding in check_scores(content, 2)] == ["score_count"]


def test_candidates_are_tidied():
    content = json.dumps({"scenarios": [{"name": " Two\n words ", "category": " Food ", "description": " d "}]})
    assert candidates_in(content) == [Scenario("Two words", "food", "d")]


# seeds


def test_a_hundred_seeds_come_with_us():
    seeds = read_seeds()
    assert len(seeds) == len({seed.name for seed in seeds}) == 100
    assert len({seed.category for seed in seeds}) >= 20
    assert min(len(seed.description.split()) for seed in seeds) >= 40


def test_no_two_seeds_are_near_duplicates():
    seeds = read_seeds()
    texts = [unnamed(seed.name, seed.description) for seed in seeds]
    matrix = ngram_cosines(texts, texts)
    nearness = by_ngrams()
    assert max(matrix[a][b] for a in range(100) for b in range(a)) < nearness.near


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("not json", ":2 is not a seed"),
        ('{"name": "x"}', ":2 is not a seed"),
        ('{"name": "!", "description": "d"}', ":2: the name"),
    ],
)
def test_a_bad_seed_is_named_by_file_and_line(tmp_path: Path, line: str, told: str):
    path = tmp_path / "seeds.jsonl"
    path.write_text('{"name": "Good", "description": "d"}\n' + line + "\n")
    with pytest.raises(UserError, match=f"{path}{told}"):
        read_seeds(path)


def test_no_seeds_at_all(tmp_path: Path):
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(UserError, match="holds no seeds"):
        read_seeds(tmp_path / "empty.jsonl")
    with pytest.raises(UserError, match="cannot be read"):
        read_seeds(tmp_path / "none.jsonl")


# nearness


async def test_vectors_of_any_length_are_compared_by_their_direction():
    async def embed(texts: list[str]) -> list[list[float]]:
        return [[3.0 * len(text), 4.0 * len(text)] if text != "up" else [0.0, 2.0] for text in texts]

    matrix = await by_vectors("v", embed).compare(["a", "up"], ["bbb"])
    assert matrix == [[pytest.approx(1.0)], [pytest.approx(0.8)]]


async def test_ngrams_tell_a_copy_from_another_thing_and_say_what_they_miss():
    text = "Members reserve kilns, log firings and order glazes from the shared store of a pottery club."
    nearness = by_ngrams()
    ((copy, other),) = await nearness.compare(
        [text.replace("club", "guild")], [text, "Anglers buy day tickets for lakes and record what they catch."]
    )
    assert copy > nearness.same > nearness.near > other
    assert "embedding" in nearness.notice


def test_a_service_s_own_name_does_not_count():
    assert (
        unnamed("Etsy Digital Downloads", "Etsy sells downloads; Etsy's shops list them.")
        == "sells downloads; shops list them."
    )
