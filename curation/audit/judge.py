"""A model as the judge of evidence: what AWM's sql mode is for, so that its verifiers can be audited too.

A verifier in sql mode gives evidence and no verdict. Where the evidence does not say itself whether it holds, a model
is shown the task, the answer, the evidence and the rows that differ, as a judge of rollouts would be; what it says
counts as the verifier's verdict. One state of each kind is judged, since every judgement is a request.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from curation.audit.subject import differences
from curation.audit.trials import Outcome
from pipeline.llm.client import Client
from pipeline.llm.faults import ANSWERED, ModelFault
from pipeline.llm.profiles import Profile
from pipeline.llm.replies import Replies
from pipeline.llm.request import Message, Request
from pipeline.llm.text import Unreadable, read_json

LONGEST_EVIDENCE = 12_000
"""Characters of the evidence, and of the changes, that the model is shown."""

SHAPE = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "verdict": {"type": "string", "enum": ["complete", "others"]}},
    "required": ["reason", "verdict"],
    "additionalProperties": False,
}

VERDICTS = {"complete": True, "others": False}

INSTRUCTION = """\
You judge whether a task was completed in a database application. "evidence" is what a program saw in the database \
before and after; "changes" are the rows that were added, removed and changed; "answer" is what was said at the end. \
The evidence may overlook something. Give the reason in one sentence, then the verdict: "complete" where everything \
that the task asks for was done, and the answer is right if it asks for one; otherwise "others"."""


class Judge(Protocol):
    """Who judges evidence; `name` tells one judge from another, `fault` is why it cannot be asked (any more)."""

    name: str
    fault: str | None

    def complete(self, task: str, outcome: Outcome) -> bool | None:
        """Whether the task was completed, going by the evidence; None where there is no judgement."""


def judged(outcomes: Sequence[Outcome], task: str, judge: Judge | None) -> list[Outcome]:
    """The outcomes, those with evidence that does not say whether it holds judged: the first of each kind."""
    found: list[Outcome] = []
    asked: set[str] = set()
    for outcome in outcomes:
        open_to_judge = outcome.verdict.verdict == "evidence" and outcome.accepted is None
        if judge is None or not open_to_judge or outcome.trial.kind in asked:
            found.append(outcome)
            continue
        asked.add(outcome.trial.kind)
        found.append(replace(outcome, judged=judge.complete(task, outcome)))
    return found


class ModelJudge:
    """Asks a model, from any thread. A context manager; replies are kept, so that asking again costs nothing.

    `fault` is why the model could not be asked, if that happened; it is not asked again then.
    """

    def __init__(self, replies: Path, profile: Profile) -> None:
        self.name = profile.model
        self.fault: str | None = None
        self._profile = profile
        self._replies = Replies(replies)
        self._client = Client(self._replies)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="judge", daemon=True)

    def __enter__(self) -> ModelJudge:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._client.close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._replies.close()

    def complete(self, task: str, outcome: Outcome) -> bool | None:
        """See `Judge`."""
        if self.fault is not None:
            return None
        text = json.dumps(_shown(task, outcome), ensure_ascii=False, indent=1, default=str)
        request = Request((Message("system", INSTRUCTION), Message("user", text)), schema=SHAPE)
        asking = asyncio.run_coroutine_threadsafe(self._client.ask(request, self._profile), self._loop)
        try:
            return VERDICTS[read_json(asking.result().text).value["verdict"]]
        except ModelFault as fault:
            if fault.kind not in ANSWERED:
                self.fault = str(fault)
        except (Unreadable, KeyError, TypeError):
            pass  # it said something else: there is no judgement
        return None


def _shown(task: str, outcome: Outcome) -> dict[str, Any]:
    """What the model is told of one state."""
    case = outcome.trial.case
    evidence = json.dumps(outcome.verdict.evidence, ensure_ascii=False, default=str)
    changes = json.dumps(differences(case.initial, case.final), ensure_ascii=False, default=str)
    return {
        "task": task,
        "answer": case.answer,
        "evidence": evidence[:LONGEST_EVIDENCE],
        "changes": changes[:LONGEST_EVIDENCE],
    }
