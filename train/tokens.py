"""Conversations as token ids: exactly those that a model is given and those that it gives.

Nothing is tokenised twice. What a model said is kept as the ids it chose; what it is shown is tokenised once, as the
chat template writes it between two turns. So a context that is trained on is, id for id, the one that was sampled
from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pipeline.errors import UserError
from pipeline.llm.request import Message
from train.rules import Rules
from train.trajectory import Trajectory, Turn, exchange
from train.window import context

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_MARK = "\u2402what the assistant said\u2403"
"""A text that no template writes by itself, to find out what it writes after an assistant's turn."""


@dataclass(frozen=True, slots=True)
class TokenTurn:
    """One turn as ids: the context it was sampled in, what was sampled (with the end token, if it ended), logprobs."""

    prompt_ids: list[int]
    completion_ids: list[int]
    logprobs: list[float] | None = None


class Codec:
    """Writes conversations as a tokenizer's chat template does, piece by piece."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, name: str = "the model") -> None:
        """Raises UserError where the tokenizer (of the model `name`) has no chat template, or one that this cannot use:
        an assistant's turn must end with the tokenizer's end token."""
        if not tokenizer.chat_template:
            raise UserError(
                f"The tokenizer of {name} has no chat template, so nothing says how a conversation is written for it: "
                "choose a chat model, or give its tokenizer a template."
            )
        self._tokenizer = tokenizer
        self._name = name
        self.end: int = self._end_id()
        self.opening = self._opening_ids()

    def head(self, messages: Sequence[Message]) -> list[int]:
        """The ids of a conversation's beginning, up to the first turn."""
        return self._ids(self._written(messages))

    def result(self, turn: Turn, rules: Rules) -> list[int]:
        """The ids of what an agent was shown for a turn, up to the next one."""
        _, *shown = exchange(turn, 0, rules)
        told = [Message("user", "?"), Message("assistant", _MARK), *shown]
        return self._ids(self._written(told).split(_MARK, 1)[1].removeprefix(self._end_text))

    def said(self, turn: Turn) -> list[int]:
        """The ids of what an agent said: those it chose where they are known."""
        if turn.completion_ids:
            return list(turn.completion_ids)
        return [*self._ids(turn.content), *([] if turn.cut else [self.end])]

    def text(self, ids: Sequence[int]) -> str:
        """What was said, without the end token."""
        spoken = ids[:-1] if ids and ids[-1] == self.end else ids
        return str(self._tokenizer.decode(list(spoken), clean_up_tokenization_spaces=False))

    def _written(self, messages: Sequence[Message], *, opened: bool = False) -> str:
        documents = [{"role": message.role, "content": message.content} for message in messages]
        return str(self._tokenizer.apply_chat_template(documents, tokenize=False, add_generation_prompt=opened))

    def _ids(self, text: str) -> list[int]:
        ids: Any = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def _end_id(self) -> int:
        after = self._written([Message("user", "?"), Message("assistant", _MARK)]).split(_MARK, 1)[-1]
        end = self._tokenizer.eos_token
        if not end or not after.startswith(end):
            raise UserError(
                f"The chat template of {self._name} does not end an assistant's turn with the tokenizer's end token "
                f"({end!r}), so a finished turn cannot be told from a cut one: set eos_token to what ends a turn."
            )
        self._end_text = end
        (end_id,) = self._ids(end)
        return end_id

    def _opening_ids(self) -> list[int]:
        asked = [Message("user", "?")]
        closed, opened = self._written(asked), self._written(asked, opened=True)
        if not opened.startswith(closed) or opened == closed:
            raise UserError(f"The chat template of {self._name} does not open an assistant's turn when asked to.")
        return self._ids(opened[len(closed) :])


@dataclass
class TokenConversation:
    """A conversation while it grows, as ids."""

    codec: Codec
    rules: Rules
    head: list[int]
    exchanges: list[list[int]] = field(default_factory=list)

    @classmethod
    def begin(cls, codec: Codec, rules: Rules, messages: Sequence[Message]) -> TokenConversation:
        """A conversation with its beginning."""
        return cls(codec, rules, codec.head(messages))

    def context(self) -> list[int]:
        """The ids that the next turn is sampled in."""
        rules, opening = self.rules, self.codec.opening
        return context(self.head, self.exchanges, window=rules.window, pinned=rules.pinned, end=opening)

    def add(self, turn: Turn, said: Sequence[int]) -> None:
        """A turn, which was sampled as `said`, and what the agent was shown for it."""
        self.exchanges.append([*self.codec.opening, *said, *self.codec.result(turn, self.rules)])


def token_turns(trajectory: Trajectory, codec: Codec) -> list[TokenTurn]:
    """The turns of a recorded rollout as ids, each in the context it was sampled in."""
    conversation = TokenConversation.begin(codec, trajectory.rules, trajectory.head)
    turns = []
    for turn in trajectory.turns:
        said = codec.said(turn)
        turns.append(TokenTurn(conversation.context(), said, list(turn.logprobs) or None))
        if turn.shown is not None:
            conversation.add(turn, said)
    return turns
