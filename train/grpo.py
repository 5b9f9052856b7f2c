"""GRPO on history-windowed rows: TRL's trainer with our rollouts, and a row a turn instead of a row a prompt.

A rollout of T turns becomes T rows, each conditioned on exactly the ids that the policy saw, with loss on that turn's
ids alone; the advantage is relative to the group, over whole trajectories (arXiv 2602.10090, section 4; GRPO: arXiv
2402.03300). Two methods of `trl.GRPOTrainer` (1.16) are overridden for it: the one that generates and scores, since
there are more rows than prompts, and the one that computes the loss, since how many rows there are varies.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from accelerate.utils import DistributedType, gather
from trl import GRPOConfig, GRPOTrainer

from pipeline.errors import UserError
from train.collect import Beat, Collected, Collector
from train.reward import Outcome
from train.samples import Row, rows
from train.trajectory import End
from train.worlds import Task

EPSILON = 1e-4
"""What TRL adds to a group's standard deviation before it divides by it."""

BY_ROWS = frozenset({"grpo", "sapo", "luspo", "dr_grpo"})
"""Loss types that are a mean over rows."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """How rollouts become advantages. `merge` makes as few rows as are exact, `at_once` is how many rows are in memory
    at a time (None: the configuration's per-device batch size), `shuffled` deals the rewards out at random, as a
    control: nothing can be learned from them."""

    merge: bool = True
    at_once: int | None = None
    shuffled: bool = False


class WindowTrainer(GRPOTrainer):
    """Trains on the turns of rollouts. `collected` is told each batch of rollouts, `beat` each generation."""

    args: GRPOConfig
    model: torch.nn.Module

    def __init__(
        self,
        *args: Any,
        collector: Collector,
        grouping: Grouping,
        collected: Callable[[list[Collected]], None],
        beat: Beat,
        **options: Any,
    ) -> None:
        self.collector = collector
        self._grouping = grouping
        self._told = collected
        self._beat = beat
        self._rows: list[_Weighted | None] = []
        super().__init__(*args, reward_funcs=_known_reward, rollout_func=self._replay, **options)
        self.data_collator = self._announce
        if self.accelerator.num_processes > 1:
            collector.anyone = self._anyone

    # Rollouts

    def generate_turns(self, prompts: list[list[int]]) -> tuple[list[list[int]], list[list[float]] | None]:
        """One turn in each context; every process must call this equally often, with however many contexts."""
        asked = list(prompts)
        if self.accelerator.num_processes > 1:
            counts = gather(torch.tensor([len(asked)], device=self.accelerator.device))
            asked += [[self.collector.codec.end]] * (int(counts.max()) - len(asked))
        if not asked:
            return [], None
        ids, logprobs = self._generate_single_turn(asked, None, {}, num_generations=1)
        return ids[: len(prompts)], None if logprobs is None else logprobs[: len(prompts)]

    def try_out(self, tasks: Sequence[Task], at_once: int) -> list[Collected]:
        """Rollouts that nothing is learned from, and that change nothing of what is sampled later."""
        found: list[Collected] = []
        was_training = self.model.training
        self.model.eval()
        with torch.random.fork_rng():
            torch.manual_seed(self.args.seed)
            for begin in range(0, len(tasks), at_once):
                part = tasks[begin : begin + at_once]
                step = self.state.global_step
                found += self.collector.collect(part, self.generate_turns, step=step, beat=self._beat)
        self.model.train(was_training)
        return found

    def _announce(self, features: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What the loader hands on; it is one batch ahead, so these environments are needed next."""
        self.collector.prepare([_task(feature) for feature in features])
        return features

    def _anyone(self, alive: bool) -> bool:
        return bool(gather(torch.tensor([alive], device=self.accelerator.device)).any())

    # Rows

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        mode = "train" if self.model.training else "eval"
        size = self._group_size(mode)
        began = time.perf_counter()
        tasks = [_task(row) for row in inputs]
        rollouts = self.collector.collect(tasks, self.generate_turns, step=self.state.global_step + 1, beat=self._beat)
        self._told(rollouts)
        rewards = self._rewards(rollouts)
        advantages, spread = group_advantages(rewards, size, scale=self.scale_rewards != "none")
        mine = self.accelerator.process_index * len(rollouts)
        weighted = [
            _Weighted(row, advantage * _weight(rollout))
            for rollout, advantage in zip(rollouts, advantages[mine : mine + len(rollouts)].tolist(), strict=True)
            for row in rows(rollout.turns, merge=self._grouping.merge)
        ]
        self._rows = [*weighted, *[None] * (self._equal_count(len(weighted), mode) - len(weighted))]
        blank = {"prompt": [{"role": "user", "content": ""}], "known_reward": 0.0}
        scored = super()._generate_and_score_completions([dict(blank) for _ in self._rows])
        scored["advantages"] = torch.tensor(
            [row.advantage if row else 0.0 for row in self._rows], device=self.accelerator.device
        )
        self._say(mode, rollouts, rewards, spread, len(weighted), time.perf_counter() - began)
        return scored

    def _rewards(self, rollouts: Sequence[Collected]) -> torch.Tensor:
        """The rewards of all processes' rollouts; those that say nothing about the agent are NaN."""
        drops = self.collector.scorer.rewards.drop_environment_errors
        mine = [_reward(rollout, drops=drops) for rollout in rollouts]
        everyone = gather(torch.tensor(mine, device=self.accelerator.device, dtype=torch.float32))
        if self._grouping.shuffled:
            dealer = torch.Generator().manual_seed(self.args.seed + self.state.global_step)
            everyone = everyone[torch.randperm(len(everyone), generator=dealer).to(everyone.device)]
        return everyone

    def _group_size(self, mode: str) -> int:
        size = self.num_generations if mode == "train" else self.num_generations_eval
        assert size is not None
        return size

    def _equal_count(self, count: int, mode: str) -> int:
        """A number of rows that all processes can have, and that divides into the steps of a generation."""
        most = int(gather(torch.tensor([count], device=self.accelerator.device)).max())
        parts = self.args.steps_per_generation if mode == "train" else 1
        unit = math.lcm(parts or 1, self._group_size(mode))
        return max(1, -(-most // unit)) * unit

    def _replay(self, prompts: list[Any], trainer: GRPOTrainer) -> dict[str, Any]:
        """TRL's hook: the rows that were made, in place of a generation."""
        filler = [self.collector.codec.end]
        given = [weighted.row if weighted else None for weighted in self._rows]
        sampled = all(row is None or row.logprobs is not None for row in given)
        return {
            "prompt_ids": [row.prompt_ids if row else filler for row in given],
            "completion_ids": [row.completion_ids if row else filler for row in given],
            "env_mask": [row.mask if row else [0] for row in given],
            "logprobs": [(row.logprobs if row else None) or [0.0] for row in given] if sampled else None,
        }

    def _say(
        self,
        mode: str,
        rollouts: Sequence[Collected],
        rewards: torch.Tensor,
        spread: torch.Tensor,
        made: int,
        seconds: float,
    ) -> None:
        """Put the figures of trajectories in place of those that TRL has of rows."""
        figures = self._metrics[mode]
        figures["reward"][-1] = torch.nanmean(rewards).item()
        figures["reward_std"][-1] = torch.nanmean(spread).item()
        figures["frac_reward_zero_std"][-1] = (spread < 1e-6).float().mean().item()
        for name in [key for key in figures if key.startswith("rewards/")]:
            del figures[name]
        for name, value in shares(rollouts).items():
            figures[name].append(self._mean(value))
        figures["rollout/rows"].append(self._mean(made / len(rollouts)))
        figures["rollout/seconds"].append(self._mean(seconds))

    def _mean(self, value: float) -> float:
        return gather(torch.tensor([value], device=self.accelerator.device)).mean().item()

    # Loss

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> torch.Tensor:
        """The loss over all rows, a few at a time so that memory is bounded; the last part's gradient is the caller's.

        With DeepSpeed, whose engine counts backward passes itself, all rows are one part.
        """
        mask = inputs["completion_mask"] * inputs.get("tool_mask", 1)
        parts = list(self._parts(inputs))
        real = max(1, int((mask.sum(1) > 0).sum()))
        total = torch.zeros((), device=mask.device)
        for number, places in enumerate(parts):
            last = number + 1 == len(parts)
            with nullcontext() if last else self.accelerator.no_sync(model):
                loss = self._compute_loss(model, _cut(inputs, places))
                if self.loss_type in BY_ROWS:  # rows that only fill up are no rows
                    loss = loss * (len(places) / real)
                elif self.loss_type == "bnpo":
                    loss = loss * (mask[places].sum() / mask.sum().clamp(min=1))
                if not last and model.training:
                    self.accelerator.backward(loss)
                    loss = loss.detach()
            total = total + loss
        return total

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        """As TRL's. Raises UserError where the loss is no number: nothing good comes after that."""
        loss = super().training_step(model, inputs, num_items_in_batch)
        if not torch.isfinite(loss):
            raise UserError(
                f"The loss became {loss.item()} in step {self.state.global_step + 1}: lower the learning rate, "
                "or go on from an earlier checkpoint."
            )
        return loss

    def _parts(self, inputs: dict[str, Any]) -> Iterator[torch.Tensor]:
        """The places of the rows that are in memory together, rows of like length together."""
        lengths = inputs["prompt_mask"].sum(1) + inputs["completion_mask"].sum(1)
        order = torch.argsort(lengths)
        size = self._grouping.at_once or self.args.per_device_train_batch_size
        if self.accelerator.distributed_type == DistributedType.DEEPSPEED:
            size = len(order)
        yield from order.split(size)


@dataclass(frozen=True, slots=True)
class _Weighted:
    """A row and the advantage of the trajectory it belongs to."""

    row: Row
    advantage: float


def _known_reward(known_reward: list[float | None], **_: Any) -> list[float | None]:
    """TRL wants a reward function; rollouts have been scored by then."""
    return known_reward


def _task(row: dict[str, Any]) -> Task:
    return Task(row["environment"], row["task"])


def _reward(rollout: Collected, *, drops: bool) -> float:
    reward = rollout.trajectory.reward
    if reward is None or (reward.excluded and (drops or reward.outcome is None)):
        return math.nan
    return reward.total


def _weight(rollout: Collected) -> float:
    return rollout.trajectory.reward.weight if rollout.trajectory.reward else 0.0


def group_advantages(rewards: torch.Tensor, size: int, *, scale: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Advantages relative to groups of `size` neighbours, and each group's standard deviation.

    NaN rewards are left out of their group's mean and spread, and their advantage is 0.
    """
    groups = rewards.view(-1, size)
    centred = groups - torch.nanmean(groups, dim=1, keepdim=True)
    known = (~centred.isnan()).sum(1, keepdim=True)
    spread = (torch.nan_to_num(centred).square().sum(1, keepdim=True) / (known - 1).clamp(min=1)).sqrt()
    if scale:
        centred = centred / (spread + EPSILON)
    return torch.nan_to_num(centred).flatten(), spread.flatten()


def shares(rollouts: Sequence[Collected]) -> dict[str, float]:
    """What came of rollouts, as shares of them and as means."""
    count = len(rollouts)
    records = [rollout.trajectory for rollout in rollouts]
    ends = Counter(record.end for record in records)
    outcomes = Counter(record.reward.outcome for record in records if record.reward)
    turns = [turn for rollout in rollouts for turn in rollout.turns]
    return {
        **{f"outcome/{outcome.value}": outcomes[outcome.value] / count for outcome in Outcome},
        **{f"end/{end.value}": ends[end] / count for end in End},
        "rollout/turns": len(turns) / count,
        "rollout/response_tokens": sum(len(turn.completion_ids) for turn in turns) / max(1, len(turns)),
        "rollout/context_tokens": sum(len(turn.prompt_ids) for turn in turns) / max(1, len(turns)),
    }


def _cut(inputs: dict[str, Any], places: torch.Tensor) -> dict[str, Any]:
    """The rows at these places, without the padding that only others need."""
    width = inputs["completion_ids"].size(1)
    part = {name: value[places] if torch.is_tensor(value) and value.ndim else value for name, value in inputs.items()}
    before, after = (int(part[name].sum(1).max()) for name in ("prompt_mask", "completion_mask"))
    for name, value in part.items():
        if not torch.is_tensor(value) or value.ndim < 2:
            continue
        if name.startswith("prompt_"):
            part[name] = value[:, value.size(1) - before :]
        elif value.size(1) == width:
            part[name] = value[:, :after]
    return part


def task_rows(tasks: Sequence[Task]) -> Any:
    """Tasks as the dataset that the trainer draws from."""
    from datasets import Dataset

    return Dataset.from_list(
        [
            {"prompt": [{"role": "user", "content": ""}], "environment": task.environment, "task": task.number}
            for task in tasks
        ]
    )


__all__ = ["GRPOConfig", "Grouping", "WindowTrainer", "group_advantages", "shares", "task_rows"]
