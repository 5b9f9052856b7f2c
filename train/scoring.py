"""Scoring a record: which layer speaks, which verifier or judge is asked, and what that comes to in reward."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from pipeline.errors import UserError
from pipeline.model import Environment, Mode, Verifier, content_hash
from pipeline.runtime.host import Host
from train.replay import digest, replays
from train.reward import Outcome, Reward, Rewards
from train.trajectory import End, Trajectory
from train.worlds import Worlds

if TYPE_CHECKING:
    from pipeline.runtime.verify import Verdict
    from pipeline.workspace import Workspace
    from train.files import Recorded

Audit = Mapping[tuple[str, int, str], str]
"""What an audit calls verifiers ("trusted", "loose", …), by environment, task and mode."""


REMEMBERED = 4096
"""Verdicts that are remembered."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an LLM says of a rollout, and under which keys its replies are kept."""

    outcome: Outcome | None
    reason: str
    keys: tuple[str, ...] = ()


class Judge(Protocol):
    """An LLM that judges (`judge.ModelJudge`)."""

    async def judge(self, trajectory: Trajectory, evidence: Mapping[str, Any] | None) -> Judgement:
        """The outcome of a rollout; `evidence` is what a verifier saw and what changed, None to judge without."""


@dataclass(frozen=True)
class Scorer:
    """Scores records. `judge` is needed unless `rewards` goes by code. Verdicts are remembered: most rollouts of a task
    end in the same few states."""

    host: Host
    rewards: Rewards
    audit: Audit = field(default_factory=dict)
    judge: Judge | None = None
    _verdicts: dict[tuple[str | None, ...], Verdict] = field(default_factory=dict, init=False, repr=False)

    async def score(self, trajectory: Trajectory, environment: Environment, initial: bytes, final: bytes) -> Reward:
        """What a record is worth. The environment is whose verifiers judge: today's, or those of another version."""
        ended = self._by_step(trajectory)
        if ended is not None:
            return ended
        if self.rewards.by == "llm":
            return await self._by_judge(trajectory, None, {}, 1.0)
        verifier = self._verifier(environment, trajectory.task)
        if verifier is None:
            kind = "code-mode " if self.rewards.by == "code" else ""
            return Reward(0.0, excluded=True, reasons=(f"The task has no {kind}verifier.",))
        called = self.audit.get((environment.name, trajectory.task, verifier.mode.value))
        weight = self.rewards.weights.get(called or "", 1.0)
        if not weight:
            return Reward(0.0, excluded=True, weight=0.0, reasons=(f"The audit calls the task's verifier {called}.",))
        verdict = await self._verdict(verifier, trajectory, environment, initial, final)
        return await self._by_verdict(verdict, verifier, trajectory, weight)

    async def _by_verdict(self, verdict: Verdict, verifier: Verifier, trajectory: Trajectory, weight: float) -> Reward:
        about = {"mode": verifier.mode.value, "sha": content_hash(verifier.code), "verdict": verdict.verdict}
        if verdict.verdict == "judge_error":
            why = f"The verifier failed: {verdict.error}"
            return Reward(0.0, excluded=True, weight=weight, reasons=(why,), verifier=about)
        if self.rewards.by == "judge":
            return await self._by_judge(trajectory, evidence_of(verdict, trajectory), about, weight)
        return self._by_code(verdict, trajectory, about, weight)

    def _by_step(self, trajectory: Trajectory) -> Reward | None:
        """The reward of a rollout whose end needs no judging."""
        match trajectory.end:
            case End.format_error:
                penalty = self.rewards.format_error
                return Reward(penalty, step=penalty, reasons=(f"Format error: {trajectory.detail}.",))
            case End.environment_error:
                return Reward(
                    self.rewards.environment_error,
                    outcome=Outcome.environment_error.value,
                    excluded=True,
                    reasons=(f"The environment failed at {trajectory.detail}",),
                )
            case End.model_error:
                return Reward(0.0, excluded=True, reasons=(f"The model's server failed: {trajectory.detail}",))
        return None

    def _verifier(self, environment: Environment, task: int) -> Verifier | None:
        if self.rewards.by == "code":
            return environment.verifier(task, Mode.code)
        return environment.verifier(task, Mode.sql) or environment.verifier(task, Mode.code)

    async def _verdict(
        self, verifier: Verifier, trajectory: Trajectory, environment: Environment, initial: bytes, final: bytes
    ) -> Verdict:
        now = environment.now
        case = (content_hash(verifier.code), digest(initial), digest(final), trajectory.answer, now.isoformat())
        if case not in self._verdicts:
            verdict = await asyncio.to_thread(self.host.verify, verifier, initial, final, trajectory.answer, now=now)
            if len(self._verdicts) >= REMEMBERED:
                self._verdicts.clear()
            self._verdicts[case] = verdict
        return self._verdicts[case]

    def _by_code(self, verdict: Verdict, trajectory: Trajectory, about: Mapping[str, Any], weight: float) -> Reward:
        if verdict.verdict == "complete":
            outcome, why = Outcome.complete, "The verifier says complete."
        elif trajectory.diff or self.rewards.no_op_pays:
            outcome, why = Outcome.partial, "The verifier does not say complete; something was changed."
        else:
            outcome, why = Outcome.agent_error, "The verifier does not say complete, and nothing was changed."
        return Reward(self._worth(outcome), outcome=outcome.value, weight=weight, reasons=(why,), verifier=about)

    async def _by_judge(
        self, trajectory: Trajectory, evidence: Mapping[str, Any] | None, about: Mapping[str, Any], weight: float
    ) -> Reward:
        assert self.judge is not None, "rewards by a judge need one"
        said = await self.judge.judge(trajectory, evidence)
        kept = {"by": self.rewards.by, "keys": said.keys}
        if said.outcome is None:
            return Reward(0.0, excluded=True, weight=weight, reasons=(said.reason,), verifier=about, judge=kept)
        reasons, outcome = (said.reason,), said.outcome
        if outcome is Outcome.partial and not trajectory.diff and not self.rewards.no_op_pays:
            outcome, reasons = Outcome.agent_error, (*reasons, "Nothing was changed, so nothing was done in part.")
        return Reward(
            self._worth(outcome),
            outcome=outcome.value,
            excluded=outcome is Outcome.environment_error,
            weight=weight,
            reasons=reasons,
            verifier=about,
            judge=kept,
        )

    def _worth(self, outcome: Outcome) -> float:
        return {
            Outcome.complete: self.rewards.complete,
            Outcome.partial: self.rewards.partial,
            Outcome.agent_error: self.rewards.agent_error,
            Outcome.environment_error: self.rewards.environment_error,
        }[outcome]


