"""Known answers for the audit: how many injected faults it finds, how many sound verifiers it accuses, what it costs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import psutil
import pytest

from curation.audit.environment import audit_environment
from curation.audit.records import EnvironmentAudit
from curation.estimates import rate
from pipeline.blueprints.faults import FAULTS, Injected, inject
from pipeline.blueprints.make import domain_names, environment
from pipeline.model import Environment
from pipeline.runtime.host import Host

pytestmark = pytest.mark.benchmark

SEED = 11
"""A seed that nothing was developed on."""
WORKERS = 2
FAULTY = ("loose", "strict", "broken")
DOMAINS_WITH_FAULTS = 10
"""Each has some 85 places for a fault; all domains would take a quarter of an hour."""


@contextmanager
def audits(environments: Sequence[Environment]) -> Generator[list[EnvironmentAudit]]:
    """The audits of environments, two at a time."""
    with Host() as host, ThreadPoolExecutor(WORKERS) as pool:
        yield list(pool.map(lambda one: audit_environment(one, host), environments))


def test_at_least_95_percent_of_injected_faults_are_found() -> None:
    names = domain_names()[:: max(1, len(domain_names()) // DOMAINS_WITH_FAULTS)]
    faulty: list[list[Injected]] = []
    environments = []
    for name in names:
        sound = environment(name, SEED, 0)
        found = [one for task in range(len(sound.tasks)) for kind in FAULTS if (one := inject(sound, kind, task))]
        faulty.append(found)
        environments.append(replace(sound, verifiers=tuple(one.verifier for one in found)))
    injected, seen, as_labelled = Counter[str](), Counter[str](), Counter[str]()
    with audits(environments) as results:
        for faults, result in zip(faulty, results, strict=True):
            for fault, audit in zip(faults, result.verifiers, strict=True):
                injected[fault.kind] += 1
                seen[fault.kind] += audit.verdict in FAULTY
                as_labelled[fault.kind] += audit.verdict == fault.leaning
                if audit.verdict not in FAULTY:
                    print(f"\nmissed: {fault.kind} in {result.name}, task {fault.verifier.task}: {audit.why}")
    print(f"\n{'kind of fault':<20}{'leaning':<9}{'injected':>9}{'found':>7}{'as labelled':>13}")
    for kind, count in injected.items():
        print(f"{kind:<20}{FAULTS[kind].leaning:<9}{count:>9}{seen[kind]:>7}{as_labelled[kind]:>13}")
    share = rate(seen.total(), injected.total())
    assert share is not None
    print(
        f"found {seen.total()} of {injected.total()} faults of {len(injected)} kinds in {len(names)} environments: "
        f"{share.estimate:.1%} (95 % interval {share.low:.1%} to {share.high:.1%})"
    )
    assert len(injected) >= 10
    assert share.estimate >= 0.95


def test_at_most_2_percent_of_sound_verifiers_are_accused() -> None:
    environments = [environment(name, SEED, 0) for name in domain_names()]
    process, began = psutil.Process(), time.perf_counter()
    verdicts: Counter[str] = Counter()
    trials = 0
    with audits(environments) as results:
        seconds = time.perf_counter() - began
        memory = process.memory_info().rss / 1e6
        for result in results:
            for one in result.verifiers:
                verdicts[one.verdict] += 1
                trials += sum(one.tried.values())
                if one.verdict in FAULTY:
                    print(f"\naccused: {result.name}, task {one.task}, {one.mode} mode: {one.why}")
    accused = sum(verdicts[word] for word in FAULTY)
    share = rate(accused, verdicts.total())
    assert share is not None
    each = seconds / len(environments)
    print(
        f"\naccused {accused} of {verdicts.total()} sound verifiers: {share.estimate:.2%} "
        f"(95 % interval {share.low:.2%} to {share.high:.2%}); trusted {verdicts['trusted']}, unproven {verdicts['unproven']}\n"
        f"{trials} trials in {seconds:.0f} s with {WORKERS} workers: {each:.1f} s an environment of 20 verifiers, so "
        f"1,000 in {each * 1000 / 3600:.1f} h (extrapolated); this process uses {memory:.0f} MB"
    )
    assert accused <= 0.02 * verdicts.total()
    assert verdicts["trusted"] >= 0.95 * verdicts.total()
