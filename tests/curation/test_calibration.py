"""A person's judgements move the threshold, and are kept."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")

import numpy as np

from curation.calibration import Judgement, add_judgement, calibrate, pairs_to_judge, read_judgements
from curation.concepts import grow
from pipeline.errors import UserError


def nested(spread: float = 0.02) -> tuple[np.ndarray, list[str]]:
    """Twelve items in six tight pairs, the pairs in three looser groups."""
    draw = np.random.default_rng(1)
    groups = np.repeat(np.eye(8)[:3], 4, axis=0)
    pairs = np.repeat(np.eye(8)[2:8], 2, axis=0) * 0.6
    vectors = groups + pairs + draw.normal(0, spread, (12, 8))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), [
        f"e{n:02}" for n in range(12)
    ]


def judged(names: list[str], size: int) -> list[Judgement]:
    pairs = itertools.combinations(range(len(names)), 2)
    return [Judgement(names[a], names[b], a // size == b // size) for a, b in pairs]


@pytest.mark.parametrize(("size", "concepts"), [(2, 6), (4, 3)])
def test_the_threshold_follows_what_people_call_the_same(size: int, concepts: int) -> None:
    vectors, names = nested()
    tree = grow(vectors)
    found = calibrate(judged(names, size), names, tree)
    assert found is not None
    assert tree.count(found.threshold) == concepts
    assert (found.precision, found.recall, found.pairs) == (1, 1, 66)


def test_a_few_wrong_answers_move_nothing_much() -> None:
    vectors, names = nested()
    tree = grow(vectors)
    answers = judged(names, 4)
    answers[0] = Judgement(answers[0].a, answers[0].b, not answers[0].same)
    found = calibrate(answers, names, tree)
    assert found is not None
    assert tree.count(found.threshold) == 3
    assert found.precision < 1


def test_too_few_or_one_sided_answers_give_no_threshold() -> None:
    vectors, names = nested()
    tree, answers = grow(vectors), judged(names, 4)
    assert calibrate(answers[:19], names, tree) is None
    assert calibrate([j for j in answers if not j.same], names, tree) is None
    assert calibrate(answers, [f"other{name}" for name in names], tree) is None


def test_pairs_to_judge_are_new_and_spread_over_the_similarities() -> None:
    vectors, names = nested()
    asked = pairs_to_judge(vectors, names, [], 10)
    assert len(asked) == 10
    similarities = [similarity for _, _, similarity in asked]
    assert similarities == sorted(similarities, reverse=True)
    assert similarities[0] > 0.95 > 0.8 > similarities[-1]
    again = pairs_to_judge(vectors, names, [Judgement(a, b, True) for a, b, _ in asked], 100)
    assert not {pair[:2] for pair in asked} & {pair[:2] for pair in again}
    assert len({pair[:2] for pair in again}) == len(again)


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_to_judge_where_there_is_no_pair(count: int) -> None:
    assert pairs_to_judge(np.ones((count, 2), dtype=np.float32), ["a"][:count], []) == []


def test_judgements_are_kept_and_a_newer_one_counts(tmp_path: Path) -> None:
    assert read_judgements(tmp_path) == []
    add_judgement(tmp_path, "b", "a", True, by="ada")
    add_judgement(tmp_path, "c", "a", False)
    add_judgement(tmp_path, "a", "b", False)
    assert [(j.a, j.b, j.same, j.by) for j in read_judgements(tmp_path)] == [
        ("a", "c", False, ""),
        ("a", "b", False, ""),
    ]


@pytest.mark.parametrize("damage", ["", "{}", '{"pairs": [{"a": 1}]}', '{"pairs": [3]}'])
def test_a_damaged_file_of_judgements_is_named(tmp_path: Path, damage: str) -> None:
    (tmp_path / "concepts.json").write_text(damage)
    with pytest.raises(UserError, match=r"concepts\.json"):
        read_judgements(tmp_path)
