"""Reinforcement on windowed rows: trained on exactly what was sampled, group-relative over whole trajectories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="training needs the extra: pip install 'awm-studio[train]'")

import torch

from pipeline.errors import UserError
from tests.train import tiny_worlds
from tests.train.tiny_worlds import EndlessRollouts
from train.grpo import Grouping, GRPOConfig, WindowTrainer, group_advantages, task_rows
from train.reward import Reward
from train.rules import Rules
from train.tokens import Codec, TokenConversation
from train.worlds import Task

pytestmark = pytest.mark.filterwarnings("ignore:You are using 'rollout_func'", "ignore:.*gradient_checkpointing.*")

GROUP, TURNS, WINDOW = 4, 6, 2
ALL_AT_ONCE = Grouping(at_once=10_000)
INPUTS = [{"prompt": [], "environment": "e", "task": n} for n in range(2) for _ in range(GROUP)]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    torch.set_num_threads(1)
    return tiny_worlds.tokenizer()


def trainer(
    tokenizer: Any, folder: Path, *, grouping: Grouping = ALL_AT_ONCE, reward: Any = None, **options: Any
) -> WindowTrainer:
    fields = {"per_device_train_batch_size": 8, "num_generations": GROUP, "max_completion_length": 12, "max_steps": 1}
    fields |= {"use_cpu": True, "bf16": False, "activation_checkpointing": False, "report_to": "none", "beta": 0.0}
    made = WindowTrainer(
        model=tiny_worlds.model(tokenizer),
        args=GRPOConfig(output_dir=str(folder), **(fields | options)),
        train_dataset=task_rows([Task("e", n) for n in range(8)]),
        processing_class=tokenizer,
        collector=EndlessRollouts(Codec(tokenizer), turns=TURNS, rules=Rules(window=WINDOW), reward=reward),
        grouping=grouping,
        collected=lambda rollouts: None,
        beat=lambda live: None,
    )
    made.model.train()
    return made


def by_sampling(model: Any, most: int = 12) -> Any:
    """A model's own generation, with a cache, and the logprobs of what it says."""

    @torch.no_grad()
    def say(prompts: list[list[int]]) -> tuple[list[list[int]], list[list[float]]]:
        ids, logprobs = [], []
        for prompt in prompts:
            given = torch.tensor([prompt])
            options = {"max_new_tokens": most, "do_sample": True, "top_k": 0, "attention_mask": torch.ones_like(given)}
            made = model.generate(given, return_dict_in_generate=True, output_logits=True, **options)
            said = made.sequences[0, len(prompt) :].tolist()
            scores = torch.stack(made.logits, 1)[0].float().log_softmax(-1)
            ids.append(said)
            logprobs.append(scores[torch.arange(len(said)), torch.tensor(said)].tolist())
        return ids, logprobs

    torch.manual_seed(0)
    return say


@torch.no_grad()
def logprobs_in(model: Any, context: list[int], said: tuple[int, ...]) -> torch.Tensor:
    logits = model(torch.tensor([[*context, *said]])).logits[0, len(context) - 1 : -1].float().log_softmax(-1)
    return logits[torch.arange(len(said)), torch.tensor(said)]


def batch(made: WindowTrainer, generate: Any = None) -> dict[str, Any]:
    """A generation's rows, of two groups. By default the agents say fixed words, a different number of them each."""
    end = made.collector.codec.end

    def say(prompts: list[list[int]]) -> tuple[list[list[int]], None]:
        return [[*prompt[-1 - place % 5 :], end] for place, prompt in enumerate(prompts)], None

    made.generate_turns = generate or say  # type: ignore[method-assign]
    return made._generate_and_score_completions(INPUTS)


@pytest.mark.parametrize("merge", [True, False])
def test_the_trainers_logprobs_are_those_of_the_generation(tokenizer: Any, tmp_path: Path, merge: bool) -> None:
    made = trainer(tokenizer, tmp_path, grouping=Grouping(merge=merge))
    rows = batch(made, by_sampling(made.model))
    ids = torch.cat([rows["prompt_ids"], rows["completion_ids"]], 1)
    attention = torch.cat([rows["prompt_mask"], rows["completion_mask"]], 1)
    with torch.no_grad():
        again, _, _ = made._get_per_token_logps_and_entropies(
            made.model, ids, attention, rows["completion_ids"].size(1)
        )
    own = (rows["completion_mask"] * rows["tool_mask"]).bool()
    said = sum(len(turn.completion_ids) for rollout in made.collector.last for turn in rollout.turns)
    assert int(own.sum()) == said
    assert (again - rows["sampling_per_token_logps"])[own].abs().max() < 1e-4


