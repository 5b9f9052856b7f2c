"""Auditing many environments: in parallel, kept as they come, and never twice for the same content."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace

from curation.audit.environment import audit_environment, unrunnable
from curation.audit.guard import guarded
from curation.audit.judge import Judge
from curation.audit.records import EnvironmentAudit, VerifierAudit
from curation.audit.stage import SOLUTIONS
from curation.audit.trajectories import Trajectories
from curation.in_parallel import in_parallel
from curation.review import settle
from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.findings import Finding
from pipeline.model import Author, AuthorKind, Part, content_hash
from pipeline.parts import verifier_slot
from pipeline.runtime.host import Host

RULES_VERSION = 1
"""Raised when what is tried or how it is judged changes, so that kept audits are not mistaken for current ones."""

CANNOT = "audit_failed"
"""The finding where the audit itself failed. Such a result is not kept: it may be this machine's fault."""

GUARD_AUTHOR = Author(AuthorKind.person, "audit guard")
"""Who a guarded verifier is by: a person asked for the guard."""


def audit_key(catalog: Catalog, name: str, trajectories: Trajectories | None = None, judge: Judge | None = None) -> str:
    """What an audit depends on: the rules, every current part, the pinned time, trajectories used, and the judge."""
    parts = [(version.part, version.slot, version.sha) for version in catalog.current(name)]
    now = catalog.environment(name, parts=()).now
    runs = [run.digest() for run in trajectories.of(name)] if trajectories else []
    by = [judge.name] if judge else []
    return content_hash(json.dumps([RULES_VERSION, now.isoformat(), parts, runs, *by]))


def audit_workspace(
    catalog: Catalog,
    names: Sequence[str],
    host: Host,
    *,
    workers: int,
    trajectories: Trajectories | None = None,
    judge: Judge | None = None,
    again: bool = False,
    stopping: Callable[[int], None] = lambda begun: None,
) -> Generator[EnvironmentAudit]:
    """Audit environments with `workers` at a time, yielding each result as it comes.

    Results are kept in the catalog; what was audited before with the same content is taken from there unless `again`.
    So an interrupted audit goes on where it stopped; `stopping` as in `in_parallel`.
    """
    todo: list[tuple[str, str]] = []
    for name in names:
        key = audit_key(catalog, name, trajectories, judge)
        kept = None if again else catalog.audit(name, key)
        if kept is None:
            todo.append((name, key))
            continue
        if catalog.summary(name).audit == "stale":  # changed and changed back
            catalog.set_audit(name, kept.verdict, kept.document_json, key)
            settle(catalog, name)
        yield EnvironmentAudit.from_json(kept.document_json)

    def audit(item: tuple[str, str]) -> EnvironmentAudit:
        return audit_one(catalog, item[0], host, trajectories, judge)

    def keep(item: tuple[str, str], result: EnvironmentAudit) -> None:
        unjudged = judge is not None and judge.fault is not None
        if not unjudged and not any(finding.code == CANNOT for finding in result.findings):
            catalog.set_audit(result.name, result.verdict, result.to_json(), item[1])
            settle(catalog, result.name)

    yield from in_parallel(todo, audit, keep, workers=workers, name="audit", stopping=stopping)


def audit_one(
    catalog: Catalog,
    name: str,
    host: Host,
    trajectories: Trajectories | None = None,
    judge: Judge | None = None,
) -> EnvironmentAudit:
    """Audit one environment of a catalog. Whatever goes wrong is a finding: the others are audited too."""
    environment = catalog.environment(name)
    recorded, problems = [], []
    taken: Counter[int] = Counter()
    for run in trajectories.of(name) if trajectories else ():
        if taken[run.task] == SOLUTIONS:
            continue
        try:
            recorded.append(run.known(environment.now))
            taken[run.task] += 1
        except UserError as error:
            problems.append(
                Finding("trajectory_unreadable", "warn", str(run.path), str(error), remedy="record it again")
            )
    try:
        sources = solution_sources(catalog, name)
        audit = audit_environment(environment, host, sources=sources, recorded=recorded, judge=judge)
    except Exception as error:  # generated content has more ways to fail than anybody can list
        audit = unrunnable(
            environment,
            Finding(
                CANNOT,
                "error",
                "environment",
                f"the audit failed ({type(error).__name__}): {error}",
                remedy="audit it again; if this stays, the audit has a fault worth reporting",
            ),
        )
    return replace(audit, findings=(*audit.findings, *problems))


def solution_sources(catalog: Catalog, name: str) -> dict[int, str]:
    """Who each known solution of an environment is by, by task."""
    return {
        int(version.slot): f"{version.author.kind.value} {version.author.name}".strip()
        for version in catalog.current(name)
        if version.part is Part.solution
    }


def adopt_guards(catalog: Catalog, name: str) -> list[VerifierAudit]:
    """Put guards into the verifiers that the last audit found to accept changes nobody asked for.

    Each becomes a new version of the verifier; the old one stays among its versions. Returns those that have one now.
    """
    kept = catalog.audit(name)
    if kept is None:
        return []
    environment = catalog.environment(name, parts=[Part.verifier])
    adopted = []
    for one in EnvironmentAudit.from_json(kept.document_json).verifiers:
        verifier = environment.verifier(one.task, one.mode)
        if verifier is None or one.may_change is None or not one.wants_guard:
            continue
        code = guarded(verifier.code, one.mode, one.may_change)
        if code is not None:
            catalog.put(name, Part.verifier, code, slot=verifier_slot(one.task, one.mode), author=GUARD_AUTHOR)
            adopted.append(one)
    return adopted
