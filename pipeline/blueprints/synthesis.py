"""Puts environments made by rules into a catalog, as a run whose progress others can follow."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import Any

from pipeline.blueprints.make import blueprint, domain_names, shipped_domain
from pipeline.blueprints.variant import Size
from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.model import STAGES, Author, AuthorKind, Environment, Part
from pipeline.parts import dumps, verifier_slot

KIND = "blueprints"
"""The kind of the runs made here."""

BATCH = 24
"""Environments written in one transaction: what an interruption loses, and how long other writers wait."""


@dataclass(frozen=True, slots=True)
class Request:
    """How many environments are wanted, from which seed, how large, and of which domain (None: all in turn)."""

    count: int
    seed: int
    size: Size = "small"
    domain: str | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """An environment that was made, in figures. `lines` are those of its application, `seconds` what it took."""

    name: str
    domain: str
    tables: int
    rows: int
    tools: int
    tasks: int
    lines: int
    seconds: float


def planned(request: Request) -> Iterator[tuple[str, int]]:
    """The domain and index of each environment. What an index gives depends on the request's seed and size alone."""
    names = list(domain_names())
    if request.domain is not None and request.domain not in names:
        raise UserError(f"There is no domain {request.domain!r}; there are {', '.join(names)}.")
    random.Random(request.seed).shuffle(names)  # noqa: S311 (reproducible, not secret)
    for index in range(request.count):
        yield request.domain or names[index % len(names)], index


def start(catalog: Catalog, request: Request) -> int:
    """Record a run for a request. Raises UserError where its domain is not there."""
    next(planned(request))
    config = {"count": request.count, "seed": request.seed, "size": request.size, "domain": request.domain}
    run = catalog.add_run(KIND, {**config, "made_by": "rules"})
    catalog.update_run(run, state="running", pid=os.getpid())
    return run


def synthesise(catalog: Catalog, request: Request, run: int) -> Iterator[Made]:
    """Make environments and keep them, yielding each when it is safe in the catalog.

    What is in the catalog already stays as it is, also where a person has edited it, so the same request again
    changes nothing, and one that was interrupted goes on.
    """
    wanted = planned(request)
    made: list[Made] = []
    state = "stopped"
    try:
        while batch := list(islice(wanted, BATCH)):
            made += (new := list(_keep(catalog, run, batch, request)))
            catalog.add_event(run, "progress", {"done": len(made), "total": request.count})
            yield from new
        state = "done"
    finally:
        catalog.update_run(run, state=state, pid=None, result=report(run, made))


def _keep(catalog: Catalog, run: int, batch: list[tuple[str, int]], request: Request) -> Iterator[Made]:
    with catalog.bulk():
        for domain, index in batch:
            began = time.perf_counter()
            environment = blueprint(shipped_domain(domain), request.seed, index, request.size).environment
            put(catalog, environment)
            made = figures(environment, time.perf_counter() - began)
            catalog.add_event(run, "made", {"domain": domain, "by": "rules"}, scenario=made.name)
            yield made


def put(catalog: Catalog, environment: Environment) -> None:
    """Keep an environment made by rules, with its domain as author; an edit made since is not undone."""
    domain = environment.domain
    assert domain
    author = Author(AuthorKind.blueprint, domain)
    extra = {"made_by": "rules", "domain": domain}
    for part, slot, content in contents(environment):
        catalog.put(
            environment.name,
            part,
            content,
            slot=slot,
            author=author,
            revive=False,
            extra=extra if part is Part.scenario else None,
            title=environment.title,
            origin=environment.origin,
            domain=domain,
            now=environment.now,
        )


def contents(environment: Environment) -> Iterator[tuple[Part, str, str]]:
    """The parts of an environment as text: (part, slot, content), in stage order."""
    yield Part.scenario, "", dumps({"name": environment.name, "description": environment.description})
    yield Part.tasks, "", dumps(list(environment.tasks))
    yield Part.schema, "", dumps({"tables": [_table(environment, number) for number in range(len(environment.schema))]})
    rows = [{"table_name": t.table, "insert_statements": list(t.inserts)} for t in environment.sample]
    yield Part.sample, "", dumps({"tables": rows})
    yield Part.spec, "", dumps({"api_groups": _groups(environment)})
    yield Part.code, "", environment.code or ""
    for verifier in environment.verifiers:
        yield Part.verifier, verifier_slot(verifier.task, verifier.mode), verifier.code
    for solution in environment.solutions:
        calls = [{"tool": call.tool, "arguments": dict(call.arguments)} for call in solution.calls]
        yield Part.solution, str(solution.task), dumps({"calls": calls, "answer": solution.answer})


def _table(environment: Environment, number: int) -> dict[str, Any]:
    table = environment.schema[number]
    return {"name": table.name, "ddl": table.ddl, "indexes": list(table.indexes)}


def _groups(environment: Environment) -> list[dict[str, Any]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for operation in environment.operations:
        groups.setdefault(operation.group, []).append(
            {
                "path": operation.path,
                "method": operation.method,
                "summary": operation.summary,
                "description": operation.description,
                "operation_id": operation.operation_id,
                "tags": [operation.group],
                "request_params": dict(operation.parameters),
                "response": dict(operation.response),
                "required_tables": list(operation.tables),
                "required_fields": dict(operation.fields),
            }
        )
    return [{"group_name": name, "endpoints": endpoints} for name, endpoints in groups.items()]


def figures(environment: Environment, seconds: float) -> Made:
    """An environment in figures."""
    return Made(
        name=environment.name,
        domain=environment.domain or "",
        tables=len(environment.schema),
        rows=sum(len(table.inserts) for table in environment.sample),
        tools=len(environment.operations),
        tasks=len(environment.tasks),
        lines=(environment.code or "").count("\n"),
        seconds=seconds,
    )


def report(run: int, made: list[Made]) -> dict[str, Any]:
    """The document that `awm-studio synth --json` prints. Rules are right at the first try, and cost nothing."""
    share = 1.0 if made else None
    nothing = {"attempts": len(made), "first_try": share, "final": share, "tokens": 0, "usd": 0.0}
    seconds = round(sum(each.seconds for each in made), 3)
    keys = ("tables", "rows", "tools", "lines")
    means = {key: round(fmean(getattr(each, key) for each in made), 1) if made else None for key in keys}
    return {
        "run": run,
        "made_by": "rules",
        "environments": [
            {
                "name": each.name,
                "state": "done",
                "domain": each.domain,
                "tables": each.tables,
                "rows": each.rows,
                "tools": each.tools,
                "tasks": each.tasks,
                "lines": each.lines,
                "tokens": 0,
                "usd": 0.0,
            }
            for each in made
        ],
        "stages": {stage: {**nothing, "seconds": round(seconds / len(STAGES), 3)} for stage in STAGES},
        "means": {**means, "tokens": 0 if made else None},
        "usd": 0.0,
    }
