"""What the process boundary costs: workers, round trips, cached calls, verdicts."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from curation.importers import import_awm
from pipeline.catalog import Catalog
from pipeline.model import Mode, Verifier
from pipeline.runtime.arguments import sample_arguments
from pipeline.runtime.host import Host, HostedProgram, Instance
from tests.pipeline.runtime.small_programs import notebook

pytestmark = pytest.mark.benchmark


@pytest.fixture(scope="module")
def host() -> Generator[Host]:
    with Host() as started:
        started.build(notebook())
        yield started


@pytest.fixture(scope="module")
def program(host: Host) -> Generator[HostedProgram]:
    with host.program(notebook()) as loaded:
        yield loaded


def median_us(action: Callable[[], object], times: int) -> float:
    def once() -> float:
        began = time.perf_counter()
        action()
        return (time.perf_counter() - began) * 1e6

    return statistics.median(once() for _ in range(times))


def test_starting_and_ending_a_locked_down_worker(host: Host) -> None:
    figure = median_us(lambda: host._launcher.start().end(), 30)
    print(f"\na locked-down worker, started and ended: {figure / 1000:.1f} ms")
    assert figure < 100_000


def test_a_round_trip(program: HostedProgram) -> None:
    instance = program.instance()
    instance.call("add_note", {"text": "milk"})
    figure = median_us(lambda: program._ask({"op": "stats"}, timeout_s=5, read=lambda message: message), 2000)
    print(f"\na round trip: {figure:.0f} us")
    assert figure < 2000


def test_a_cached_call_costs_a_hundredth(host: Host, awm_real: Path, tmp_path: Path) -> None:
    with Catalog.open(tmp_path / "catalog.db") as catalog:
        import_awm(catalog, awm_real)
        environments = list(catalog.environments())
    for env in environments:
        with host.program(env, cache=False) as uncached, host.program(env) as cached:
            calls = [(tool.name, sample_arguments(tool.input_schema, cached.template, seed=0)) for tool in cached.tools]

            def all_calls(instance: Instance, calls: list[tuple[str, dict]] = calls) -> None:
                instance.reset()
                for call in calls:
                    instance.call(*call)

            miss_us = median_us(lambda program=uncached: all_calls(program.instance()), 15) / len(calls)
            all_calls(cached.instance())
            hit_us = median_us(lambda program=cached: all_calls(program.instance()), 300) / len(calls)
        print(f"\n{env.name}: {miss_us:.0f} us a call, cached {hit_us:.1f} us: {miss_us / hit_us:.0f} times")
        assert hit_us * 100 <= miss_us


def test_a_verdict(host: Host, program: HostedProgram) -> None:
    code = "def verify_task(a, b):\n    n = sqlite3.connect(b).execute('SELECT 1').fetchone()\n    return {'result': 'others'}"
    for what, text in {"in memory": code, "over files": f"import os\n{code}"}.items():
        verifier = Verifier(0, Mode.code, text)
        figure = median_us(lambda v=verifier: host.verify(v, program.template, program.template), 30)
        print(f"\na verdict {what}, its process included: {figure / 1000:.1f} ms")
