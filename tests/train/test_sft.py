"""The rows of the warm start: loss on what was said alone, and tokens that are exchanged so that copying is learned."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("trl", reason="training needs the extra: pip install 'awm-studio[train]'")

from pipeline.errors import UserError
from tests.train import tiny_worlds
from train.samples import Row
from train.sft import IGNORED, Padding, _number_ids, _word_ids, labelled
from train.tiny import make_tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return tiny_worlds.tokenizer()


def ids(tokenizer: Any, text: str) -> list[int]:
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def test_only_what_was_said_is_learned() -> None:
    row = Row([1, 2], [3, 4, 5, 6], [1, 0, 0, 1], None)
    assert labelled(row) == {"input_ids": [1, 2, 3, 4, 5, 6], "labels": [IGNORED] * 2 + [3, IGNORED, IGNORED, 6]}


def test_rows_of_different_length_share_a_batch() -> None:
    batch = Padding(0, [], seed=0)([labelled(Row([1], [2], [1], None)), labelled(Row([1, 2], [3, 4], [1, 1], None))])
    assert batch["input_ids"].tolist() == [[1, 2, 0, 0], [1, 2, 3, 4]]
    assert batch["labels"].tolist() == [[IGNORED, 2, IGNORED, IGNORED], [IGNORED, IGNORED, 3, 4]]
    assert batch["attention_mask"].tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]


def test_an_exchanged_token_is_the_same_throughout_a_row_and_another_in_the_next(tokenizer: Any) -> None:
    words = _word_ids(tokenizer, tiny_worlds.WORDS)
    padding = Padding(tokenizer.pad_token_id, [words], seed=0)
    rice = ids(tokenizer, "rice")[0]
    row = {"input_ids": [rice, 9999, rice], "labels": [IGNORED, IGNORED, rice]}
    seen = set()
    for _ in range(20):
        first, other, again = padding([row])["input_ids"][0].tolist()
        assert first == again
        assert (other, first in words) == (9999, True)
        seen.add(first)
    assert len(seen) > 3
    assert padding([row])["labels"][0, :2].tolist() == [IGNORED, IGNORED]


def test_different_tokens_stay_different(tokenizer: Any) -> None:
    digits = next(group for group in _number_ids(tokenizer) if len(group) == 10)
    padding = Padding(tokenizer.pad_token_id, [digits], seed=0)
    for _ in range(20):
        exchanged = padding([{"input_ids": digits, "labels": digits}])["input_ids"][0].tolist()
        assert sorted(exchanged) == sorted(digits)


def test_numbers_are_exchanged_with_numbers_as_long() -> None:
    tokenizer = make_tokenizer(tiny_worlds.CORPUS, 400, digits=3)
    lengths = [{len(tokenizer.decode([token])) for token in group} for group in _number_ids(tokenizer)]
    assert sorted(map(sorted, lengths)) == [[1], [2], [3]]
    assert len(ids(tokenizer, "227")) == 1
    assert len(ids(tiny_worlds.tokenizer(), "227")) == 3


def test_a_group_without_two_words_of_one_token_is_refused(tokenizer: Any) -> None:
    with pytest.raises(UserError, match="fewer than two"):
        _word_ids(tokenizer, ["rice", "antidisestablishmentarianism"])
