"""What works without the optional parts of an installation: everything that does not compute with vectors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from curation.extras import EXTRAS

HEAVY = [module for modules in EXTRAS.values() for module in modules] + ["torch", "transformers", "trl"]

WITHOUT_EXTRAS = f"""
import sys
for module in {HEAVY!r}:
    sys.modules[module] = None  # importing it raises ImportError
from studio.cli import main
sys.argv = ["awm-studio", *sys.argv[1:]]
main()
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("light") / "workspace")
    made = run("synth", "--offline", "--count", "1", "--domain", "clinic", "-w", folder)
    assert made.returncode == 0, made.stderr
    return folder


@pytest.mark.parametrize("layout", ["awm", "mcp"])
def test_exports_that_need_no_arrays(workspace: str, tmp_path: Path, layout: str) -> None:
    done = run("export", str(tmp_path / "out"), "--format", layout, "-w", workspace)
    assert done.returncode == 0, done.stderr
    assert any((tmp_path / "out").iterdir())


@pytest.mark.parametrize("command", [["diversity"], ["subset", "mix", "--budget", "1"]])
def test_what_needs_them_says_how_to_get_them(workspace: str, command: list[str]) -> None:
    refused = run(*command, "-w", workspace)
    assert refused.returncode == 2
    assert "make install-all" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize("command", [["list"], ["subset"], ["doctor"], ["check", "--all"], ["--help"]])
def test_the_rest_does_not_miss_them(workspace: str, command: list[str]) -> None:
    done = run(*command, "-w", workspace) if command != ["--help"] else run(*command)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
