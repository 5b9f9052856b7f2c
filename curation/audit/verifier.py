"""The audit of one verifier: what it says in every trial, what that shows, and the verdict about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from curation.audit.guard import footprint
from curation.audit.judge import judged
from curation.audit.records import VerifierAudit
from curation.audit.seed import already_reached
from curation.audit.stage import PreparedTask, Stage
from curation.audit.static import date_lines, id_lines, read_source, source_findings
from curation.audit.subject import Tables
from curation.audit.tables import read_tables
from curation.audit.trials import Outcome, collateral, run
from curation.audit.verdicts import conduct_findings, decide, form_findings, kind_findings, rates, units
from curation.audit.wording import Mentions
from pipeline.findings import Finding
from pipeline.model import Verifier
from pipeline.runtime.host import Case, Host

CONFIRMED = 3
"""Failed trials of one verifier that are judged again in a process of their own, beside a known solution."""


def audit_verifier(stage: Stage, task: PreparedTask, verifier: Verifier) -> tuple[VerifierAudit, Sequence[Outcome]]:
    """Audit a verifier. Also returns what it said in the trials that every verifier of its task has."""
    host = stage.host
    where = f"verifier: task {verifier.task}, {verifier.mode} mode"
    shared = outcomes = judged(run(host, verifier, task.trials), task.text, stage.judge)
    stumbled = any(outcome.stumbled for outcome in shared)
    main = task.solutions[0] if task.solutions else None
    if main is not None and not stumbled:
        more = run(host, verifier, list(collateral(main, shared, host)))
        outcomes = [*shared, *judged(more, task.text, stage.judge)]
    findings = [
        found
        for find in (conduct_findings, kind_findings, form_findings)
        for found in find(outcomes, where, task.number)
    ]
    if not stumbled:
        findings += _unsteady(host, verifier, outcomes, where)
        accepted = {outcome.trial.kind for outcome in outcomes if outcome.accepted is not False}
        if accepted.isdisjoint({"untouched", "reference"}):
            answer = main.known.answer if main else None
            untouched = Case(stage.snapshot, stage.snapshot, answer, stage.environment.now)
            findings += already_reached(host, verifier, untouched, task.text, where)
    findings = list(_with_lines(findings, verifier, task, main.final if main else read_tables(stage.snapshot)))
    databases = [read_tables(stage.snapshot), *(one.final for one in task.solutions)]
    findings += source_findings(read_source(verifier.code), where, verifier.task, task.text, databases)
    verdict, why = decide(outcomes, findings)
    counted = units(outcomes)
    both = {**rates(counted, right=False), **rates(counted, right=True)}
    audit = VerifierAudit(
        name=stage.environment.name,
        domain=stage.environment.domain,
        task=verifier.task,
        mode=verifier.mode,
        verdict=verdict,
        why=why,
        category=main.category if main else None,
        steps=len(main.known.calls) or None if main else None,
        solutions=tuple(one.known.source for one in task.solutions),
        tried={kind: rate.tried for kind, rate in both.items()},
        failed={kind: rate.failed for kind, rate in both.items() if rate.failed},
        reads=_reads(outcomes),
        may_change=footprint(one.differences for one in task.solutions) if task.solutions else None,
        findings=tuple(sorted(findings, key=lambda finding: ("error", "warn", "info").index(finding.severity))),
    )
    return audit, shared


def _unsteady(host: Host, verifier: Verifier, outcomes: Sequence[Outcome], where: str) -> Iterator[Finding]:
    """A finding where a verifier, asked again in a fresh process, says something else."""
    failed = [outcome for outcome in outcomes if outcome.failed][:CONFIRMED]
    known = [outcome for outcome in outcomes if outcome.trial.kind == "reference"][:1]
    for outcome in (*failed, *known):
        (again,) = run(host, verifier, [outcome.trial])
        again = replace(again, judged=outcome.judged)
        if again.verdict.verdict != outcome.verdict.verdict or again.accepted != outcome.accepted:
            yield Finding(
                "not_repeatable",
                "error",
                where,
                "asked again about the same databases and answer, the verifier comes to another verdict",
                evidence=f"{outcome.trial.says} → {outcome.verdict.verdict}, then {again.verdict.verdict}",
                remedy="make it a function of the two databases and the answer alone",
                tasks=(verifier.task,),
            )
            return


def _with_lines(
    findings: Iterable[Finding], verifier: Verifier, task: PreparedTask, tables: Tables
) -> Iterator[Finding]:
    """The findings, with the lines of the source that may be to blame."""
    source = read_source(verifier.code)
    for finding in findings:
        lines: list[str] = []
        if finding.code == "hard_coded_id":
            lines = id_lines(source, tables, Mentions(task.text))
        elif finding.code == "date_form":
            lines = date_lines(source)
        elif finding.code == "depends_on_clock":
            lines = [source.line(number) for number in source.clock]
        yield replace(finding, evidence="; ".join((finding.evidence, *lines)))


def _reads(outcomes: Iterable[Outcome]) -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for outcome in outcomes:
        for _, table, column in outcome.verdict.reads:
            if not table.startswith("sqlite_"):
                found.setdefault(table, set()).add(column)
    return {table: tuple(sorted(columns - {""})) for table, columns in sorted(found.items())}
