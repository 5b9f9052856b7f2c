"""A batch of rollouts as a run of the workspace: made, worked on, gone on with, and summed up."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.engine.lock import work_on
from pipeline.errors import UserError
from pipeline.llm.client import Client
from pipeline.llm.replies import FILE_NAME, Replies
from pipeline.records import Run
from pipeline.runtime.host import Host
from pipeline.snapshots import replace_file
from train.json_lines import drop_cut_line, json_line
from train.judge import ModelJudge
from train.programs import Programs
from train.rates import rate, shown_interval
from train.records import TRAJECTORIES, Records, read_records
from train.reward import Outcome
from train.rollout import Batch, Plan, Progress, audit_of
from train.scoring import Scorer
from train.trajectory import Trajectory
from train.worlds import Worlds, subset_named

if TYPE_CHECKING:
    from pipeline.workspace import Workspace

KIND = "rollout"
PLAN = "plan.json"
LIVE = "live.json"
"""The file in a run's folder that says what goes on now."""

LIVE_EVERY_S = 1.0


@dataclass
class Tally:
    """What came of rollouts, counted as they end."""

    rollouts: int = 0
    complete: int = 0
    judged: int = 0
    calls: int = 0
    reward: float = 0.0
    ends: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    slips: Counter[str] = field(default_factory=Counter)
    excluded: Counter[str] = field(default_factory=Counter)
    dropped: int = 0

    def add(self, trajectory: Trajectory) -> None:
        """Count a record."""
        self.rollouts += 1
        self.calls += trajectory.tool_calls
        self.ends[trajectory.end.value] += 1
        self.slips.update(turn.slip for turn in trajectory.turns if turn.slip)
        self.dropped += sum(len(turn.dropped) for turn in trajectory.turns)
        reward = trajectory.reward
        if reward is None or reward.excluded:
            self.excluded[reward.reasons[0] if reward and not reward.outcome else trajectory.end.value] += 1
            return
        self.judged += 1
        self.reward += reward.total
        self.complete += reward.outcome == Outcome.complete
        if reward.outcome:
            self.outcomes[reward.outcome] += 1

    def document(self) -> dict[str, Any]:
        """The figures as `awm-studio rollout --json` prints them."""
        share = rate(self.complete, self.judged)
        return {
            "rollouts": self.rollouts,
            "outcomes": dict(self.ends),
            "judged": dict(self.outcomes),
            "complete": self.complete,
            "rate": None if share is None else round(share.estimate, 4),
            "interval": shown_interval(share),
            "excluded": sum(self.excluded.values()),
            "excluded_why": dict(self.excluded),
            "mean_reward": round(self.reward / self.judged, 4) if self.judged else None,
            "slips": dict(self.slips),
            "dropped_calls": self.dropped,
            "calls": self.calls,
        }


def tally(trajectories: Iterable[Trajectory]) -> Tally:
    """What came of rollouts."""
    counted = Tally()
    for trajectory in trajectories:
        counted.add(trajectory)
    return counted


def create(workspace: Workspace, plan: Plan) -> Run:
    """Record a batch with everything it needs to be worked on by any process. It is not started by this.

    Raises UserError where it cannot work: no tasks, a script without solutions, a judge that is missing.
    """
    if not plan.tasks:
        raise UserError("There are no tasks to roll out: name environments that have some.")
    if plan.rewards.by != "code" and plan.judge is None:
        raise UserError("A judge needs a model: name one with --judge-model.")
    if plan.actor == "reference":
        _require_solutions(workspace, plan)
    config = plan.model_dump(mode="json", exclude={"tasks", "audit"}, exclude_defaults=True)
    about = {"tasks": len(plan.tasks), "environments": len({name for name, _ in plan.tasks})}
    number = workspace.catalog.add_run(KIND, config | about)
    folder = workspace.runs / str(number)
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / PLAN, plan.model_dump_json(indent=1).encode())
    return find(workspace, number)


def find(workspace: Workspace, number: int | None) -> Run:
    """The batch to go on with: the numbered one, or the newest that is not done. Raises UserError for none."""
    for run in workspace.catalog.runs():
        if run.kind == KIND and (run.id == number or (number is None and run.state != "done")):
            return run
    if number is None:
        raise UserError("There are no unfinished rollouts to go on with.")
    raise UserError(f"There is no run of rollouts with the number {number}; awm-studio run list shows the runs.")


def plan_of(workspace: Workspace, run: Run) -> Plan:
    """What a batch does. Raises UserError where its folder is gone."""
    path = workspace.runs / str(run.id) / PLAN
    try:
        return Plan.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): the run cannot go on without it.") from None


