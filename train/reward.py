"""What a rollout is worth: a step layer for the form of its turns, an outcome layer for what it achieved.

As in AWM (arXiv 2602.10090, section 4). A slip ends a rollout with -1, an error of the environment with 0, and such a
rollout says nothing about the agent. Any other is judged by its outcome, which every step gets. Where AWM leaves
something open, the constants' documentation says what is done here.

Scoring is separate from running: any record can be scored again, with other constants, verifiers or judges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

if TYPE_CHECKING:
    pass


CALLED = frozenset({"trusted", "loose", "strict", "broken", "unproven"})
"""What an audit calls verifiers."""


class Outcome(StrEnum):
    """What a rollout achieved, in AWM's four classes."""

    complete = "complete"
    partial = "partial"
    agent_error = "agent_error"
    environment_error = "environment_error"


class Rewards(BaseModel):
    """The constants of the reward. The defaults are AWM's, except where it says otherwise."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format_error: float = -1.0
    """Of a rollout that a slip ended (arXiv 2602.10090, section 4)."""
    complete: float = 1.0
    """Of a completed task (ibid., equation of the task-level reward)."""
    partial: float = 0.1
    """Of a task that was done in part (ibid.)."""
    agent_error: float = 0.0
    """Of a task that the agent failed (ibid.)."""
    environment_error: float = 0.0
    """Of a rollout that the environment failed (ibid.)."""
    by: Literal["code", "judge", "llm"] = "code"
    """Who judges: the task's code verifier; an LLM with the verifier's evidence, as in the paper; an LLM alone."""
    no_op_pays: bool = False
    """Whether an untouched database can be "done in part". OpenEnv's agent_world_model_env pays 0.1 for everything that
    is not complete, doing nothing included; here that is an agent error."""
    drop_environment_errors: bool = True
    """Whether rollouts that the environment failed are left out of their group's mean and spread."""
    weights: dict[str, float] = Field(default_factory=lambda: {"broken": 0.0})
    """How much rollouts judged by a verifier count, by what the audit calls it (trusted, loose, strict, broken,
    unproven); 0 leaves them out, one that is not named counts fully."""

    @field_validator("weights")
    @classmethod
    def _known(cls, weights: dict[str, float]) -> dict[str, float]:
        if unknown := sorted(weights.keys() - CALLED):
            raise ValueError(f"an audit calls no verifier {unknown[0]!r}: there are {', '.join(sorted(CALLED))}")
        return weights


@dataclass(frozen=True, slots=True)
class Reward:
    """What a rollout is worth, and why.

    `total` is `step` (the penalty of the slip that ended it, or 0) plus the outcome's reward. `outcome` is None where
    there is none to judge. `excluded` says that it tells nothing about the agent: the environment, the model's server
    or the verifier failed. `weight` is how much it counts among others. `reasons` are sentences; `verifier` names the
    code that judged (`mode`, `sha`, `verdict`), `judge` holds what an LLM said.
    """

    total: float
    step: float = 0.0
    outcome: str | None = None
    excluded: bool = False
    weight: float = 1.0
    reasons: tuple[str, ...] = ()
    verifier: Mapping[str, Any] = field(default_factory=dict)
    judge: Mapping[str, Any] = field(default_factory=dict)

    def per_turn(self, turns: int) -> list[float]:
        """The reward of each turn: the outcome's is given to all of them, the slip's to the last one too."""
        shared = self.total - self.step
        return [shared + (self.step if number == turns - 1 else 0.0) for number in range(turns)]

    def to_json(self) -> dict[str, Any]:
        """The reward as a JSON object."""
        return asdict(self)
