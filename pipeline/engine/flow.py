"""One scenario's way through the stages, as far as it goes without a person."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from pipeline.engine.board import AFTER_SCENARIO, Row, State, StepLog
from pipeline.errors import UserError
from pipeline.findings import Finding
from pipeline.llm.faults import FaultKind, ModelFault
from pipeline.llm.request import Reply, Request
from pipeline.model import STAGES, Author, AuthorKind, Cost, Environment, Part
from pipeline.stages import database, interface, tasks, verification
from pipeline.stages.making import make
from pipeline.stages.step import INPUTS, REJECTED, Attempt, Step, Weight, steady

if TYPE_CHECKING:
    from pipeline.engine.engine import Engine

STEPS: dict[str, tuple[Callable[[Environment], tuple[Step, ...]], ...]] = {
    "tasks": (tasks.steps,),
    "database": (database.schema_steps, database.sample_steps),
    "interface": (interface.spec_steps, interface.code_steps),
    "verification": (verification.steps,),
}
"""What each stage asks for, in order; steps of one function may run at once."""

_FINDINGS = TypeAdapter(tuple[Finding, ...])

FINAL = frozenset({FaultKind.context_overflow, FaultKind.bad_request, FaultKind.not_recorded})
"""Faults after which a stage has failed; after all others it waits, because trying again later may help."""


async def flow(engine: Engine, row: Row) -> None:
    """Take a scenario from stage to stage until it is done, fails, or has to wait for a person."""
    for stage in AFTER_SCENARIO:
        cell = row.cells[stage]
        if cell.state is State.done:
            continue
        if cell.state in (State.waiting, State.failed) or not await pass_stage(engine, row, stage):
            return


async def pass_stage(engine: Engine, row: Row, stage: str) -> bool:
    """Make a stage. Returns whether the scenario may go on at once."""
    await engine.ready(row)
    engine.set_stage(row, stage, State.running)
    try:
        missing = await make_steps(engine, row, stage)
    except ModelFault as fault:
        state = State.failed if fault.kind in FINAL else State.waiting
        engine.set_stage(row, stage, state, why=str(fault), fault=fault.kind)
        return False
    except UserError:  # of the catalog or the disk: no scenario can go on
        raise
    except Exception as mistake:  # ours: it must not end the others
        told = f"a mistake of awm-studio itself: {type(mistake).__name__}: {mistake}; see {engine.log_mistake()}"
        engine.set_stage(row, stage, State.failed, why=told)
        return False
    if missing:
        engine.set_stage(row, stage, State.failed, why=missing)
        return False
    if engine.is_gated(row, stage):
        engine.set_stage(row, stage, State.waiting, why="to be approved")
        return False
    engine.set_stage(row, stage, State.done)
    return True


async def make_steps(engine: Engine, row: Row, stage: str) -> str:
    """Make what the stage still lacks. Returns why the stage has failed, or nothing."""
    refused: list[Step] = []
    for steps_of in STEPS[stage]:
        steps = [step for step in steps_of(engine.environment(row)) if row.cells[stage].step(step.name).version is None]
        results = await asyncio.gather(*(make_step(engine, row, step) for step in steps), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        refused += [step for step, made in zip(steps, results, strict=True) if not made]
        if refused and stage != "verification":
            return _why_refused(refused[0], row)
    without = _tasks_without_verifier(refused)
    if without:
        return f"no verifier could be made for task {', '.join(without)}: {_why_refused(refused[0], row)}"
    return ""


async def make_step(engine: Engine, row: Row, step: Step) -> bool:
    """Make one step, unless what is there may be kept. Returns whether there is something to go on with."""
    cell = row.cells[step.stage]
    log = cell.step(step.name)
    if cell.keep and await keep(engine, row, step):
        return True

    async def ask(request: Request) -> Reply:
        return await engine.ask(request, step, row)

    def tell(attempt: Attempt, right: bool) -> None:
        engine.record(row, step, attempt, right=right)

    outcome = await make(
        step,
        ask,
        engine.check,
        earlier=await earlier_attempts(engine, row, step, log),
        allowed=engine.config.attempts,
        hint=cell.hint,
        sample=cell.generation * 1000,
        tell=tell,
    )
    if outcome.attempt is None or outcome.attempt.content is None:
        return False
    cost = log.cost
    put(
        engine,
        row,
        step,
        outcome.attempt.content,
        author=Author(AuthorKind.model, engine.profile(step.stage).model),
        cost=Cost(cost.tokens_in, cost.tokens_out, cost.usd, round(cost.seconds, 3)),
    )
    return True


async def earlier_attempts(engine: Engine, row: Row | None, step: Step, log: StepLog) -> list[Attempt]:
    """The attempts on record, after the version to start from, if there is one."""
    attempts = []
    if row is not None and log.base is not None:
        content = engine.version_content(row, step, log.base)
        said = Finding(REJECTED, "error", step.name, f"the person in charge sends this back: {log.reason}")
        attempts.append(Attempt(0, content, (said, *steady(await engine.check(step, content)))))
    for tried in log.attempts:
        findings = _FINDINGS.validate_python(tried.findings)
        content = None if tried.content is None else engine.client.replies.text(tried.content)
        attempts.append(Attempt(tried.number, content, findings, tried.keys))
    return attempts


async def keep(engine: Engine, row: Row, step: Step) -> bool:
    """Keep what is there if its checks, run anew, refuse nothing."""
    content = engine.current_content(row, step)
    if content is None:
        return False
    findings = steady(await engine.check(step, content))
    if refusals(step, findings):
        return False
    engine.record(row, step, Attempt(1, content, findings), right=True)
    version = next(v for v in engine.catalog.current(row.name) if (v.part, v.slot) == (step.part, step.slot))
    engine.emit("made", {"stage": step.stage, "step": step.name, "version": version.id}, row.name)
    return True


def put(engine: Engine, row: Row, step: Step, content: str, *, author: Author, cost: Cost | None = None) -> None:
    """Put a content into the catalog as the step's version, and on record."""
    parents = [v.id for v in engine.catalog.current(row.name) if v.part in INPUTS[step.part]]
    version = engine.catalog.put(
        row.name, step.part, content, slot=step.slot, author=author, parents=parents, cost=cost
    )
    by = author.name if author.kind is AuthorKind.person else ""
    engine.emit("made", {"stage": step.stage, "step": step.name, "version": version.id, "by": by}, row.name)


