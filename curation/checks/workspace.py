"""Checking many environments: in parallel, kept as they come, and never twice for the same content."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from typing import Any

from curation.checks.environment import CheckResult, check_environment, with_findings
from curation.checks.trajectories import TROUBLES
from curation.in_parallel import in_parallel
from curation.review import settle
from pipeline.catalog import Catalog
from pipeline.findings import Finding
from pipeline.model import Part, content_hash
from pipeline.runtime.host import Host

RULES_VERSION = 4
"""Raised when a check is added or changed, so that kept results are not mistaken for current ones."""


CANNOT = "cannot_be_checked"
"""The finding where checking itself failed. Such a result is not kept: it may be this machine's fault."""


def check_key(catalog: Catalog, name: str) -> str:
    """What a result depends on: the rules, the content of every current part but solutions, and the pinned time."""
    current = [version for version in catalog.current(name) if version.part is not Part.solution]
    parts = [(version.part, version.slot, version.sha) for version in current]
    return content_hash(json.dumps([RULES_VERSION, catalog.summary(name).now.isoformat(), parts]))


def check_workspace(
    catalog: Catalog,
    names: Sequence[str],
    host: Host,
    *,
    workers: int,
    again: bool = False,
    stopping: Callable[[int], None] = lambda begun: None,
) -> Generator[CheckResult]:
    """Check environments with `workers` at a time, yielding each result as it comes.

    Results are kept in the catalog; what was checked before with the same content is taken from there unless
    `again`. So an interrupted check goes on where it stopped; `stopping` as in `in_parallel`.
    """
    todo: list[tuple[str, str]] = []
    for name in names:
        key = check_key(catalog, name)
        kept = None if again else catalog.check(name, key)
        if kept is None:
            todo.append((name, key))
            continue
        if catalog.summary(name).check == "stale":  # changed and changed back
            catalog.set_check(name, kept.status, kept.findings_json, key)
            settle(catalog, name)
        yield CheckResult.from_json(kept.findings_json)

    def check(item: tuple[str, str]) -> CheckResult:
        return check_one(catalog, item[0], host)

    def keep(item: tuple[str, str], result: CheckResult) -> None:
        if not any(finding.code == CANNOT for finding in result.findings):
            catalog.set_check(result.name, result.status, json.dumps(result.document()), item[1])
            settle(catalog, result.name)

    yield from in_parallel(todo, check, keep, workers=workers, name="check", stopping=stopping)


def keep_recorded(catalog: Catalog, result: CheckResult, findings: Iterable[Finding]) -> CheckResult:
    """A result with what recorded runs say of its environment, in the place of what earlier ones said.

    It is kept with the check, where there is one, and stays until something in the environment is changed.
    """
    own = [finding for finding in result.findings if finding.code not in TROUBLES]
    result = with_findings(replace(result, findings=tuple(own)), findings)
    key = check_key(catalog, result.name)
    if catalog.check(result.name, key) is not None:
        catalog.set_check(result.name, result.status, json.dumps(result.document()), key)
        settle(catalog, result.name)
    return result


def check_one(catalog: Catalog, name: str, host: Host) -> CheckResult:
    """Check one environment of a catalog. Whatever goes wrong is a finding: the others are checked too."""
    try:
        return check_environment(catalog.environment(name), host)
    except Exception as error:  # generated content has more ways to fail than anybody can list
        finding = Finding(
            CANNOT,
            "error",
            "environment",
            f"the environment cannot be checked ({type(error).__name__}): {error}",
            remedy="check it again; if this stays, its parts are damaged, or the checks have a fault worth reporting",
        )
        return CheckResult(name, "fail", catalog.summary(name).tables or 0, None, None, (finding,))


def summary(results: Iterable[CheckResult]) -> dict[str, Any]:
    """Counts over results: environments by status, findings and environments by code, tasks at risk."""
    results = list(results)
    findings = Counter(f.code for result in results for f in result.findings)
    environments = Counter(code for result in results for code in {f.code for f in result.findings})
    at_risk = sum(len({t for f in r.findings if f.severity == "error" for t in f.tasks}) for r in results)
    statuses = Counter(result.status for result in results)
    return {
        "environments": len(results),
        "status": {status: statuses[status] for status in ("pass", "warn", "fail")},
        "findings": {code: {"findings": n, "environments": environments[code]} for code, n in findings.most_common()},
        "tasks_at_risk": at_risk,
    }
