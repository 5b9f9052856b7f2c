"""Conversations as token ids: id for id what the chat template writes, and what the policy saw."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("transformers", reason="training needs the extra: pip install 'awm-studio[train]'")

from pipeline.errors import UserError
from pipeline.llm.request import Message
from tests.train import tiny_worlds
from train.protocol import call_text, list_text
from train.rules import Rules
from train.samples import rows
from train.tokens import Codec, TokenConversation, TokenTurn, token_turns
from train.trajectory import End, Trajectory, Turn
from train.window import context

HEAD = (Message("system", "Use the tools."), Message("user", "Set rice to 5."))
TURNS = (
    Turn(list_text(), move="list", shown="mcp_tool_set_amount(item_id, amount)"),
    *(
        Turn(call_text("set_amount", {"item_id": n}), move="call", tool="set_amount", status=200, shown=f"rice {n}")
        for n in range(5)
    ),
    Turn("Done.", move="answer"),
)

QWEN = (
    "{%- for m in messages %}{{- '<|im_start|>' + ('user' if m.role == 'tool' else m.role) + '\\n' }}"
    "{%- if m.role == 'tool' %}{{- '<tool_response>\\n' + m.content + '\\n</tool_response>' }}"
    "{%- elif m.role == 'assistant' and loop.last %}{{- '<think>\\n\\n</think>\\n\\n' + m.content }}"
    "{%- else %}{{- m.content }}{%- endif %}{{- '<|im_end|>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)
"""A template that, as Qwen3's, writes a last assistant's turn with an empty thinking part."""


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return tiny_worlds.tokenizer()


def record(window: int | None, results_as: Any = "tool", turns: tuple[Turn, ...] = TURNS) -> Trajectory:
    rules = Rules(window=window, results_as=results_as)
    return Trajectory("e", 0, 0, "", "p", rules, {}, "", HEAD, turns, End.answered)


@pytest.mark.parametrize("results_as", ["tool", "user"])
@pytest.mark.parametrize("window", [0, 1, 2, 3, None])
def test_a_context_is_what_the_chat_template_writes_of_the_same_window(
    tokenizer: Any, window: int | None, results_as: str
) -> None:
    trajectory = record(window, results_as)
    exchanges = list(trajectory.exchanges())
    for number, turn in enumerate(token_turns(trajectory, Codec(tokenizer))):
        messages = context(HEAD, exchanges[:number], window=window, pinned=1)
        documents = [{"role": m.role, "content": m.content} for m in messages]
        written = tokenizer.apply_chat_template(documents, tokenize=False, add_generation_prompt=True)
        assert turn.prompt_ids == tokenizer(written, add_special_tokens=False)["input_ids"]


def test_ids_that_were_sampled_are_kept_although_they_would_be_written_otherwise(tokenizer: Any) -> None:
    codec = Codec(tokenizer)
    letters = [tokenizer.convert_tokens_to_ids(letter) for letter in "rice"]
    assert tokenizer("rice", add_special_tokens=False)["input_ids"] != letters
    said = Turn("rice", completion_ids=(*letters, codec.end), move="call", shown="beans")
    first, second = token_turns(record(None, turns=(said, Turn("Done."))), codec)
    assert first.completion_ids == [*letters, codec.end]
    assert second.prompt_ids[: len(first.prompt_ids) + 5] == [*first.prompt_ids, *letters, codec.end]


def test_thinking_that_the_template_adds_is_in_no_context(tokenizer: Any) -> None:
    other = tiny_worlds.tokenizer()
    other.chat_template = QWEN
    ids = token_turns(record(None), Codec(other))[-1].prompt_ids
    assert "<think>" not in other.decode(ids)
    assert other.decode(ids).endswith("</tool_response><|im_end|>\n<|im_start|>assistant\n")


def test_a_cut_turn_has_no_end(tokenizer: Any) -> None:
    codec = Codec(tokenizer)
    assert codec.said(Turn("rice"))[-1] == codec.end
    assert codec.end not in codec.said(Turn("rice", cut=True))
    assert codec.text(codec.said(Turn("rice beans"))) == "rice beans"


def test_a_tokenizer_without_a_template_or_without_an_end_is_refused(tokenizer: Any) -> None:
    bare = tiny_worlds.tokenizer()
    bare.chat_template = None
    with pytest.raises(UserError, match="no chat template"):
        Codec(bare, "bare")
    bare.chat_template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    with pytest.raises(UserError, match="does not end an assistant's turn"):
        Codec(bare, "bare")


def test_the_first_turns_share_a_row_and_each_later_one_has_its_own(tokenizer: Any) -> None:
    turns = token_turns(record(1), Codec(tokenizer))
    merged = rows(turns, merge=True)
    assert [sum(row.mask) for row in rows(turns, merge=False)] == [len(turn.completion_ids) for turn in turns]
    assert len(merged) == len(turns) - (1 + 1)
    said = [token for turn in turns[:3] for token in turn.completion_ids]
    assert [token for token, own in zip(merged[0].completion_ids, merged[0].mask, strict=True) if own] == said
    assert merged[0].prompt_ids == turns[0].prompt_ids
    assert [row.completion_ids for row in merged[1:]] == [turn.completion_ids for turn in turns[3:]]


def test_logprobs_keep_their_place_in_a_merged_row() -> None:
    first = TokenTurn([1, 2], [3, 4], [-0.1, -0.2])
    second = TokenTurn([1, 2, 3, 4, 5, 6], [7], [-0.3])
    (row,) = rows([first, second], merge=True)
    assert (row.completion_ids, row.mask) == ([3, 4, 5, 6, 7], [1, 1, 0, 0, 1])
    assert row.logprobs == [-0.1, -0.2, 0.0, 0.0, -0.3]


def test_what_is_not_an_extension_is_not_merged() -> None:
    assert len(rows([TokenTurn([1, 2], [3]), TokenTurn([1, 9, 3], [4])], merge=True)) == 2


def test_a_conversation_grows_by_exactly_what_was_said_and_shown(tokenizer: Any) -> None:
    codec = Codec(tokenizer)
    talk = TokenConversation.begin(codec, Rules(window=None), HEAD)
    before = talk.context()
    said = codec.said(TURNS[0])
    talk.add(TURNS[0], said)
    after = talk.context()
    assert after[: len(before) + len(said)] == [*before, *said]
    assert after[-len(codec.opening) :] == codec.opening
