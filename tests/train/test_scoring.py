"""What rollouts are worth, and why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.llm.client import Client
from pipeline.llm.profiles import Profile
from pipeline.llm.replies import Replies
from pipeline.model import Environment, Mode, Verifier
from pipeline.runtime.diff import diff
from pipeline.runtime.host import Host, HostedProgram
from tests.llm_server import Say, Server, Status
from tests.train.pantry import VERIFY_AMOUNT, pantry
from train.judge import ModelJudge
from train.replay import digest
from train.reward import Outcome, Reward, Rewards
from train.rules import Rules
from train.scoring import Judgement, Scorer
from train.trajectory import End, Trajectory, Turn


def record(
    program: HostedProgram, *calls: tuple[str, dict[str, Any]], task: int = 0, **fields: Any
) -> tuple[Trajectory, bytes, bytes]:
    """A rollout that made these calls, with its databases."""
    with program.instance() as instance:
        for tool, arguments in calls:
            instance.call(tool, arguments)
        initial, final = program.template, instance.snapshot()
    turns = tuple(Turn(content=tool, move="call", tool=tool, arguments=given, status=200) for tool, given in calls)
    base = Trajectory(
        "pantry", task, 0, pantry().tasks[task], "test", Rules(), {}, "", (), turns, End.answered,
        answer="Done.", initial=digest(initial), final=digest(final), diff=diff(initial, final),
    )  # fmt: skip
    return replace(base, **fields), initial, final


RIGHT = ("set_amount", {"item_id": 1, "amount": 5})
WRONG = ("set_amount", {"item_id": 2, "amount": 5})
LOOK = ("list_items", {})


async def score(
    host: Host, rollout: tuple[Trajectory, bytes, bytes], environment: Environment | None = None, **rewards: Any
) -> Reward:
    return await Scorer(host, Rewards(**rewards)).score(rollout[0], environment or pantry(), *rollout[1:])


async def test_a_completed_task_is_worth_one(host: Host, program: HostedProgram) -> None:
    reward = await score(host, record(program, LOOK, RIGHT))
    assert (reward.total, reward.step, reward.outcome, reward.excluded) == (1.0, 0.0, "complete", False)
    assert (reward.verifier["mode"], reward.verifier["verdict"]) == ("code", "complete")


async def test_something_wrong_is_worth_a_tenth_and_nothing_is_worth_nothing(
    host: Host, program: HostedProgram
) -> None:
    assert (await score(host, record(program, WRONG))).total == 0.1
    idle = record(program, LOOK)
    assert (await score(host, idle)).outcome == "agent_error"
    assert (await score(host, idle, no_op_pays=True)).total == 0.1


async def test_an_answer_is_judged_with_the_database(host: Host, program: HostedProgram) -> None:
    assert (await score(host, record(program, LOOK, task=1, answer="2"))).outcome == "complete"
    assert (await score(host, record(program, LOOK, task=1, answer="3"))).outcome == "agent_error"


async def test_a_slip_costs_one_and_is_not_judged(host: Host, program: HostedProgram) -> None:
    rollout = record(program, RIGHT, end=End.format_error, detail="listed_again")
    reward = await score(host, rollout)
    assert (reward.total, reward.step, reward.outcome, reward.excluded) == (-1.0, -1.0, None, False)
    assert "listed_again" in reward.reasons[0]


@pytest.mark.parametrize("end", [End.environment_error, End.model_error])
async def test_what_others_broke_says_nothing_of_the_agent(host: Host, program: HostedProgram, end: End) -> None:
    reward = await score(host, record(program, RIGHT, end=end, detail="it broke"))
    assert (reward.total, reward.excluded) == (0.0, True)


@pytest.mark.parametrize("end", [End.turn_limit, End.time_limit, End.context_limit])
async def test_rollouts_that_met_a_limit_are_judged_by_what_they_did(
    host: Host, program: HostedProgram, end: End
) -> None:
    assert (await score(host, record(program, RIGHT, end=end, answer=None))).outcome == "complete"


async def test_a_verifier_that_fails_is_no_judgement(host: Host, program: HostedProgram) -> None:
    reward = await score(host, record(program, RIGHT, task=2))
    assert reward.excluded
    assert "The verifier failed" in reward.reasons[0]


async def test_a_task_without_a_verifier_is_left_out(host: Host, program: HostedProgram) -> None:
    reward = await score(host, record(program, RIGHT), replace(pantry(), verifiers=()))
    assert reward.excluded


async def test_constants_can_be_chosen(host: Host, program: HostedProgram) -> None:
    assert (await score(host, record(program, WRONG), partial=0.25)).total == 0.25
    slip = record(program, RIGHT, end=End.format_error)
    assert (await score(host, slip, format_error=-0.5)).total == -0.5


async def test_what_the_audit_says_of_a_verifier_weighs(host: Host, program: HostedProgram) -> None:
    trajectory, *databases = record(program, RIGHT)
    audit = {("pantry", 0, "code"): "loose"}
    halved = await Scorer(host, Rewards(weights={"loose": 0.5}), audit).score(trajectory, pantry(), *databases)
    assert (halved.total, halved.weight) == (1.0, 0.5)
    left_out = await Scorer(host, Rewards(), {("pantry", 0, "code"): "broken"}).score(trajectory, pantry(), *databases)
    assert (left_out.excluded, left_out.weight) == (True, 0.0)


def test_only_what_an_audit_says_can_be_weighed() -> None:
    with pytest.raises(ValidationError, match="'lose'"):
        Rewards(weights={"lose": 0.5})


async def test_scoring_again_with_another_verifier_gives_another_reward(host: Host, program: HostedProgram) -> None:
    rollout = record(program, WRONG)
    assert (await score(host, rollout)).outcome == "partial"
    lenient = Verifier(0, Mode.code, VERIFY_AMOUNT.replace('rows == [("rice", 5), ("beans", 2)]', "rows"))
    reward = await score(host, rollout, replace(pantry(), verifiers=(lenient,)))
    assert reward.outcome == "complete"


def test_every_step_gets_the_outcome_and_the_last_one_the_slip() -> None:
    assert Reward(1.0, outcome="complete").per_turn(3) == [1.0, 1.0, 1.0]
    assert Reward(-1.0, step=-1.0).per_turn(3) == [0.0, 0.0, -1.0]


class Says:
    """A judge with a fixed opinion, which remembers what it was shown."""

    def __init__(self, outcome: Outcome | None) -> None:
        self.outcome = outcome
        self.evidence: Mapping[str, Any] | None = None

    async def judge(self, trajectory: Trajectory, evidence: Mapping[str, Any] | None) -> Judgement:
        self.evidence = evidence
        return Judgement(self.outcome, "As I see it.", ("key",))


async def judged(host: Host, rollout: tuple[Trajectory, bytes, bytes], says: Says, by: str) -> Reward:
    scorer = Scorer(host, Rewards.model_validate({"by": by}), judge=says)
    return await scorer.score(rollout[0], pantry(), *rollout[1:])


async def test_a_judge_sees_the_verifiers_evidence_and_what_changed(host: Host, program: HostedProgram) -> None:
    says = Says(Outcome.partial)
    reward = await judged(host, record(program, WRONG), says, "judge")
    assert says.evidence is not None
    assert says.evidence["verifier"] == {"rice": 1}
    assert says.evidence["changes"]["items"]["changed"][0]["after"] == {"amount": 5}
    assert (reward.total, reward.judge["keys"], reward.reasons) == (0.1, ("key",), ("As I see it.",))


async def test_a_judge_alone_sees_only_the_record(host: Host, program: HostedProgram) -> None:
    says = Says(Outcome.complete)
    assert (await judged(host, record(program, LOOK), says, "llm")).total == 1.0
    assert says.evidence is None


async def test_a_judge_cannot_pay_for_an_untouched_database(host: Host, program: HostedProgram) -> None:
    reward = await judged(host, record(program, LOOK), Says(Outcome.partial), "judge")
    assert reward.outcome == "agent_error"


@pytest.mark.parametrize("outcome", [None, Outcome.environment_error])
async def test_no_judgement_and_environment_errors_are_left_out(
    host: Host, program: HostedProgram, outcome: Outcome | None
) -> None:
    assert (await judged(host, record(program, WRONG), Says(outcome), "judge")).excluded


async def test_a_model_judges_and_is_asked_once(host: Host, program: HostedProgram, tmp_path: Path) -> None:
    trajectory, initial, final = record(program, WRONG)
    said = Say(json.dumps({"reason": "Beans are not rice.", "outcome": "partial"}))
    replies = Replies(tmp_path / "replies.db")
    with Server([said]) as server:
        client = Client(replies)
        judge = ModelJudge(client, Profile(model="m", base_url=server.url, api_key_env=""))
        scorer = Scorer(host, Rewards(by="judge"), judge=judge)
        first, second = [await scorer.score(trajectory, pantry(), initial, final) for _ in range(2)]
        await client.close()
        (request,) = server.requests
    assert first == second
    assert (first.total, first.reasons) == (0.1, ("Beans are not rice.",))
    assert "added, removed and changed" in request["messages"][0]["content"]
    assert '"rice": 1' in request["messages"][1]["content"]
    replies.close()


@pytest.mark.parametrize("answer", [Say("I cannot tell."), Say('{"outcome": "fine"}'), Status(400)])
async def test_a_model_that_gives_no_judgement_is_no_judge(
    host: Host, program: HostedProgram, tmp_path: Path, answer: Any
) -> None:
    trajectory, initial, final = record(program, WRONG)
    replies = Replies(tmp_path / "replies.db")
    with Server([answer]) as server:
        client = Client(replies)
        judge = ModelJudge(client, Profile(model="m", base_url=server.url, api_key_env=""))
        reward = await Scorer(host, Rewards(by="llm"), judge=judge).score(trajectory, pantry(), initial, final)
        await client.close()
    assert reward.excluded
    replies.close()
