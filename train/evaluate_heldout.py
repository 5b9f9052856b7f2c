"""The held-out suite: rollouts on the concepts that a subset keeps for testing, and what came of them."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.subset import TEST, Subset
from pipeline.engine.lock import worker
from pipeline.errors import UserError
from pipeline.model import Environment, content_hash
from pipeline.parts import dumps
from pipeline.snapshots import replace_file
from train import evaluate, rollout_run
from train.evaluate_report import Item, State, report
from train.json_lines import drop_cut_line, json_line
from train.records import TRAJECTORIES, read_records
from train.reward import Outcome
from train.rollout import Plan
from train.rules import Rules
from train.sampling import is_openai, sampled
from train.trajectory import End, Trajectory
from train.worlds import Worlds, subset_named, tasks_of_subset

if TYPE_CHECKING:
    from pipeline.llm.profiles import Profile
    from pipeline.records import Run
    from pipeline.workspace import Workspace
    from train.rollout import Actor, Progress

SUITE = "heldout"

RULES = Rules(window=10, stop_on_slip=False)
"""How evaluation differs from training: ten exchanges are seen (arXiv 2602.10090, table 8), and an agent that slips is
told and goes on, as in upstream's agent; the slips are counted."""

SCRIPTED_AT_ONCE = 16
"""Scripted rollouts at once: enough to keep every processor's workers busy."""

EVENTS = 20
"""Events of an evaluation in the catalog, about: what a list of runs needs to show how far it is."""

LOST_IN_A_ROW = 8
"""Rollouts in a row that got no answer from the model's server, after which the rest is not tried: it is down, or
does not take what it is sent."""


def create(workspace: Workspace, plan: Plan, **about: Any) -> Run:
    """Record an evaluation of a plan whose tasks are a subset's test split. It is not started by this.

    `about` is shown with the run. Raises UserError where there is nothing to evaluate on.
    """
    if not plan.tasks:
        raise UserError(
            f"The subset {plan.subset!r} holds nothing out: make one whose held_out is above 0 "
            "(awm-studio subset NAME --all --held-out 0.2)."
        )
    config = {"subset": plan.subset, "model": plan.name, "tries": plan.tries, "tasks": len(plan.tasks), **about}
    run, folder = evaluate.create(workspace, SUITE, config)
    replace_file(folder / rollout_run.PLAN, plan.model_dump_json(indent=1).encode())
    return run


def held_out_tasks(workspace: Workspace, subset: str) -> list[tuple[str, int]]:
    """The test split of a subset, as a plan has tasks. Raises UserError where there is no such subset."""
    return [(task.environment, task.number) for task in tasks_of_subset(subset_named(workspace.catalog, subset), TEST)]


def plan_for(
    tasks: list[tuple[str, int]],
    *,
    subset: str,
    model: Profile | None,
    actor: Actor = "model",
    tries: int = 1,
    concurrency: int | None = None,
    most_tokens: int | None = None,
    sampling: Mapping[str, Any] = {},
    rules: Mapping[str, Any] = {},
) -> Plan:
    """The plan of an evaluation: a model, sampled as in the paper unless its profile or `sampling` says otherwise, or
    a script. `rules` change RULES. OpenAI's own servers take results as messages of the user, unless calls are native.
    """
    at_once = concurrency or (model.concurrency if model else SCRIPTED_AT_ONCE)
    own = False
    if model is not None:
        own = is_openai(model)
        model = sampled(model, sampling).model_copy(update={"concurrency": min(1024, at_once)})
    fields = {**RULES.model_dump(), "results_as": "user" if own else "tool", **rules}
    return Plan(
        actor=actor,
        model=model,
        tasks=tasks,
        subset=subset,
        tries=tries,
        rules=Rules.model_validate(fields),
        concurrency=at_once,
        most_tokens=most_tokens or Plan.model_fields["most_tokens"].default,
    )


