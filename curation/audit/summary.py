"""Counts over many audits: verdicts, rates by kind and by category, and how far the two modes agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from curation.audit.kinds import KINDS
from curation.audit.records import EnvironmentAudit, VerifierAudit
from curation.audit.verdicts import WORST, Rate

STEP_GROUPS = ((2, "1-2 calls"), (5, "3-5 calls"))
MORE_STEPS = "6 or more calls"
UNKNOWN = "no known solution"


def steps_group(one: VerifierAudit) -> str:
    """How long the known solution is, in groups."""
    if one.steps is None:
        return UNKNOWN
    return next((name for most, name in STEP_GROUPS if one.steps <= most), MORE_STEPS)


CATEGORIES: Mapping[str, Callable[[VerifierAudit], str]] = {
    "mode": lambda one: one.mode.value,
    "task": lambda one: one.category or UNKNOWN,
    "steps": steps_group,
    "domain": lambda one: one.domain or "imported",
}
"""What verifiers are grouped by: their mode, what the task wants, the length of its solution, the domain."""


def summary(audits: Sequence[EnvironmentAudit]) -> dict[str, Any]:
    """The totals of audits, as `awm-studio audit --json` prints them under `summary`."""
    verifiers = [one for audit in audits for one in audit.verifiers]
    findings = [finding for audit in audits for finding in audit.findings]
    by_code = Counter(finding.code for one in verifiers for finding in one.findings)
    by_code.update(finding.code for finding in findings)
    having = Counter(code for one in verifiers for code in {finding.code for finding in one.findings})
    statuses = Counter(state.status for audit in audits for state in audit.tasks)
    verdicts = Counter(one.verdict for one in verifiers)
    return {
        "environments": len(audits),
        "verifiers": len(verifiers),
        "verdicts": {verdict: verdicts[verdict] for verdict in reversed(WORST)},
        "only_collateral": sum(only_collateral(one) for one in verifiers),
        "tasks": {status: statuses[status] for status in ("solvable", "blocked", "unproven")},
        "kinds": kinds(verifiers),
        "findings": {code: {"findings": n, "verifiers": having[code]} for code, n in by_code.most_common()},
        "disagreement": disagreement(audits),
        "excluded": excluded(audits),
    }


def only_collateral(one: VerifierAudit) -> bool:
    """Whether a verifier is loose only because it accepts changes that nobody asked for: a guard would do."""
    failed = [kind for kind in one.failed if not KINDS[kind].right]
    return one.verdict == "loose" and all(kind in ("extra_change", "collateral") for kind in failed)


def kinds(verifiers: Iterable[VerifierAudit]) -> dict[str, Any]:
    """Trials and failures by kind, over all verifiers."""
    found = {kind: Rate() for kind in KINDS}
    for one in verifiers:
        for kind, tried in one.tried.items():
            found[kind] += Rate(tried, one.failed.get(kind, 0))
    return {
        kind: {"title": KINDS[kind].title, "right": KINDS[kind].right, **rate.document("failed")}
        for kind, rate in found.items()
        if rate.tried
    }


def by_category(audits: Iterable[EnvironmentAudit]) -> dict[str, dict[str, Any]]:
    """For each way of grouping verifiers, each group's verdicts and rates, and which way it is biased."""
    verifiers = [one for audit in audits for one in audit.verifiers]
    found: dict[str, dict[str, Any]] = {}
    for category, group_of in CATEGORIES.items():
        groups: dict[str, list[VerifierAudit]] = {}
        for one in verifiers:
            groups.setdefault(group_of(one), []).append(one)
        found[category] = {name: _group(groups[name]) for name in sorted(groups)}
    return found


def _group(verifiers: Sequence[VerifierAudit]) -> dict[str, Any]:
    accepts = sum((one.rate(right=False) for one in verifiers), Rate())
    rejects = sum((one.rate(right=True) for one in verifiers), Rate())
    verdicts = Counter(one.verdict for one in verifiers)
    return {
        "verifiers": len(verifiers),
        "verdicts": {verdict: verdicts[verdict] for verdict in reversed(WORST) if verdicts[verdict]},
        "false_accepts": accepts.document("accepted"),
        "false_rejects": rejects.document("rejected"),
        "bias": bias(accepts, rejects),
    }


def bias(accepts: Rate, rejects: Rate) -> str | None:
    """Which way verifiers err: `too loose` or `too strict` where one rate's whole interval is above the other's.

    `even` where they overlap, None where only one kind of error could be tried.
    """
    if accepts.interval is None or rejects.interval is None:
        return None
    if accepts.interval[0] > rejects.interval[1]:
        return "too loose"
    return "too strict" if rejects.interval[0] > accepts.interval[1] else "even"


def disagreement(audits: Iterable[EnvironmentAudit]) -> list[dict[str, Any]]:
    """What both modes said of the same states, beside what is right; one row for each combination that occurred."""
    counts: Counter[str] = Counter()
    for audit in audits:
        for task in audit.disagreements:
            counts.update(task.counts)
    rows = []
    for key, count in sorted(counts.items()):
        right, code, sql = key.split("/")
        rows.append({"right": right, "code": code, "sql": sql, "trials": count})
    return rows


def excluded(audits: Iterable[EnvironmentAudit]) -> dict[str, int]:
    """What the rates leave out, and why."""
    found: Counter[str] = Counter()
    for audit in audits:
        if any(finding.code.startswith("load_") or finding.code == "cannot_be_audited" for finding in audit.findings):
            found["verifiers of environments that do not run"] += len(audit.verifiers)
        found["solutions that do not run"] += sum(finding.code == "solution_fails" for finding in audit.findings)
        for one in audit.verifiers:
            found["verifiers whose evidence needs a judge"] += one.why == "its evidence needs a judge"
            found["verifiers without a known solution"] += one.why == "no known solution"
    return {why: count for why, count in found.items() if count}
