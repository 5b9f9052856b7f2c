"""Checks of verifiers: is there one for every task, does it run, does it accept the untouched database?"""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.findings import Finding
from pipeline.model import Environment, Mode, Verifier
from pipeline.runtime.host import Case, Host
from pipeline.words import number_of

SAYING_NOTHING = (None, "", "Done.")
"""Answers that answer no question: a verifier that takes one of them for an answer takes any."""


def verifier_findings(environment: Environment, host: Host, snapshot: bytes) -> Iterator[Finding]:
    """Run every verifier with the untouched database as initial and final state and no answer.

    A verifier that calls this complete rewards doing nothing; one that cannot judge it cannot judge at all.
    """
    verified = {verifier.task for verifier in environment.verifiers}
    without = tuple(task for task in range(len(environment.tasks)) if task not in verified)
    if without and verified:
        yield Finding(
            "verifier_missing",
            "warn",
            "verifier",
            f"{number_of(len(without), 'task')} of {len(environment.tasks)} without a verifier",
            remedy="write one, or leave these tasks out of a training set",
            tasks=without,
        )
    for verifier in environment.verifiers:
        yield from on_untouched(verifier, host, snapshot, environment)


def on_untouched(verifier: Verifier, host: Host, snapshot: bytes, environment: Environment) -> Iterator[Finding]:
    """What one verifier says of a database nobody has touched, with no answer and with answers that say nothing."""
    where = f"verifier: task {verifier.task}, {verifier.mode} mode"
    answers = SAYING_NOTHING if verifier.mode is Mode.code else (None,)
    cases = [Case(snapshot, snapshot, answer, environment.now) for answer in answers]
    for answer, verdict in zip(answers, host.verdicts(verifier, cases), strict=True):
        if verdict.verdict == "judge_error":
            yield Finding(
                "verifier_fails",
                "error",
                where,
                "the verifier cannot judge the untouched database",
                evidence=verdict.error or "",
                remedy="correct the verifier so that it judges any database of this schema",
                tasks=(verifier.task,),
            )
            return
        if verdict.verdict == "complete":
            answered = "nothing was answered" if not answer else f"the answer is {answer!r}"
            yield Finding(
                "accepts_untouched",
                "error",
                where,
                f"the verifier calls the task complete although nothing was done and {answered}",
                evidence=f"task: {environment.tasks[verifier.task] if verifier.task < len(environment.tasks) else '?'}",
                remedy="make it compare the final state with the initial one, or check the answer",
                tasks=(verifier.task,),
            )
            return
