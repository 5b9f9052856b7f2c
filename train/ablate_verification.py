"""Who should judge? Code alone, an LLM alone, and an LLM with the code's evidence, on the same rollouts."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

from curation.estimates import rate
from pipeline.llm.client import Client
from pipeline.llm.replies import FILE_NAME, Replies
from pipeline.llm.request import Usage
from pipeline.runtime.host import Host
from train.ablate import Answer, Table, with_interval
from train.judge import ModelJudge
from train.reward import Outcome, Reward, Rewards
from train.scoring import Scorer
from train.trajectory import End
from train.worlds import Worlds

if TYPE_CHECKING:
    from pipeline.llm.profiles import Profile
    from pipeline.workspace import Workspace
    from train.files import Recorded

METHODS = {"code": "code alone", "llm": "LLM alone", "judge": "LLM with the code's evidence"}
"""The ways to judge, as `rewards.by` names them (arXiv 2602.10090, section 5, compares these three)."""

UNJUDGED = frozenset({End.format_error, End.environment_error, End.model_error})
"""Ends that say by themselves what a rollout is worth."""

NO_JUDGEMENT = "There is no judgement"
"""How the reason of a judgement begins that a server's fault kept from being made."""


@dataclass(frozen=True, slots=True)
class _Judged:
    """One rollout by each method."""

    task: tuple[str, int]
    rewards: dict[str, Reward]


def ablate_verification(workspace: Workspace, rollouts: Sequence[Recorded], judge: Profile) -> Answer:
    """Judge recorded rollouts in the three ways. Replies are kept: doing it again asks only for what is missing.

    Raises UserError for environments that are not in the workspace, or databases that were not kept.
    """
    chosen = [each for each in rollouts if each.trajectory.end not in UNJUDGED]
    replies = Replies(workspace.path / FILE_NAME)
    try:
        judged = asyncio.run(_judge_all(workspace, chosen, judge, replies))
        costs = {method: _cost(judged, method, replies) for method in METHODS}
    finally:
        replies.close()
    failed = [reward for each in judged for reward in each.rewards.values() if _server_failed(reward)]
    return Answer(
        question="Who judges rollouts how: code alone, an LLM alone, or an LLM with what the code saw?",
        n={
            "rollouts": len(judged),
            "tasks": len({each.task for each in judged}),
            "left out": len(rollouts) - len(chosen),
        },
        tables=[_methods(judged, costs), _agreement(judged), _crossed(judged)],
        notes=[
            f"The judge is {judge.model}. Rollouts whose end needs no judging (format, environment and server errors) "
            "are left out and counted.",
            "Accepted is the share judged complete; Wilson's 95 % intervals treat rollouts as independent.",
            "A task is blocked where a method judges none of its rollouts: no verifier, or one that always fails.",
            "Neither side is the truth: agreement says how alike two judges are, not who is right.",
        ],
        state="stopped" if failed else "done",
        why=f"{len(failed)} judgements are missing: {failed[0].reasons[0]}" if failed else "",
        data={"rollouts": [{"task": each.task, **{m: r.outcome for m, r in each.rewards.items()}} for each in judged]},
    )


async def _judge_all(
    workspace: Workspace, rollouts: Sequence[Recorded], judge: Profile, replies: Replies
) -> list[_Judged]:
    worlds, client = Worlds(workspace.catalog), Client(replies)
    try:
        with Host.from_settings(workspace.settings) as host:
            asked = ModelJudge(client, judge)
            scorers = {method: Scorer(host, Rewards.model_validate({"by": method}), judge=asked) for method in METHODS}
            turn = asyncio.Semaphore(judge.concurrency)

            async def one(each: Recorded) -> _Judged:
                trajectory, databases = each.trajectory, each.read_databases()
                environment = worlds.environment(trajectory.environment)
                async with turn:
                    rewards = {
                        method: await scorer.score(trajectory, environment, *databases)
                        for method, scorer in scorers.items()
                    }
                return _Judged((trajectory.environment, trajectory.task), rewards)

            return list(await asyncio.gather(*map(one, rollouts)))
    finally:
        await client.close()


def _accepts(reward: Reward) -> bool | None:
    return None if reward.excluded else reward.outcome == Outcome.complete


def _server_failed(reward: Reward) -> bool:
    return reward.excluded and bool(reward.reasons) and reward.reasons[0].startswith(NO_JUDGEMENT)


def _methods(judged: Sequence[_Judged], costs: dict[str, Usage | None]) -> Table:
    rows = []
    for method, title in METHODS.items():
        verdicts = [accepts for each in judged if (accepts := _accepts(each.rewards[method])) is not None]
        cost = costs[method]
        each_s = round(cost.seconds / len(verdicts), 2) if cost and verdicts else None
        rows.append(
            [
                title,
                len(verdicts),
                with_interval(rate(sum(verdicts), len(verdicts))),
                len(_blocked(judged, method)),
                cost and cost.tokens_in,
                cost and cost.tokens_out,
                cost and cost.usd,
                each_s,
            ]
        )
    columns = [
        "method",
        "judged",
        "accepted, 95 % interval",
        "blocked tasks",
        "tokens in",
        "tokens out",
        "usd",
        "s each",
    ]
    return Table("Methods", columns, rows)


def _blocked(judged: Sequence[_Judged], method: str) -> set[tuple[str, int]]:
    found: dict[tuple[str, int], list[bool]] = defaultdict(list)
    for each in judged:
        if not _server_failed(each.rewards[method]):
            found[each.task].append(each.rewards[method].excluded)
    return {task for task, excluded in found.items() if all(excluded)}


def _agreement(judged: Sequence[_Judged]) -> Table:
    rows = []
    for one, other in combinations(METHODS, 2):
        pairs = [(_accepts(each.rewards[one]), _accepts(each.rewards[other])) for each in judged]
        both = [(bool(a), bool(b)) for a, b in pairs if a is not None and b is not None]
        alike = with_interval(rate(sum(a == b for a, b in both), len(both)))
        rows.append([f"{METHODS[one]} / {METHODS[other]}", len(both), alike, kappa(both)])
    return Table("Agreement", ["methods", "judged by both", "alike, 95 % interval", "Cohen's kappa"], rows)


def kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Agreement beyond chance (Cohen 1960, Educ. Psychol. Meas. 20:37); None where chance alone would agree always."""
    if not pairs:
        return None
    alike = sum(a == b for a, b in pairs) / len(pairs)
    first, second = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
    chance = first * second + (1 - first) * (1 - second)
    return None if chance == 1 else round((alike - chance) / (1 - chance), 3)


def _crossed(judged: Sequence[_Judged]) -> Table:
    """How often each combination of verdicts came up."""
    names = {True: "accepts", False: "rejects", None: "no verdict"}
    counts = Counter(tuple(names[_accepts(each.rewards[m])] for m in METHODS) for each in judged)
    return Table("Verdicts", [*METHODS.values(), "rollouts"], [[*names, n] for names, n in counts.most_common()])


def _cost(judged: Sequence[_Judged], method: str, replies: Replies) -> Usage | None:
    """What a method's judgements took of the model when they were made; None for code, which asks none."""
    keys = {key for each in judged for key in each.rewards[method].judge.get("keys", ())}
    kept = [reply.usage for key in sorted(keys) if (reply := replies.get(key)) is not None]
    total: Usage | Any = None
    for usage in kept:
        total = usage if total is None else total + usage
    return total
