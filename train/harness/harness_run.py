"""An evaluation by a harness as a run of the workspace: recorded, worked on, gone on with, and reported."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pipeline.engine.lock import work_on
from pipeline.errors import UserError
from pipeline.llm.faults import ModelFault
from pipeline.llm.profiles import Profile
from pipeline.snapshots import replace_file
from train import evaluate
from train.evaluate_report import Item, State, report
from train.harness import bfcl, mcp_tasks, mcp_universe, tau2, venvs
from train.harness.known import harness
from train.harness.plan import CALLS, USER_CALLS, Job, Plan, Standing
from train.harness.preflight import ask_once
from train.harness.presets import Preset
from train.harness.readiness import require
from train.harness.watching import Watch
from train.proxy import serving
from train.proxy_log import summed

if TYPE_CHECKING:
    from pipeline.records import Run
    from pipeline.workspace import Workspace

PLAN = "plan.json"
SUITES: dict[str, ModuleType] = {"bfcl": bfcl, "tau2": tau2, "mcp-universe": mcp_universe}
"""Each has `work(job)`, `progress(root, wanted)` and `items(root, wanted)`."""

FINAL = (bfcl.TOO_LONG, tau2.USER_BROKE_OFF, mcp_universe.BROKEN)
"""Why tries are excluded that going on would not mend."""

Tell = Callable[[Standing, int], None]
"""Told how an evaluation stands, and of how many tries."""


def wanted(preset: Preset, domains: list[str], *, checkout: Path | None = None) -> dict[str, list[str]]:
    """The tasks that a preset means on this machine, by domain: of these domains, or the preset's own.

    Raises UserError where the harness is not installed, a domain is missing something, or there are no tasks.
    """
    found = require(preset.suite, domains, checkout=checkout)
    packages = venvs.site_packages(venvs.require(harness(preset.suite)).python)
    if preset.suite == "bfcl":
        return bfcl.chosen(packages, preset, domains)
    if preset.suite == "tau2":
        return tau2.chosen(packages, preset, domains)
    assert checkout is not None
    ready = {domain.name for domain in found.domains if domain.ready}
    sets = [found for found in mcp_tasks.domains(checkout) if found.name in (domains or ready)]
    return mcp_universe.chosen(sets, preset)


def create(workspace: Workspace, plan: Plan) -> Run:
    """Record an evaluation. It is not started by this. Raises UserError where there is nothing to do."""
    if not plan.total:
        raise UserError("The preset has no tasks that can be run here.")
    if plan.suite == "tau2" and plan.user is None:
        raise UserError("τ²-bench needs a model that plays the user: name one with --user-model.")
    about = {"version": plan.version, "preset": plan.preset, "protocol": plan.protocol, "tasks": plan.total}
    run, folder = evaluate.create(workspace, plan.suite, {"model": plan.name, **about})
    replace_file(folder / PLAN, plan.model_dump_json(indent=1).encode())
    return run


def plan_of(workspace: Workspace, run: Run) -> Plan:
    """What an evaluation does. Raises UserError where its folder is gone."""
    path = workspace.runs / str(run.id) / PLAN
    try:
        return Plan.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): the run cannot go on without it.") from None


def work(workspace: Workspace, run: Run, *, tell: Tell = lambda *_: None) -> dict[str, Any]:
    """Do what is missing of an evaluation in this process; returns its report, which is kept.

    What got no answer before is tried again. Where the model's server or the harness fails, the report's state is
    "stopped", or "not run" where nothing was judged, and says why. Raises UserError where another process works on it,
    the harness is gone or was installed in another version, or the disk is full; KeyboardInterrupt when interrupted.
    """
    folder, plan = workspace.runs / str(run.id), plan_of(workspace, run)
    known = harness(plan.suite)
    if plan.version != known.version:
        raise UserError(
            f"Evaluation {run.id} was begun with {known.title} {plan.version}; this studio runs {known.version}, and "
            "numbers of different versions do not mix: start a new one."
        )
    python = venvs.require(known).python
    with work_on(folder, run.id), _interrupted_by_sigterm():
        workspace.catalog.update_run(run.id, state="running", pid=os.getpid())
        state: State = "stopped"
        why = "It was interrupted."
        try:
            why = _work(folder, plan, python, tell)
            state = "done"
        except (ModelFault, UserError) as fault:
            why = str(fault)
        except OSError as error:
            why = f"{folder} cannot be written ({error.strerror}): free some space, then resume."
        finally:
            document = report_of(folder, plan, run.id, state, why)
            evaluate.keep(workspace, run, document)
    return document


def report_of(folder: Path, plan: Plan, number: int, state: State, why: str) -> dict[str, Any]:
    """The report on what a harness has written so far; files that are damaged leave it without a number."""
    items: list[Item] = []
    overall: float | None = None
    root = folder / "harness"
    try:
        items = SUITES[plan.suite].items(root, plan.wanted)
        if plan.suite == "bfcl" and plan.preset == "paper" and Standing.of(items).judged == plan.total:
            overall = bfcl.overall(root, plan.wanted)
    except UserError as fault:
        items, state, why = [], "stopped", str(fault)
    standing = Standing.of(items)
    final = sum(item.excluded.get(why, 0) for item in items for why in FINAL)
    missing = plan.total - standing.judged - final
    if state == "done" and missing:
        state, why = "stopped", f"{missing} of {plan.total} tries have no result: resume to run them. {why}".strip()
    elif state == "done":
        why = ""  # what went wrong was made good
    return report(
        plan.suite,
        plan.version,
        items,
        total=plan.total,
        state=state,
        why=why,
        run=number,
        model=plan.name,
        preset=plan.preset,
        tries=plan.tries,
        settings=settings_of(plan),
        **({} if overall is None else {"overall": overall}),
        **_costs(folder, plan),
    )


def settings_of(plan: Plan) -> dict[str, Any]:
    """What results depend on besides the harness's version and the tasks: these must match to be compared."""
    converted = plan.protocol == "awm"
    return {
        "protocol": plan.protocol,
        "window": plan.window if converted else None,
        "calls of a turn": plan.parallel if converted else "all",
        "sampling": plan.model.params,
        **({"user": plan.user.model, "user sampling": plan.user.params} if plan.user else {}),
        **({"tasks": plan.digest} if plan.digest else {}),
    }


