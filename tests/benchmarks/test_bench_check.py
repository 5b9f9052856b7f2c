"""What checking 1,000 generated environments costs, stopped half-way and gone on with, by two workers."""

from __future__ import annotations

import resource
import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from curation.checks.workspace import check_workspace, summary
from pipeline.blueprints.synthesis import Request, start, synthesise
from pipeline.catalog import Catalog
from pipeline.runtime.host import Host

pytestmark = pytest.mark.benchmark

MANY = 1000
SEED = 7
WORKERS = 2
SAMPLED_EVERY_S = 2.0


@dataclass
class Peak:
    """The most memory seen, in MB: of this process, and of all processes together (shared pages counted once)."""

    own: float = 0.0
    together: float = 0.0


@contextmanager
def watched_memory() -> Generator[Peak]:
    """Sample the memory of this process and its children until the end of the block."""
    peak, over, own = Peak(), threading.Event(), psutil.Process()

    def sample() -> None:
        while not over.wait(SAMPLED_EVERY_S):
            together = 0.0
            for process in (own, *own.children(recursive=True)):
                try:
                    together += process.memory_full_info().pss / 1e6
                except psutil.Error:  # it has ended since it was listed
                    continue
            peak.own = max(peak.own, own.memory_info().rss / 1e6)
            peak.together = max(peak.together, together)

    watcher = threading.Thread(target=sample, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        over.set()
        watcher.join()


def cpu_seconds() -> float:
    """What this process and the children it has waited for have used."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def test_a_thousand_environments_are_checked_stopped_and_gone_on_with(tmp_path: Path) -> None:
    request = Request(count=MANY, seed=SEED)
    with Catalog.open(tmp_path / "catalog.db") as catalog:
        for _ in synthesise(catalog, request, start(catalog, request)):
            pass
        names = catalog.names()
        began, used = time.perf_counter(), cpu_seconds()
        with watched_memory() as peak:
            with Host() as host, closing(check_workspace(catalog, names, host, workers=WORKERS)) as results:
                for done, _ in enumerate(results, 1):
                    if done == MANY // 2:
                        break
            kept = {name for name in names if catalog.check(name) is not None}
            with Host() as host:
                rest = list(check_workspace(catalog, names, host, workers=WORKERS))
        seconds, cpu = time.perf_counter() - began, cpu_seconds() - used
        began = time.perf_counter()
        with Host() as host:
            again = list(check_workspace(catalog, names, host, workers=WORKERS))
        kept_seconds = time.perf_counter() - began
    totals = summary(rest)
    findings = Counter({code: found["findings"] for code, found in totals["findings"].items()})
    print(
        f"\n{len(rest)} environments checked in {seconds:.0f} s ({cpu:.0f} s of CPU) with {WORKERS} workers: "
        f"{seconds / MANY:.2f} s an environment ({cpu / MANY:.2f} s of CPU); {totals['status']}; {dict(findings)}\n"
        f"stopped with {len(kept)} kept, gone on with {MANY - len(kept)}; all again from what is kept: "
        f"{kept_seconds:.1f} s\n"
        f"memory at its peak: {peak.own:.0f} MB for this process, {peak.together:.0f} MB with its workers"
    )
    assert MANY // 2 <= len(kept) <= MANY // 2 + 2 * WORKERS
    assert sorted(result.name for result in again) == sorted(names)
    assert totals["status"] == {"pass": MANY, "warn": 0, "fail": 0}
    assert peak.together < 2000
