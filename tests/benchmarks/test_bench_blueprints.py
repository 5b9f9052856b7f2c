"""How quickly environments are made by rules, and what 1,000 of them come to when every one is built and proved."""

from __future__ import annotations

import resource
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean

import pytest

from pipeline.blueprints.make import blueprint, shipped_domain
from pipeline.blueprints.prove import prove
from pipeline.blueprints.synthesis import Made, Request, figures, planned, start, synthesise
from pipeline.catalog import Catalog
from tests.pipeline.blueprints.local_runner import LocalRunner

pytestmark = pytest.mark.benchmark

MANY = 1000
SEED = 7
WORKERS = 2
BATCH = 250
"""Environments proved by one pair of processes: the programs they load stay with them."""


def make_and_prove(wanted: tuple[str, int]) -> tuple[Made, Counter[str], list[str], float]:
    """Make one environment, build and load it, play its reference solutions, and let its verifiers judge."""
    began = time.process_time()
    domain, index = wanted
    made = blueprint(shipped_domain(domain), SEED, index)
    with tempfile.TemporaryDirectory(prefix="awm-bench-") as folder:
        findings = prove(made, LocalRunner(made.environment, Path(folder)), wrong_ways=False)
    kinds = Counter(task.kind for task in made.tasks)
    spent = time.process_time() - began
    return figures(made.environment, spent), kinds, [finding.message for finding in findings], spent


def test_generation_alone():
    for size in ("small", "paper"):
        wanted = list(planned(Request(count=200, seed=SEED, size=size)))
        for domain, _ in wanted:
            shipped_domain(domain)
        began, clock = time.process_time(), time.perf_counter()
        made = [figures(blueprint(shipped_domain(d), SEED, i, size).environment, 0) for d, i in wanted]
        spent, seconds = time.process_time() - began, time.perf_counter() - clock
        means = {key: round(fmean(getattr(m, key) for m in made), 1) for key in ("tables", "rows", "tools", "lines")}
        print(
            f"\n{size}: {len(made)} environments in {seconds:.1f} s ({spent:.1f} s of CPU), "
            f"{len(made) / spent:.0f} a CPU second; {means}"
        )


def test_into_a_catalog(tmp_path: Path):
    request = Request(count=240, seed=SEED)
    with Catalog.open(tmp_path / "catalog.db") as catalog:
        began, clock = time.process_time(), time.perf_counter()
        for _ in synthesise(catalog, request, start(catalog, request)):
            pass
        spent, seconds = time.process_time() - began, time.perf_counter() - clock
    size = (tmp_path / "catalog.db").stat().st_size / 1e6
    print(f"\n240 environments into a catalog: {seconds:.1f} s ({spent:.1f} s of CPU), {size:.0f} MB")


def test_a_thousand_made_built_and_proved():
    wanted = list(islice(planned(Request(count=MANY, seed=SEED)), MANY))
    clock = time.perf_counter()
    done = []
    for first in range(0, MANY, BATCH):
        with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
            done += pool.map(make_and_prove, wanted[first : first + BATCH], chunksize=5)
    seconds = time.perf_counter() - clock
    spent = sum(cpu for *_, cpu in done)
    kinds = sum((kinds for _, kinds, _, _ in done), Counter[str]())
    wrong = [message for _, _, messages, _ in done for message in messages]
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        f"\n{len(done)} environments of {len({made.domain for made, *_ in done})} domains made, built and proved on "
        f"{WORKERS} processes: {seconds:.0f} s ({spent:.0f} s of CPU, {spent / len(done) * 1000:.0f} ms each), "
        f"{len(done) / seconds:.1f} a second; largest process {memory:.0f} MB\n"
        f"tasks: {sum(kinds.values())} ({', '.join(f'{n} {kind}' for kind, n in kinds.most_common())})\n"
        f"wrong: {len(wrong)} {wrong[:3]}"
    )
    assert len({made.name for made, *_ in done}) == MANY
    assert not wrong
