"""A folder of the AWM release's size: how long and how much memory its import, its listing and its export take."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.release import write_release

pytestmark = pytest.mark.benchmark

MB = 1_000_000


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("release")
    size = write_release(folder / "awm")
    print(f"\nrelease: {size / MB:.0f} MB")
    yield folder
    shutil.rmtree(folder)


def measured(workspace: Path, *arguments: str) -> tuple[dict[str, Any], float, float]:
    """Run `awm-studio … --json` in a process of its own: its document, seconds, and peak memory in MB."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "studio.cli", *arguments, "--json", "--workspace", str(workspace)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout
        document = json.loads(child.stdout.read())
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - began
    assert child.returncode == 0
    print(f"{arguments[0]}: {seconds:.1f} s, {usage.ru_maxrss * 1024 / MB:.0f} MB at most")
    return document, seconds, usage.ru_maxrss * 1024 / MB


def test_a_release_is_imported_in_a_minute_and_500_mb(release: Path) -> None:
    report, seconds, memory = measured(release / "workspace", "import", str(release / "awm"))
    assert (report["environments"], report["tasks"]) == (1000, 10_000)
    assert report["verifiers"] == {"code": 10_000, "sql": 10_000}
    assert (report["duplicates"], report["malformed"], report["missing"]) == (486, [], [])
    assert seconds < 60
    assert memory < 500

    again, _, _ = measured(release / "workspace", "import", str(release / "awm"))
    assert again["changed"] == 0

    listed, seconds, _ = measured(release / "workspace", "list")
    assert len(listed["environments"]) == 1000
    assert seconds < 2

    _, _, memory = measured(release / "workspace", "export", str(release / "again"))
    assert memory < 500
