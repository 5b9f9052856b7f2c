"""What recorded runs of agents say about environments: the facts by which practitioners drop tasks.

The makers of AWM-1K dropped 56 of 300 tasks by hand for repeated server errors, errors of schemas or empty replies.
Here that is done by rule: a run in which the environment got in the agent's way is a *troubled* one, and several runs
of a task decide. What the agent itself did wrong (arguments that are refused) never counts against the environment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from curation.estimates import rate
from curation.recorded_runs import HalfWritten, RecordedRun, by_task, read_runs
from pipeline.findings import Finding
from pipeline.words import number_of

REPEATED = 2
"""Server errors in one run from which on they are a trouble: one may be met and left behind."""
ERROR_RATE = 0.2
"""Share of a run's calls (the agent's own mistakes left out) that may fail by the environment's fault."""
ENOUGH_CALLS = 5
"""Calls from which on a run's share of errors, or the emptiness of all its replies, says something."""
RUNS_TO_REJECT = 2
"""Runs it takes to reject a task: one troubled run alone is for a person to look at."""

Decision = Literal["keep", "review", "reject"]

RULES: dict[Decision, str] = {
    "reject": f"at least {RUNS_TO_REJECT} of its runs are troubled, and more than half of them",
    "review": "some of its runs are troubled, or none made a call",
    "keep": "no run is troubled",
}
"""What is done with a task, the first that applies."""

TROUBLES = {
    "run_server_errors": f"{REPEATED} or more server errors in one run",
    "run_error_rate": f"more than {ERROR_RATE:.0%} of a run's calls failed by the environment's fault",
    "run_ends_in_error": "the last call of a run failed by the environment's fault",
    "run_only_empty": "every reply in a run was empty",
    "run_timeouts": "a call had no answer in time",
}
"""What makes a run a troubled one, by the code of the finding."""


@dataclass(frozen=True, slots=True)
class TaskRuns:
    """What the runs of one task came to.

    `calls` are all calls, `refused` those in which the agent's arguments were at fault; `rate` is the share of the
    others that failed by the environment's fault (None where there are none), `interval` Wilson's at 95 %.
    """

    name: str
    task: int
    runs: int
    troubled: int
    calls: int
    refused: int
    server_errors: int
    timeouts: int
    empty: int
    rate: float | None
    interval: tuple[float, float] | None
    troubles: dict[str, int]
    decision: Decision
    why: str


@dataclass
class RecordedFacts:
    """What a folder of runs says: tasks with decisions, findings by environment, and files that cannot be read."""

    tasks: list[TaskRuns] = field(default_factory=list)
    findings: dict[str, list[Finding]] = field(default_factory=dict)
    half_written: list[Finding] = field(default_factory=list)
    elsewhere: Counter[str] = field(default_factory=Counter)

    def document(self) -> dict[str, Any]:
        """The JSON form, as `awm-studio check --json` prints it under `trajectories`."""
        decisions = Counter(task.decision for task in self.tasks)
        return {
            "tasks": [asdict(task) for task in self.tasks],
            "decisions": {decision: decisions[decision] for decision in ("keep", "review", "reject")},
            "rules": {**RULES, **TROUBLES},
            "half_written": [asdict(finding) for finding in self.half_written],
            "of_other_environments": dict(self.elsewhere),
        }


def recorded_facts(folder: Path, tasks: Mapping[str, int]) -> RecordedFacts:
    """Read the runs in a folder and judge by them the tasks of these environments, which have so many.

    Raises UserError where there is no such folder, or nothing is recorded in it. What is half-written is a finding.
    """
    facts, runs = RecordedFacts(), []
    for read in read_runs(folder):
        if isinstance(read, HalfWritten):
            facts.half_written.append(_half_written(read))
        elif read.name not in tasks:
            facts.elsewhere[read.name] += 1
        elif read.task < 0 or 0 < tasks[read.name] <= read.task:  # one without tasks can have been tried all the same
            known = f"{read.name}, which has {number_of(tasks[read.name], 'task')}, counted from 0"
            facts.half_written.append(_half_written(HalfWritten(read.path, f"it is about task {read.task} of {known}")))
        else:
            runs.append(read)
    for (name, task), of_task in sorted(by_task(runs).items()):
        found = judge(name, task, of_task)
        facts.tasks.append(found)
        facts.findings.setdefault(name, []).extend(_findings(found, of_task))
    return facts


def troubles_of(run: RecordedRun) -> Iterator[str]:
    """How the environment got in the agent's way in one run."""
    ended = Counter(call.ended for call in run.calls)
    counted = len(run.calls) - ended["refused"]
    failed = ended["server_error"] + ended["timeout"]
    if ended["server_error"] >= REPEATED:
        yield "run_server_errors"
    if counted >= ENOUGH_CALLS and failed > ERROR_RATE * counted:
        yield "run_error_rate"
    if run.calls and run.calls[-1].ended in ("server_error", "timeout"):
        yield "run_ends_in_error"
    if counted >= ENOUGH_CALLS and ended["empty"] == counted:
        yield "run_only_empty"
    if ended["timeout"]:
        yield "run_timeouts"


def judge(name: str, task: int, runs: Sequence[RecordedRun]) -> TaskRuns:
    """What the runs of one task say of it, by the stated rules."""
    ended = Counter(call.ended for run in runs for call in run.calls)
    calls, failed = ended.total(), ended["server_error"] + ended["timeout"]
    troubles = Counter(trouble for run in runs for trouble in troubles_of(run))
    troubled = sum(any(troubles_of(run)) for run in runs)
    share = rate(failed, calls - ended["refused"])
    decision: Decision = "keep"
    if troubled >= RUNS_TO_REJECT and 2 * troubled > len(runs):
        decision = "reject"
    elif troubled or not calls:
        decision = "review"
    why = f"{troubled} of {number_of(len(runs), 'run')} troubled" if calls else "no run made a call"
    return TaskRuns(
        name,
        task,
        len(runs),
        troubled,
        calls,
        ended["refused"],
        ended["server_error"],
        ended["timeout"],
        ended["empty"],
        None if share is None else round(share.estimate, 4),
        None if share is None else (round(share.low, 4), round(share.high, 4)),
        dict(troubles),
        decision,
        why,
    )


def _findings(found: TaskRuns, runs: Sequence[RecordedRun]) -> Iterator[Finding]:
    for trouble, count in found.troubles.items():
        yield Finding(
            trouble,
            "error" if found.decision == "reject" else "warn",
            f"runs: task {found.task}",
            f"{TROUBLES[trouble]}: {count} of {number_of(found.runs, 'run')} of task {found.task} ({found.decision})",
            evidence=_example(trouble, runs),
            remedy="correct the tools that are named, or leave the task out of a training set",
            tasks=(found.task,),
        )


def _example(trouble: str, runs: Sequence[RecordedRun]) -> str:
    """The first run with a trouble, and the tools in it that are to blame."""
    run = next(run for run in runs if trouble in troubles_of(run))
    to_blame = {"run_only_empty": ("empty",), "run_timeouts": ("timeout",)}.get(trouble, ("server_error", "timeout"))
    blamed = Counter(call.call.tool for call in run.calls if call.ended in to_blame)
    said = next(call.shown for call in run.calls if call.ended in to_blame)
    tools = ", ".join(f"{tool} ({count})" for tool, count in blamed.most_common(3))
    return f"{run.path}: {tools}; {said[:200]}"


def _half_written(record: HalfWritten) -> Finding:
    return Finding(
        "trajectory_unreadable", "warn", str(record.path), record.why, remedy="record the run again, or remove its file"
    )
