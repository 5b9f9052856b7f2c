"""Installing harnesses: apart, pinned, and never half."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from pipeline.errors import UserError
from tests.train.harness.conftest import program
from train.harness import venvs
from train.harness.known import HARNESSES, Harness, harness


@pytest.fixture
def fake_python(tmp_path: Path) -> Path:
    """An interpreter whose virtual environments have a pip of the test's."""
    script = f"""
case "$*" in
  *"-m venv"*) for last; do :; done; mkdir -p "$last/bin"; cp {tmp_path}/pip-python "$last/bin/python" ;;
  *) echo "3 12" ;;
esac"""
    return program(tmp_path, "fake-python", script)


PIP = """
case "$*" in
  *freeze*) printf 'bfcl_eval==2025.7.9\\nnumpy==1.26.4\\n' ;;
  *install*) echo "$*" > "$(dirname "$0")/asked"
    printf 'Collecting bfcl-eval==2025.7.9\\nCollecting numpy==1.26.4 (from bfcl-eval)\\n'
    printf 'Installing collected packages: numpy, bfcl-eval\\n' ;;
esac"""


def test_an_installation_is_apart_pinned_and_marked_last(fake_python: Path, tmp_path: Path, place: Path) -> None:
    program(tmp_path, "pip-python", PIP)
    known, steps = harness("bfcl"), list[str]()
    found = venvs.install(known, steps.append, python=str(fake_python))
    assert found.python == place / "bfcl-eval-2025.7.9" / "bin" / "python"
    assert found.facts["packages"] == ["bfcl_eval==2025.7.9", "numpy==1.26.4"]
    asked = (found.python.parent / "asked").read_text()
    assert f"--constraint {known.lock} bfcl-eval==2025.7.9 soundfile" in asked
    assert steps == [
        f"making a virtual environment with {fake_python}",
        "collecting bfcl-eval==2025.7.9 (package 1)",
        "collecting numpy==1.26.4 (package 2)",
        "installing 2 packages",
        "trying it",
    ]
    assert venvs.install(known, steps.append, python="nothing is asked for") == found
    (venvs.folder_of(known) / venvs.MARKER).unlink()
    assert venvs.installed(known) is None
    venvs.remove(known)
    assert not venvs.folder_of(known).exists()


@pytest.mark.parametrize("at", ["making", "collecting", "trying"])
def test_an_interrupted_installation_is_not_there(at: str, fake_python: Path, tmp_path: Path) -> None:
    def interrupted(step: str) -> None:
        if step.startswith(at):
            raise KeyboardInterrupt

    program(tmp_path, "pip-python", PIP)
    with pytest.raises(KeyboardInterrupt):
        venvs.install(harness("bfcl"), interrupted, python=str(fake_python))
    assert venvs.installed(harness("bfcl")) is None
    assert not venvs.folder_of(harness("bfcl")).exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("ERROR: No matching distribution found for bfcl-eval", "pip finds no package index that has it"),
        ("ERROR: Could not install packages: [Errno 28] No space left on device", "the disk is full at"),
        ("ERROR: Failed building wheel for mathutils", "Failed building wheel for mathutils"),
    ],
)
def test_pips_reasons_are_told(words: str, told: str, fake_python: Path, tmp_path: Path) -> None:
    program(tmp_path, "pip-python", f'echo "{words}"; exit 1')
    with pytest.raises(UserError, match=r"bfcl-eval==2025.7.9 cannot be installed") as raised:
        venvs.install(harness("bfcl"), lambda _: None, python=str(fake_python))
    assert told in str(raised.value)
    assert venvs.installed(harness("bfcl")) is None


def test_a_python_that_is_too_new_is_told(tmp_path: Path) -> None:
    newer = program(tmp_path, "python3.14", 'echo "3 14"')
    with pytest.raises(UserError, match=r"needs Python 3.11 to 3.12, and .* is Python 3.14: name another"):
        venvs.interpreter(harness("bfcl"), str(newer))


def test_where_there_is_no_fitting_python_the_one_to_install_is_named(
    bare_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(bare_path, "python3.12", "exit 1")  # as pyenv's shims do for a version that is not chosen
    monkeypatch.setattr(sys, "_base_executable", str(program(bare_path, "python3", 'echo "3 14"')), raising=False)
    with pytest.raises(UserError, match=r"needs Python 3.11 to 3.12; .* install python3.12"):
        venvs.interpreter(harness("bfcl"))


def test_the_newest_fitting_python_on_the_path_is_taken(bare_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_base_executable", str(program(bare_path, "python3", 'echo "3 14"')), raising=False)
    program(bare_path, "python3.11", 'echo "3 11"')
    assert venvs.interpreter(harness("bfcl")) == str(bare_path / "python3.11")


def test_a_disk_without_room_is_told_before_anything_is_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_python: Path
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=100_000_000))
    with pytest.raises(UserError, match=r"needs about 920 MB .* has 100 MB"):
        venvs.install(harness("bfcl"), lambda _: None, python=str(fake_python))


def test_a_second_installation_at_the_same_time_is_refused(place: Path, fake_python: Path) -> None:
    known = harness("bfcl")
    place.mkdir()
    with venvs._alone(venvs.folder_of(known)), pytest.raises(UserError, match="Another process installs"):
        venvs.install(known, lambda _: None, python=str(fake_python))


@pytest.mark.parametrize("marker", ["", "[]", '{"version": "2026.3.23"}'])
def test_a_marker_of_something_else_does_not_count(marker: str, fake_bfcl: Path) -> None:
    assert venvs.installed(harness("bfcl")) is not None
    (venvs.folder_of(harness("bfcl")) / venvs.MARKER).write_text(marker)
    assert venvs.installed(harness("bfcl")) is None


@pytest.mark.parametrize("known", HARNESSES, ids=lambda known: known.name)
def test_every_dependency_is_pinned_and_none_is_torch(known: Harness) -> None:
    pins = dict(line.split("==") for line in known.lock.read_text().split())
    assert pins[known.package.replace("-eval", "_eval")] == known.version
    assert not {"torch", "tensorflow"} & pins.keys()


def test_secrets_stay_out_of_installations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-real")
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror")
    environ = venvs._environment()
    assert "OPENAI_API_KEY" not in json.dumps(environ)
    assert environ["PIP_INDEX_URL"] == "https://mirror"
