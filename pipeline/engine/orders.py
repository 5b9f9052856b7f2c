"""How the engine carries out commands. Each handler returns what is to be said, or raises UserError."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

import orjson

from pipeline.engine.board import Row, State
from pipeline.engine.commands import find_row, one_stage
from pipeline.engine.flow import put, refusals, step_for
from pipeline.errors import UserError
from pipeline.model import STAGES, Author, AuthorKind, Part
from pipeline.parts import canonical
from pipeline.records import Event
from pipeline.stages.step import Attempt, steady

if TYPE_CHECKING:
    from pipeline.engine.engine import Engine

Handler = Callable[["Engine", Row | None, dict[str, Any]], Awaitable[str]]


class Stopped(Exception):
    """A person wants the engine to end."""


async def take(engine: Engine, event: Event) -> None:
    """Carry out a command and answer it. Raises Stopped where the engine is told to end."""
    try:
        row = find_row(engine.board, event.scenario) if event.scenario else None
        if row is not None and row.dropped:
            raise UserError(f"{row.title} was dropped.")
        said, ok = await HANDLERS[event.data["do"]](engine, row, event.data), True
    except UserError as error:
        said, ok = str(error), False
    engine.emit("taken", {"command": event.id, "ok": ok, "said": said}, event.scenario)
    await engine.news()
    if event.data["do"] == "stop" and ok:
        raise Stopped


async def pause(engine: Engine, row: Row | None, data: dict[str, Any]) -> str:
    """Ask nothing more until resumed; replies that are on their way are taken in."""
    if row is not None:
        engine.emit("row", {"paused": True}, row.name)
        return f"{row.title} pauses"
    engine.emit("run", {"state": "paused", "why": f"paused by {data['by']}"})
    engine.catalog.update_run(engine.run.id, state="paused")
    return "the run pauses"


async def resume(engine: Engine, row: Row | None, data: dict[str, Any]) -> str:
    """Go on, and try again what waits for a server."""
    engine.client.reopen()
    if row is not None:
        engine.emit("row", {"paused": False}, row.name)
        try_again(engine, [row])
        return f"{row.title} goes on"
    engine.emit("run", {"state": "running", "why": ""})
    engine.catalog.update_run(engine.run.id, state="running")
    for each in engine.board.wanted:
        if each.paused:
            engine.emit("row", {"paused": False}, each.name)
    try_again(engine, engine.board.wanted)
    engine.start_source()
    return "the run goes on"


async def stop(engine: Engine, row: Row | None, data: dict[str, Any]) -> str:
    """End the engine; everything that is done stays."""
    return "the run stops"


async def approve(engine: Engine, row: Row | None, data: dict[str, Any]) -> str:
    """Let what waits for a decision go on: one scenario's, or all of a stage, or all."""
    stage = data.get("stage")
    found = [
        (each, name)
        for each, name, cell in engine.board.waiting()
        if not cell.fault and (row is None or each is row) and stage in (None, name)
    ]
    if not found:
        raise UserError(f"Nothing of {row.title if row else 'this run'} waits for approval.")
    for each, name in found:
        engine.set_stage(each, name, State.done)
        engine.start_flow(each)
    return f"approved: {', '.join(f'{name} of {each.title}' for each, name in found[:5])}" + (
        f" and {len(found) - 5} more" if len(found) > 5 else ""
    )


async def reject(engine: Engine, row: Row | None, data: dict[str, Any]) -> str:
    """Send a stage's result back with a reason; a rejected scenario is replaced by another one."""
    row, stage = _named(row), one_stage(_named(row), data.get("stage"))
    if not data.get("reason"):
        raise UserError("Say why: the reason goes to the model.")
    if stage == "scenario":
        await engine.stop_flow(row)
        engine.emit("row", {"dropped": True}, row.name)
        engine.start_source()
        return f"{row.title} is rejected, another one is looked for"
    part, slot = _part(stage, data, last=True)
    versions = engine.catalog.versions(row.name, part, slot)
    if not versions and not (part is Part.verifier and not slot):
        raise UserError(f"There is no {part} of {row.title} yet that could be rejected.")
    await redo(engine, row, stage, part, slot, base=versions[-1].id if versions else None, say=data["reason"])
    return f"{part} of {row.title} goes back"


async def retry(engine: Engine, row: Row | None, data: dict[str, Any]) -> str:
    """Make a stage again, with a hint or from an older version; without a scenario, everything that failed."""
    if row is None:
        failed = [(each, each.stage) for each in engine.board.wanted if each.state is State.failed]
        if engine.board.source.state is State.failed:
            engine.emit("redo", {"stage": "scenario"})
            engine.start_source()
        elif not failed:
            raise UserError("Nothing has failed.")
        for each, stage in failed:
            await redo(engine, each, stage, None, "", base=None, say=data.get("hint") or "")
        return f"{len(failed)} scenarios are tried again"
    stage = one_stage(row, data.get("stage"))
    if stage == "scenario":
        raise UserError("A scenario cannot be retried: reject it, and another one is looked for.")
    part, slot = _part(stage, data, last=bool(data.get("version")))
    base = None
    if number := data.get("version"):
        assert part is not None
        numbered = {version.number: version.id for version in engine.catalog.versions(row.name, part, slot)}
        if number not in numbered:
            raise UserError(f"{row.title} has no version {number} of {part} {slot}".rstrip() + ".")
        base = numbered[number]
        if not data.get("hint"):
            raise UserError("Say what should be different from that version: --hint.")
    await redo(engine, row, stage, part, slot, base=base, say=data.get("hint") or "")
    return f"{stage} of {row.title} is made again"