def _work(folder: Path, plan: Plan, python: Path, tell: Tell) -> str:
    """Run the harness to its end; returns the last error of the model's server, where there was one."""
    (folder / "harness").mkdir(exist_ok=True)
    with ExitStack() as stack:
        model = plan.model
        if plan.checkpoint is not None:
            from train.checkpoint_server import serving_checkpoint

            model = model.model_copy(update={"base_url": stack.enter_context(serving_checkpoint(plan.checkpoint))})
        ask_once(model, tools=plan.protocol == "native")
        if plan.user is not None:
            ask_once(plan.user, tools=False)
        native = plan.protocol == "native"
        served = serving(model, folder / CALLS, native=native, window=plan.window, parallel=plan.parallel)
        base_url = user_url = stack.enter_context(served).base_url
        watches = [Watch(folder / CALLS)]
        if plan.user is not None:
            user_url = stack.enter_context(serving(plan.user, folder / USER_CALLS, native=True)).base_url
            watches.append(Watch(folder / USER_CALLS, "the simulated user's server"))
        reader = _Reader(folder, plan, tell)

        def look() -> None:
            for watch in watches:
                watch.look()
            reader.look(watches[0].last)

        SUITES[plan.suite].work(Job(plan, folder, python, base_url, user_url, look))
        for watch in watches:
            watch.look()
        return next((watch.last for watch in watches if watch.last), "")


class _Reader:
    """Tells how far a harness is, as its files say; reading them takes a twentieth of the time at the most."""

    def __init__(self, folder: Path, plan: Plan, tell: Tell) -> None:
        self._folder, self._plan, self._tell = folder, plan, tell
        self._told: Standing | None = None
        self._next = 0.0

    def look(self, why: str) -> None:
        """Read, keep and tell, if it is time and something has changed. Raises Damaged where a file is."""
        if (began := time.monotonic()) < self._next:
            return
        standing = SUITES[self._plan.suite].progress(self._folder / "harness", self._plan.wanted)
        if standing != self._told:
            self._told = standing
            figures = {**asdict(standing), "total": self._plan.total}
            evaluate.keep_progress(self._folder, why=why, **figures)
            self._tell(standing, self._plan.total)
        self._next = began + 20 * (time.monotonic() - began)


def _costs(folder: Path, plan: Plan) -> dict[str, Any]:
    """What went through the proxies, and what that cost; money is None where a price is not known."""
    model, user = summed(folder / CALLS), summed(folder / USER_CALLS)
    bills = [_usd(plan.model, model), *([_usd(plan.user, user)] if plan.user else [])]
    return {
        "requests": model,
        **({"user_requests": user} if plan.user else {}),
        "usd": None if None in bills else round(sum(bill for bill in bills if bill is not None), 4),
    }


def _usd(profile: Profile, used: dict[str, int]) -> float | None:
    return profile.prices.usd(used["tokens_in"], used["tokens_out"]) if profile.prices else None


@contextmanager
def _interrupted_by_sigterm() -> Generator[None]:
    """Let SIGTERM end the evaluation in order, as Ctrl-C does; only possible in a process's main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