def test_rows_of_the_full_history_would_be_another_policys(tokenizer: Any, tmp_path: Path) -> None:
    """The misaligned variant: the same turns, conditioned on everything that came before."""
    made = trainer(tokenizer, tmp_path)
    batch(made, by_sampling(made.model))
    within, beyond = [], []
    for rollout in made.collector.last:
        whole = TokenConversation.begin(made.collector.codec, Rules(window=None), rollout.trajectory.head)
        for number, turn in enumerate(rollout.trajectory.turns):
            there = logprobs_in(made.model, whole.context(), turn.completion_ids)
            differs = (there - torch.tensor(turn.logprobs)).abs().mean().item()
            (within if number <= WINDOW + 1 else beyond).append(differs)
            whole.add(turn, turn.completion_ids)
    assert max(within) < 1e-4
    assert min(beyond) > 1e-2


def test_every_turn_of_a_trajectory_has_the_trajectorys_advantage(tokenizer: Any, tmp_path: Path) -> None:
    made = trainer(tokenizer, tmp_path, grouping=Grouping(merge=False))
    rows = batch(made)
    expected, _ = group_advantages(torch.tensor([0.0, 1.0] * GROUP), GROUP, scale=True)
    by_row = expected.repeat_interleave(TURNS)
    assert torch.allclose(rows["advantages"][: len(by_row)], by_row)
    assert not rows["advantages"][len(by_row) :].any()


def test_advantages_are_relative_to_the_group_and_leave_out_what_says_nothing() -> None:
    nan = float("nan")
    advantages, spread = group_advantages(torch.tensor([1.0, 0.0, nan, 1.0, 1.0, 1.0, nan, nan]), 4, scale=False)
    assert torch.allclose(advantages, torch.tensor([1 / 3, -2 / 3, 0.0, 1 / 3, 0.0, 0.0, 0.0, 0.0]))
    assert torch.allclose(spread, torch.tensor([3**-0.5, 0.0]))


def test_what_an_environment_broke_moves_nothing_and_weights_weigh(tokenizer: Any, tmp_path: Path) -> None:
    rewards = [Reward(1.0, outcome="complete"), Reward(0.0, outcome="environment_error", excluded=True),
               Reward(0.0, outcome="agent_error"), Reward(1.0, outcome="complete", weight=0.5)]  # fmt: skip
    made = trainer(tokenizer, tmp_path, grouping=Grouping(merge=False), reward=lambda place: rewards[place % 4])
    each = batch(made)["advantages"][: GROUP * TURNS : TURNS]
    alone, _ = group_advantages(torch.tensor([1.0, float("nan"), 0.0, 1.0]), 4, scale=True)
    assert torch.allclose(each, alone * torch.tensor([1.0, 1.0, 1.0, 0.5]))


def test_shuffled_rewards_are_the_same_rewards_dealt_out_otherwise(tokenizer: Any, tmp_path: Path) -> None:
    def reward(place: int) -> Reward:
        return Reward(float(place), outcome="complete")

    made = trainer(tokenizer, tmp_path, grouping=Grouping(shuffled=True), reward=reward)
    batch(made)
    dealt = made._rewards(made.collector.last).tolist()
    assert sorted(dealt) == [float(n) for n in range(2 * GROUP)] != dealt


@pytest.mark.parametrize("loss_type", ["dapo", "grpo", "bnpo"])
def test_a_few_rows_at_a_time_give_the_gradient_of_all_at_once(tokenizer: Any, tmp_path: Path, loss_type: str) -> None:
    gradients = []
    for at_once in (3, 10_000):
        made = trainer(tokenizer, tmp_path, grouping=Grouping(merge=False, at_once=at_once), loss_type=loss_type)
        rows = batch(made)
        made.current_gradient_accumulation_steps = 1
        made.model.zero_grad()
        made.accelerator.backward(made.compute_loss(made.model, rows))
        gradients.append(torch.cat([p.grad.flatten() for p in made.model.parameters() if p.grad is not None]))
    few, whole = gradients
    assert (few - whole).norm() < 1e-4 * whole.norm()


def test_a_generation_divides_into_its_updates(tokenizer: Any, tmp_path: Path) -> None:
    made = trainer(
        tokenizer, tmp_path, per_device_train_batch_size=4, steps_per_generation=2, gradient_accumulation_steps=1
    )
    rows = batch(made)
    assert len(rows["advantages"]) % (2 * GROUP) == 0


def test_a_loss_that_is_no_number_ends_the_training_with_a_sentence(tokenizer: Any, tmp_path: Path) -> None:
    made = trainer(tokenizer, tmp_path)
    batch(made)
    for parameter in made.model.parameters():
        parameter.data.fill_(float("nan"))
    made.current_gradient_accumulation_steps = 1
    with pytest.raises(UserError, match="lower the learning rate"):
        made.training_step(made.model, INPUTS)