async def edit(engine: Engine, row: Row | None, data: dict[str, Any]) -> str:
    """Put a person's content in place, check it, and make again (or keep, if still valid) what depends on it."""
    row, stage = _named(row), one_stage(_named(row), data.get("stage"))
    part, slot = _part(stage, data, last=False)
    if part is None:
        raise UserError(f"Say which part of the stage: {' or '.join(STAGES[stage])}.")
    content, author = canonical(part, data["content"]), Author(AuthorKind.person, data["by"])
    if part is Part.scenario:
        return await _edit_scenario(engine, row, content, author, keep=bool(data.get("keep")))
    step = step_for(engine.environment(row), stage, part, slot)
    try:
        findings = steady(await engine.check(step, content))
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"The {part} cannot be read: {error}.") from None
    await engine.stop_flow(row)
    _emit_redo(engine, row, stage, part, slot, base=None, say="", keep=bool(data.get("keep")))
    refused = refusals(step, findings)
    engine.record(row, step, Attempt(1, content, findings), right=not refused)
    put(engine, row, step, content, author=author)
    if refused:
        why = f"{len(refused)} faults in what {author.name} wrote: {refused[0].where}: {refused[0].message}"
        engine.set_stage(row, stage, State.waiting, why=f"{why}. Edit again, or approve it as it is.")
        return why
    engine.start_flow(row)
    return f"{step.name} of {row.title} is yours"


async def drop(engine: Engine, row: Row | None, data: dict[str, Any]) -> str:
    """Leave a scenario out; what it has stays in the catalog, and no other one takes its place."""
    row = _named(row)
    await engine.stop_flow(row)
    engine.emit("row", {"dropped": True}, row.name)
    engine.emit("changed", {"count": engine.board.count - 1})
    return f"{row.title} is dropped"


async def change(engine: Engine, row: Row | None, data: dict[str, Any]) -> str:
    """Change the run's settings while it works."""
    changed = {name: data[name] for name in ("count", "budget", "gates", "models") if name in data}
    if not changed:
        raise UserError("Say what to change: the count, the budget, the gates or a model.")
    if changed.get("count", len(engine.board.wanted)) < len(engine.board.wanted):
        raise UserError(f"There are {len(engine.board.wanted)} scenarios already: drop those you do not want.")
    engine.emit("changed", changed)
    if "budget" in changed:
        await engine.client.budget.raise_to(changed["budget"])
    if "models" in changed or "budget" in changed:
        engine.client.reopen()
        try_again(engine, engine.board.wanted)
    engine.start_source()
    return "changed: " + ", ".join(changed)


HANDLERS: dict[str, Handler] = {
    "pause": pause,
    "resume": resume,
    "stop": stop,
    "approve": approve,
    "reject": reject,
    "edit": edit,
    "retry": retry,
    "drop": drop,
    "set": change,
}


async def redo(
    engine: Engine, row: Row, stage: str, part: Part | None, slot: str, *, base: int | None, say: str
) -> None:
    """Stop a scenario, mark the stage (from a part on) and what depends on it to be made again, and let it go on."""
    await engine.stop_flow(row)
    _emit_redo(engine, row, stage, part, slot, base=base, say=say, keep=False)
    engine.start_flow(row)


def try_again(engine: Engine, rows: list[Row]) -> None:
    """Let scenarios that wait for a server, and those that can go on anyway, go on."""
    for row in rows:
        for stage, _ in waiting_for_server(row):
            engine.set_stage(row, stage, State.queued)
        engine.start_flow(row)


def waiting_for_server(row: Row) -> Iterator[tuple[str, str]]:
    """A scenario's stages that wait because of a fault, with its kind."""
    for stage, cell in row.cells.items():
        if cell.state is State.waiting and cell.fault:
            yield stage, cell.fault


async def _edit_scenario(engine: Engine, row: Row, content: str, author: Author, *, keep: bool) -> str:
    engine.catalog.put(row.name, Part.scenario, content, author=author)
    await engine.stop_flow(row)
    _emit_redo(engine, row, "tasks", None, "", base=None, say="", keep=keep)
    if row.cells["scenario"].state is State.waiting:
        engine.set_stage(row, "scenario", State.done)
    engine.start_flow(row)
    return f"the description of {row.title} is yours"


def _emit_redo(
    engine: Engine, row: Row, stage: str, part: Part | None, slot: str, *, base: int | None, say: str, keep: bool
) -> None:
    data = {"stage": stage, "part": part or "", "slot": slot, "base": base, "say": say, "keep": keep}
    engine.emit("redo", data, row.name)


def _named(row: Row | None) -> Row:
    if row is None:
        raise UserError("Say which scenario.")
    return row


def _part(stage: str, data: dict[str, Any], *, last: bool) -> tuple[Any, str]:
    """The part (and slot) that is meant; where none is named, the stage's only one, or its last one, or None."""
    slot = data.get("slot") or ""
    if name := data.get("part"):
        if name not in STAGES[stage]:
            raise UserError(f"The {stage} stage makes {' and '.join(STAGES[stage])}, not {name}.")
        return Part(name), slot
    if last or slot or len(STAGES[stage]) == 1:
        return STAGES[stage][-1], slot
    return None, slot