def step_for(environment: Environment, stage: str, part: Part, slot: str) -> Step:
    """The step that makes a part (and slot) of an environment. Raises UserError where there is none."""
    if part not in STAGES[stage]:
        raise UserError(f"The {stage} stage makes {' and '.join(STAGES[stage])}, not {part}.")
    for steps_of in STEPS[stage]:
        for step in steps_of(environment):
            if step.part is part and step.slot == slot:
                return step
    raise UserError(f"There is no {part} {slot!r}: a verifier's slot is TASK/MODE, for example 3/code.")


def refusals(step: Step, findings: Sequence[Finding]) -> list[Finding]:
    """The findings with which nothing may stay."""
    return [finding for finding in findings if step.weigh(finding) is Weight.refuse]


def finding_documents(findings: Sequence[Finding]) -> list[dict]:
    """Findings as they are kept in events."""
    return [asdict(finding) for finding in findings]


def _why_refused(step: Step, row: Row) -> str:
    attempts = row.cells[step.stage].step(step.name).attempts
    if not attempts:
        return f"{step.name} was not made"
    refused = refusals(step, _FINDINGS.validate_python(attempts[-1].findings))
    told = "; ".join(f"{finding.where}: {finding.message}" for finding in refused[:3])
    more = f" and {len(refused) - 3} more" if len(refused) > 3 else ""
    return f"{step.name} was never right in {len(attempts)} attempts: {told}{more}"


def _tasks_without_verifier(refused: Sequence[Step]) -> list[str]:
    """The tasks both of whose verifiers were refused."""
    tasks = [step.slot.partition("/")[0] for step in refused]
    return sorted({task for task in tasks if tasks.count(task) > 1}, key=int)
