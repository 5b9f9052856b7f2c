"""An LLM as a judge of rollouts: with a verifier's evidence and what changed, as in AWM, or on the record alone.

Its replies are kept like all replies, so that judging a record again costs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pipeline.llm.faults import ModelFault
from pipeline.llm.request import Message, Request
from pipeline.llm.text import Unreadable, read_json
from train.reward import Outcome
from train.scoring import Judgement

if TYPE_CHECKING:
    from pipeline.llm.client import Client
    from pipeline.llm.profiles import Profile
    from train.trajectory import Trajectory

LONGEST_RESULT = 4_000
"""Characters of a tool's result that a judge is shown; a listing of tools is not shown at all."""

SHAPE: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "outcome": {"type": "string", "enum": [outcome.value for outcome in Outcome]},
    },
    "required": ["reason", "outcome"],
    "additionalProperties": False,
}

INSTRUCTION = """\
You judge whether an agent completed a task in an environment that it works in through tools. Choose one outcome:

- complete: everything the task asks for was done, and if it asks for an answer, the answer is right
- partial: something the task asks for was done, and something is missing or wrong
- environment_error: the environment's own errors (for example status 500) kept the agent from completing the task
- agent_error: anything else: the agent did the wrong thing, stopped early, or only claimed to have done it

What the agent says about itself is no evidence. {basis}
Give the reason in one or two sentences, then the outcome."""

WITH_EVIDENCE = """\
"changes" are the database rows that were added, removed and changed: they are facts. "verifier" is what a program saw \
in the database or what it says; it may overlook something or be mistaken, so weigh it against the rest."""

WITHOUT_EVIDENCE = "Judge by the calls that were made and their results."


class ModelJudge:
    """Judges with a model, through the one client."""

    def __init__(self, client: Client, profile: Profile) -> None:
        self._client = client
        self._profile = profile

    async def judge(self, trajectory: Trajectory, evidence: Mapping[str, Any] | None) -> Judgement:
        """The outcome of a rollout, None where there is no readable judgement."""
        instruction = INSTRUCTION.format(basis=WITHOUT_EVIDENCE if evidence is None else WITH_EVIDENCE)
        document = record_for_judge(trajectory) | ({} if evidence is None else {"evidence": evidence})
        text = json.dumps(document, ensure_ascii=False, indent=1, default=str)
        request = Request((Message("system", instruction), Message("user", text)), schema=SHAPE)
        try:
            reply = await self._client.ask(request, self._profile)
            said = read_json(reply.text).value
            return Judgement(Outcome(said["outcome"]), str(said["reason"]), reply.keys)
        except ModelFault as fault:
            return Judgement(None, f"There is no judgement: {fault}")
        except (Unreadable, KeyError, TypeError, ValueError):
            return Judgement(None, f"{self._profile.model} gave no judgement that can be read.", reply.keys)


def record_for_judge(trajectory: Trajectory) -> dict[str, Any]:
    """What happened in a rollout, as short as a judge needs it."""
    steps = []
    for turn in trajectory.turns:
        if turn.move == "list":
            continue
        step: dict[str, Any] = {"said": turn.content}
        if turn.shown is not None:
            step["result"] = turn.shown[:LONGEST_RESULT]
        steps.append(step)
    return {"task": trajectory.text, "steps": steps, "end": trajectory.end, "answer": trajectory.answer}
