"""Tiny tokenizers, models and rollouts for tests of training: made in a second, no download."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from pipeline.llm.request import Message
from train.collect import Collected, Generate
from train.protocol import call_text, list_text
from train.reward import Reward, Rewards
from train.rules import Rules
from train.tiny import TinyModel, make_model, make_tokenizer
from train.tokens import Codec, TokenConversation, TokenTurn
from train.trajectory import End, Trajectory, Turn
from train.worlds import Task

WORDS = ["rice", "beans", "salt", "sugar", "flour", "oil", "tea", "milk", "bread", "soup"]
CORPUS = [list_text(), call_text("set_amount", {"item_id": 1, "amount": 5}), "Use the tools.", " ".join(WORDS) * 3]
SIZES = TinyModel(vocabulary=400, hidden=32, layers=2, heads=2, longest=1024, initializer_range=0.2)


def tokenizer() -> Any:
    return make_tokenizer(CORPUS, SIZES.vocabulary)


def model(made: Any, seed: int = 0) -> Any:
    return make_model(made, SIZES.model_copy(update={"seed": seed}))


class EndlessRollouts:
    """Stands in for a collector: agents that say anything, and are shown random words for it, for many turns."""

    def __init__(
        self, codec: Codec, *, turns: int, rules: Rules, reward: Callable[[int], Reward] | None = None
    ) -> None:
        self.codec = codec
        self.rules = rules
        self.scorer = type("Scorer", (), {"rewards": Rewards()})()
        self.last: list[Collected] = []
        self._turns = turns
        self._reward = reward or (lambda number: Reward(float(number % 2), outcome="complete"))

    def prepare(self, tasks: Sequence[Task]) -> None:
        pass

    def collect(
        self, tasks: Sequence[Task], generate: Generate, *, step: int | None = None, beat: Any = None
    ) -> list[Collected]:
        rng = random.Random(0)
        head = (Message("system", "Use the tools."), Message("user", "rice and beans"))
        talks = [TokenConversation.begin(self.codec, self.rules, head) for _ in tasks]
        turns: list[list[Turn]] = [[] for _ in tasks]
        sampled: list[list[TokenTurn]] = [[] for _ in tasks]
        for _ in range(self._turns):
            prompts = [talk.context() for talk in talks]
            said, logprobs = generate(prompts)
            for place, talk in enumerate(talks):
                shown = " ".join(rng.choices(WORDS, k=6))
                given = tuple(logprobs[place]) if logprobs else ()
                turn = Turn(
                    self.codec.text(said[place]),
                    move="call",
                    shown=shown,
                    completion_ids=tuple(said[place]),
                    logprobs=given,
                )
                turns[place].append(turn)
                sampled[place].append(TokenTurn(prompts[place], said[place], list(given) or None))
                talk.add(turn, said[place])
        self.last = [
            Collected(
                Trajectory("e", task.number, 0, "", "p", self.rules, {}, "", head, tuple(turns[place]), End.answered,
                           reward=self._reward(place)),
                sampled[place],
            )
            for place, task in enumerate(tasks)
        ]  # fmt: skip
        return self.last
