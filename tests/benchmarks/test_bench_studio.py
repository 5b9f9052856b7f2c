"""How quick the studio is: first paint, help, memory with many environments, keys under load, board updates.

Everything but the board runs the real program on a pseudo terminal.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from textual.app import App, ComposeResult

from studio.widgets.grid import Column, Grid
from tests.studio.test_terminal import Terminal
from tests.studio.worlds import fill, fill_many

pytestmark = pytest.mark.benchmark

WRITER = """
import sys, time
from pipeline.catalog import Catalog

with Catalog.open(sys.argv[1]) as catalog:
    run = catalog.add_run("synthesis", {})
    catalog.update_run(run, state="running")
    print("writing", flush=True)
    began, written = time.monotonic(), 0
    while True:
        catalog.add_event(run, "progress", {"done": written, "total": 100_000})
        written += 1
        time.sleep(max(0.0, began + written / 200 - time.monotonic()))
"""
"""Writes 200 events a second until it is killed."""


def studio_on(workspace: Path, config: Path, *, columns: int = 120, rows: int = 36) -> Terminal:
    command = [sys.executable, "-m", "studio.cli", "--workspace", str(workspace)]
    return Terminal(command, columns=columns, rows=rows, env={"AWM_CONFIG": str(config), "COLORFGBG": "15;0"})


def test_first_paint_and_first_list(tmp_path: Path) -> None:
    workspace = fill(tmp_path / "ws")
    paints, lists, cpu = [], [], []
    for _ in range(5):
        began = time.perf_counter()
        studio = studio_on(workspace, tmp_path / "config.toml")
        studio.read_until(lambda studio=studio: studio.shows("Environments"))
        paints.append(time.perf_counter() - began)
        cpu.append(sum(psutil.Process(studio.process.pid).cpu_times()[:2]))
        studio.read_until(lambda studio=studio: studio.shows("Airline"))
        lists.append(time.perf_counter() - began)
        studio.close()
    print(
        f"\nfirst paint {statistics.median(paints):.2f} s ({statistics.median(cpu):.2f} s of CPU), "
        f"list of environments {statistics.median(lists):.2f} s"
    )


def test_help() -> None:
    times = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "studio.cli", "--help"], capture_output=True, check=True)
        times.append(time.perf_counter() - began)
    print(f"\n--help {statistics.median(times):.2f} s")


@pytest.mark.parametrize("number", [4, 1_000, 10_000])
def test_memory(tmp_path: Path, number: int) -> None:
    workspace = fill_many(tmp_path / "ws", number)
    studio = studio_on(workspace, tmp_path / "config.toml")
    began = time.perf_counter()
    studio.read_until(lambda: studio.shows("Scenario 00000"))
    shown = time.perf_counter() - began
    memory = psutil.Process(studio.process.pid).memory_info().rss
    print(f"\n{number:,} environments: {memory / 1e6:.0f} MB, listed after {shown:.2f} s")
    studio.close()


@pytest.mark.parametrize("busy", [False, True])
def test_key_to_screen(tmp_path: Path, busy: bool) -> None:
    workspace = fill_many(tmp_path / "ws", 10_000)
    studio = studio_on(workspace, tmp_path / "config.toml")
    studio.read_until(lambda: studio.shows("Scenario 00000"))
    writer = None
    if busy:
        command = [sys.executable, "-c", WRITER, str(workspace / "catalog.db")]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
    times = []
    for number in range(200):
        end = time.monotonic() + random.uniform(0.05, 0.15)
        studio.read_until(lambda end=end: time.monotonic() > end)
        seen = len(studio.output)
        began = time.perf_counter()
        studio.type(b"j" if number % 40 < 39 else b"\x1b[H")
        studio.read_until(lambda seen=seen: len(studio.output) > seen)
        times.append((time.perf_counter() - began) * 1000)
    if writer is not None:
        writer.kill()
        writer.wait()
    studio.close()
    times.sort()
    load = "200 events/s" if busy else "nothing else"
    print(f"\nkey to screen, 10,000 environments, {load}: median {times[100]:.0f} ms, p99 {times[197]:.0f} ms")


def test_board_updates() -> None:
    """A grid of 1,000 rows of which 50 a second change, as a board of runs does."""
    rows = [[number, 0] for number in range(1_000)]

    class Board(App[None]):
        frames = 0

        def compose(self) -> ComposeResult:
            yield Grid(
                [
                    Column("name", "name", lambda row: f"scenario {row[0]}", flex=1),
                    Column("n", "n", lambda row: str(row[1])),
                ],
                rows,
            )

    async def run() -> tuple[float, float]:
        app = Board()
        async with app.run_test(size=(120, 36)) as pilot:
            grid = app.query_one(Grid)
            render, grid.render_line = grid.render_line, lambda y: count(render, y)
            drawn = 0

            def count(render, y):
                nonlocal drawn
                drawn += 1
                return render(y)

            began, cpu, changed = time.perf_counter(), time.process_time(), 0
            while time.perf_counter() - began < 4:
                row = random.randrange(34)
                rows[row][1] += 1
                grid.redraw(row)
                changed += 1
                await asyncio.sleep(0.02)
            await pilot.pause()
            return drawn / (time.perf_counter() - began), (time.process_time() - cpu) / (time.perf_counter() - began)

    lines, cpu = asyncio.run(run())
    print(f"\nboard: {lines:.0f} changed lines drawn a second of 50 asked for, {cpu:.0%} CPU")