def work(
    workspace: Workspace, run: Run, *, tell: Callable[[Trajectory, Progress], None] = lambda *_: None
) -> dict[str, Any]:
    """Do what is missing of a batch in this process; returns its figures.

    Raises UserError where another process works on it or it cannot go on, KeyboardInterrupt when it is interrupted;
    both are written down, and what was done is kept.
    """
    folder = workspace.runs / str(run.id)
    plan = plan_of(workspace, run)
    catalog = workspace.catalog
    with work_on(folder, run.id):
        drop_cut_line(folder / TRAJECTORIES)
        counted, done = Tally(), set()
        if (folder / TRAJECTORIES).exists():
            for trajectory in read_records(folder):
                counted.add(trajectory)
                done.add(trajectory.key)
        catalog.update_run(run.id, state="running", pid=os.getpid())
        before = (run.result or {}).get("seconds", 0.0)
        began = time.monotonic()

        def figures() -> dict[str, Any]:
            seconds = before + time.monotonic() - began
            return {"run": run.id, **counted.document(), "seconds": round(seconds, 3), "folder": str(folder)}

        def told(trajectory: Trajectory, progress: Progress) -> None:
            counted.add(trajectory)
            tell(trajectory, progress)

        state = "failed"
        try:
            asyncio.run(_work(workspace, run, plan, frozenset(done), told))
            state = "done"
        except (asyncio.CancelledError, KeyboardInterrupt):
            state = "stopped"
            raise KeyboardInterrupt from None
        except UserError:
            state = "stopped"
            raise
        finally:
            catalog.update_run(run.id, state=state, pid=None, result=figures())
    return figures()


async def _work(
    workspace: Workspace, run: Run, plan: Plan, done: frozenset[str], tell: Callable[[Trajectory, Progress], None]
) -> None:
    _end_on_sigterm()
    folder = workspace.runs / str(run.id)
    subset = subset_named(workspace.catalog, plan.subset) if plan.subset else None
    worlds = Worlds(workspace.catalog, subset)
    replies = Replies(workspace.path / FILE_NAME)
    client = Client(replies)
    try:
        with Host.from_settings(workspace.settings) as host, Records(folder) as records:
            judge = ModelJudge(client, plan.judge) if plan.judge else None
            scorer = Scorer(host, plan.rewards, audit_of(plan), judge)
            async with Programs(host, worlds.environment, plan.rules, limit=plan.programs) as programs:
                batch = Batch(
                    plan,
                    run.id,
                    worlds,
                    programs,
                    scorer,
                    records,
                    client=client,
                    done=done,
                    call_timeout_s=workspace.settings.call_timeout_s,
                    tell=lambda trajectory: tell(trajectory, batch.progress),
                )
                watching = asyncio.create_task(_watch(folder / LIVE, batch.progress))
                try:
                    await batch.work()
                finally:
                    watching.cancel()
    finally:
        await client.close()
        replies.close()
        (folder / LIVE).unlink(missing_ok=True)


async def _watch(path: Path, progress: Progress) -> None:
    """Say every second what goes on, until cancelled."""
    while True:
        document = {"total": progress.total, "done": progress.done, "live": progress.stuck()}
        replace_file(path, json_line(document))
        await asyncio.sleep(LIVE_EVERY_S)


def _require_solutions(workspace: Workspace, plan: Plan) -> None:
    subset = subset_named(workspace.catalog, plan.subset) if plan.subset else None
    worlds = Worlds(workspace.catalog, subset)
    lacking = [(name, task) for name, task in plan.tasks if worlds.environment(name).solution(task) is None]
    if lacking:
        name, task = lacking[0]
        more = f" (and {len(lacking) - 1} more tasks)" if len(lacking) > 1 else ""
        raise UserError(
            f"{name} has no reference solution for task {task}{more}: roll out a model, or "
            "environments or a subset (--subset) whose tasks have one."
        )


def _end_on_sigterm() -> None:
    """Let SIGTERM end the batch in order, as Ctrl-C does; only possible in a process's main thread."""
    task = asyncio.current_task()
    if task is not None and threading.current_thread() is threading.main_thread():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def take_in(workspace: Workspace, folder: Path) -> tuple[int, dict[str, Any]]:
    """Make a run of the rollouts in a folder of AWM's agent; returns its number and figures.

    Raises UserError, before a run is made, where there is none or one is something else.
    """
    from train.awm_runs import import_awm, read_awm

    for _ in read_awm(folder):
        pass
    number = workspace.catalog.add_run(KIND, {"actor": "import", "from": str(folder)})
    place = workspace.runs / str(number)
    with Records(place) as records:
        import_awm(folder, records)
    figures = tally(read_records(place)).document()
    workspace.catalog.update_run(number, state="done", result=figures)
    return number, figures