def evidence_of(verdict: Verdict, trajectory: Trajectory) -> dict[str, Any]:
    """What a judge is given beside the record: what the verifier saw (or said), and what changed."""
    seen = verdict.evidence if verdict.verdict == "evidence" else {"verdict": verdict.verdict}
    return {"verifier": seen, "changes": trajectory.diff}


def scored_again(
    workspace: Workspace, found: Iterable[Recorded], rewards: Rewards
) -> Iterator[tuple[Trajectory, Trajectory]]:
    """Recorded rollouts with what they are worth by the verifiers there are now, each beside what it was.

    Where databases were not kept, the calls are done again. Raises UserError for an environment that is not in the
    workspace, and where that comes to something else than the record says.
    """
    worlds = Worlds(workspace.catalog)
    with Host.from_settings(workspace.settings) as host:
        scorer = Scorer(host, rewards)
        for before, databases in _with_databases(workspace, found):
            environment = worlds.environment(before.environment)
            yield replace(before, reward=asyncio.run(scorer.score(before, environment, *databases))), before


def _with_databases(
    workspace: Workspace, found: Iterable[Recorded]
) -> Iterator[tuple[Trajectory, tuple[bytes, bytes]]]:
    """Rollouts with their initial and final databases, empty where they ended without any."""
    gone: list[Trajectory] = []
    for each in found:
        if not each.trajectory.final:
            yield each.trajectory, (b"", b"")
        elif each.is_kept:
            yield each.trajectory, each.read_databases()
        else:
            gone.append(each.trajectory)
    for trajectory, again in replays(workspace, gone):
        if isinstance(again, str) or not again.same:
            why = again if isinstance(again, str) else "doing its calls again comes to something else."
            raise UserError(f"The databases of {trajectory.key} were not kept: {why}")
        yield trajectory, (again.initial, again.final)
