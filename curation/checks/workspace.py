"""Checking many environments: in parallel, kept as they come, and never twice for the same content."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from curation.checks.environment import CheckResult, check_environment
from pipeline.catalog import Catalog
from pipeline.model import content_hash
from pipeline.runtime.host import Host

RULES_VERSION = 3
"""Raised when a check is added or changed, so that kept results are not mistaken for current ones."""


def check_key(catalog: Catalog, name: str) -> str:
    """What a result depends on: the rules, the content of every current part, and the pinned time."""
    parts = [(version.part, version.slot, version.sha) for version in catalog.current(name)]
    return content_hash(json.dumps([RULES_VERSION, catalog.summary(name).now.isoformat(), parts]))


def check_workspace(
    catalog: Catalog, names: Sequence[str], host: Host, *, workers: int, again: bool = False
) -> Iterator[CheckResult]:
    """Check environments with `workers` at a time, yielding each result as it comes.

    Results are kept in the catalog; what was checked before with the same content is taken from there unless
    `again`. So an interrupted check goes on where it stopped.
    """
    todo: list[tuple[str, str]] = []
    for name in names:
        key = check_key(catalog, name)
        kept = None if again else catalog.check(name, key)
        if kept is None:
            todo.append((name, key))
        else:
            yield CheckResult.from_json(kept.findings_json)
    with ThreadPoolExecutor(workers, thread_name_prefix="check") as pool:
        waiting: dict[Future[CheckResult], str] = {}
        queue = iter(todo)
        try:
            for name, key in queue:
                waiting[pool.submit(check_environment, catalog.environment(name), host)] = key
                if len(waiting) >= 2 * workers:
                    yield from finished(catalog, waiting)
            while waiting:
                yield from finished(catalog, waiting)
        finally:
            for future in waiting:
                future.cancel()


def finished(catalog: Catalog, waiting: dict[Future[CheckResult], str]) -> Iterator[CheckResult]:
    """Wait for at least one check to end, keep what has ended in the catalog, and yield it."""
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for future in done:
        key = waiting.pop(future)
        result = future.result()
        catalog.set_check(result.name, result.status, json.dumps(result.document()), key)
        yield result


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