def work(
    workspace: Workspace, run: Run, *, tell: Callable[[Trajectory, Progress], None] = lambda *_: None
) -> dict[str, Any]:
    """Do what is missing of an evaluation in this process; returns its report, which is kept.

    What got no answer before is tried again. Where the model's server fails, the report's state is "stopped" and says
    why. Raises UserError where another process works on it or the disk is full, KeyboardInterrupt when interrupted.
    """
    folder = workspace.runs / str(run.id)
    if (pid := worker(folder)) is not None:
        raise UserError(f"Process {pid} is working on evaluation {run.id} already.")
    _forget_unanswered(folder)
    with ExitStack() as stack:
        if checkpoint := run.config.get("checkpoint"):
            from train.checkpoint_server import serving_checkpoint

            try:
                url = stack.enter_context(serving_checkpoint(Path(checkpoint)))
            except UserError as error:
                return _kept(workspace, run, "stopped", str(error))
            plan = rollout_run.plan_of(workspace, run)
            assert plan.model is not None
            served = plan.model_copy(update={"model": plan.model.model_copy(update={"base_url": url})})
            replace_file(folder / rollout_run.PLAN, served.model_dump_json(indent=1).encode())
        return _work(workspace, run, folder, tell)


def _work(workspace: Workspace, run: Run, folder: Path, tell: Callable[[Trajectory, Progress], None]) -> dict[str, Any]:
    counted, lost = _Counted.of(folder), 0

    def told(trajectory: Trajectory, progress: Progress) -> None:
        nonlocal lost
        counted.add(trajectory)
        why = trajectory.detail if trajectory.end is End.model_error else ""
        evaluate.keep_progress(folder, done=progress.done, total=progress.total, why=why, **counted.figures())
        if progress.done % max(1, progress.total // EVENTS) == 0:
            workspace.catalog.add_event(run.id, "progress", {"done": progress.done, "total": progress.total})
        tell(trajectory, progress)
        lost = lost + 1 if why else 0
        if lost >= LOST_IN_A_ROW:
            raise UserError(f"{lost} rollouts in a row got no answer: {why}")

    state: State = "stopped"
    why = ""
    try:
        rollout_run.work(workspace, run, tell=told)
        state = "done"
    except UserError as error:
        why = str(error)
    except KeyboardInterrupt:
        _kept(workspace, run, state, "It was interrupted.")
        raise
    return _kept(workspace, run, state, why)


def _kept(workspace: Workspace, run: Run, state: State, why: str) -> dict[str, Any]:
    document = report_of(workspace, run, state, why)
    evaluate.keep(workspace, run, document)
    return document


def report_of(workspace: Workspace, run: Run, state: State, why: str = "") -> dict[str, Any]:
    """The report on the rollouts that an evaluation has so far."""
    folder = workspace.runs / str(run.id)
    plan = rollout_run.plan_of(workspace, run)
    records = list(read_records(folder)) if (folder / TRAJECTORIES).exists() else []
    unanswered = sum(record.end is End.model_error for record in records)
    if state == "done" and unanswered:
        state = "stopped"
        why = f"{unanswered} rollouts got no answer from the model's server: resume to try them again."
    assert plan.subset is not None
    subset = subset_named(workspace.catalog, plan.subset)
    concepts = {(pick.environment, pick.task): pick.concept for pick in subset.picks}
    return report(
        SUITE,
        tasks_digest(subset),
        _items(plan, records, Worlds(workspace.catalog, subset), concepts),
        total=len(plan.tasks) * plan.tries,
        state=state,
        why=why,
        run=run.id,
        model=run.config.get("checkpoint") or plan.name,
        subset=plan.subset,
        tries=plan.tries,
        settings={
            "protocol": plan.rules.form.value,
            "window": plan.rules.window,
            "most turns": plan.rules.max_turns,
            "sampling": plan.model.params if plan.model else {},
            "judged by": plan.rewards.by,
        },
        **_costs(records),
    )


def tasks_digest(subset: Subset) -> str:
    """The version of the suite: equal digests are equal held-out tasks in equal environments."""
    tasks = [(pick.environment, pick.task) for pick in subset.picks if pick.split == TEST]
    contents = {name: sorted(subset.contents[name].items()) for name, _ in sorted(tasks)}
    return content_hash(dumps([sorted(tasks), contents]))[:12]


class _Counted:
    """What a running evaluation says of itself."""

    def __init__(self) -> None:
        self.judged = self.passed = self.excluded = 0

    @classmethod
    def of(cls, folder: Path) -> _Counted:
        counted = cls()
        for record in read_records(folder) if (folder / TRAJECTORIES).exists() else ():
            counted.add(record)
        return counted

    def add(self, trajectory: Trajectory) -> None:
        reason = excluded_why(trajectory)
        self.excluded += reason is not None
        self.judged += reason is None
        self.passed += reason is None and passed(trajectory)

    def figures(self) -> dict[str, int]:
        return {"judged": self.judged, "passed": self.passed, "excluded": self.excluded}


def passed(trajectory: Trajectory) -> bool:
    """Whether a rollout completed its task."""
    return trajectory.reward is not None and trajectory.reward.outcome == Outcome.complete


def excluded_why(trajectory: Trajectory) -> str | None:
    """Why a rollout says nothing about the agent, in a few words; None where it does."""
    if trajectory.end in (End.model_error, End.environment_error):
        return trajectory.end.value
    reward = trajectory.reward
    if reward is not None and not reward.excluded:
        return None
    return "verifier failed" if reward is not None and reward.verifier else "no verifier"


def _forget_unanswered(folder: Path) -> None:
    """Drop the records of rollouts that the model's server failed: they are tried again."""
    path = folder / TRAJECTORIES
    if not path.exists():
        return
    drop_cut_line(path)
    records = list(read_records(folder))
    kept = [record for record in records if record.end is not End.model_error]
    if len(kept) < len(records):
        replace_file(path, b"".join(json_line(record.to_json()) for record in kept))


def _items(
    plan: Plan, records: Iterable[Trajectory], worlds: Worlds, concepts: Mapping[tuple[str, int], str]
) -> list[Item]:
    """The plan's tasks with their tries."""
    tries: dict[tuple[str, int], list[Trajectory]] = defaultdict(list)
    for record in records:
        tries[record.environment, record.task].append(record)
    items = []
    for environment, number in plan.tasks:
        found = sorted(tries[environment, number], key=lambda record: record.attempt)
        reasons = [excluded_why(record) for record in found]
        judged = (passed(record) for record, reason in zip(found, reasons, strict=True) if reason is None)
        labels = task_labels(worlds.environment(environment), number)
        if concept := concepts.get((environment, number)):
            labels = {"concept": concept, **labels}
        excluded = Counter(reason for reason in reasons if reason)
        items.append(Item(f"{environment}/{number}", tuple(judged), dict(excluded), labels))
    return items


def task_labels(environment: Environment, number: int) -> dict[str, str]:
    """What reports break tasks down by, as far as it is known: domain, and of the reference solution how many calls it
    takes (the difficulty) and whether it answers, changes something, or both (the kind)."""
    labels = {"domain": environment.domain} if environment.domain else {}
    solution = environment.solution(number)
    if solution is None:
        return labels
    count = len(solution.calls)
    labels = {**labels, "difficulty": "1 call" if count == 1 else f"{count} calls"}
    reads = {operation.operation_id for operation in environment.operations if operation.method.upper() == "GET"}
    if not environment.operations:
        return labels
    changes = any(call.tool not in reads for call in solution.calls)
    kinds = [name for name, is_so in (("change", changes), ("answer", solution.answer is not None)) if is_so]
    return {**labels, "kind": " and ".join(kinds) or "look"}


def places(folder: Path) -> dict[str, list[int]]:
    """The numbers (from 0) of each task's rollouts among a run's records, as awm-studio trajectory show takes them."""
    found: dict[str, list[int]] = defaultdict(list)
    for number, record in enumerate(read_records(folder) if (folder / TRAJECTORIES).exists() else ()):
        found[f"{record.environment}/{record.task}"].append(number)
    return dict(found)


def _costs(records: Iterable[Trajectory]) -> dict[str, Any]:
    """Slips, turns, calls, tokens and seconds of the rollouts that were judged; None where there
    are none, and for tokens of scripts, which have none."""
    judged = [record for record in records if excluded_why(record) is None]
    slips = [Counter(turn.slip for turn in record.turns if turn.slip) for record in judged]

    def mean(of: Callable[[Trajectory], float]) -> float | None:
        return round(statistics.fmean(map(of, judged)), 2) if judged else None

    return {
        "format_errors": {"rollouts": sum(bool(found) for found in slips), "slips": dict(sum(slips, Counter()))},
        "ends": dict(Counter(record.end.value for record in judged)),
        "means": {
            "turns": mean(lambda record: len(record.turns)),
            "calls": mean(lambda record: record.tool_calls),
            "tokens_in": mean(lambda record: sum(turn.tokens_in for turn in record.turns)) or None,
            "tokens_out": mean(lambda record: sum(turn.tokens_out for turn in record.turns)) or None,
            "seconds": mean(lambda record: record.seconds),
        },
    }
