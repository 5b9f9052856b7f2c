"""What tests of harnesses share: an installed one that is pretended, and a workspace."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.catalog import Catalog
from pipeline.workspace import Workspace
from train.harness import venvs
from train.harness.bfcl import CATEGORIES
from train.harness.known import harness

HERE = Path(__file__).parent
RECORDED = HERE / "recorded"
CHECKOUT = HERE / "checkout"

TASKS = {"simple": [f"simple_{n}" for n in range(4)], "irrelevance": ["irrelevance_0"]}
"""The tasks of the pretended BFCL."""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of harnesses, empty."""
    folder = tmp_path / "harnesses"
    monkeypatch.setenv(venvs.PLACE, str(folder))
    monkeypatch.delenv("AWM_MCP_UNIVERSE", raising=False)
    return folder


@pytest.fixture
def fake_bfcl(place: Path) -> Path:
    """A pretended BFCL as if it were installed; returns its packages."""
    folder = venvs.folder_of(harness("bfcl"))
    packages = folder / "lib" / "python3.11" / "site-packages"
    shutil.copytree(HERE / "fake_bfcl" / "bfcl_eval", packages / "bfcl_eval", ignore=shutil.ignore_patterns("*.pyc"))
    shutil.copy(HERE / "fake_bfcl" / "openai.py", packages)
    data = packages / "bfcl_eval" / "data"
    (data / "possible_answer").mkdir(parents=True)
    (data / "multi_turn_func_doc").mkdir()
    for name in ("gorilla_file_system", "math_api", "message_api", "posting_api", "ticket_api", "trading_bot"):
        (data / "multi_turn_func_doc" / f"{name}.json").write_text("{}\n")
    for name in ("travel_booking", "vehicle_control"):
        (data / "multi_turn_func_doc" / f"{name}.json").write_text("{}\n")
    for category in CATEGORIES:
        rows = [{"id": name, "question": [[]], "function": [{"name": "answer"}]} for name in TASKS.get(category, ())]
        (data / f"BFCL_v3_{category}.json").write_text("\n".join(map(json.dumps, rows)))
    _interpreter(folder, packages)
    _mark(folder, "bfcl")
    return packages


def _interpreter(folder: Path, packages: Path) -> None:
    """This interpreter, with the pretended packages first."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)


def _mark(folder: Path, name: str) -> None:
    (folder / venvs.MARKER).write_text(json.dumps({"version": harness(name).version, "megabytes": 1}))


@pytest.fixture
def fake_mcp_universe(place: Path) -> Path:
    """An installation of MCP-Universe as far as its readiness is looked at; returns its packages."""
    folder = venvs.folder_of(harness("mcp-universe"))
    packages = folder / "lib" / "python3.11" / "site-packages"
    configs = packages / "mcpuniverse" / "mcp" / "configs"
    configs.mkdir(parents=True)
    servers = {
        "echo": {"stdio": {"command": "python3"}},
        "google-search": {"stdio": {"command": "python3"}, "env": {"SERP_API_KEY": "{{SERP_API_KEY}}"}},
        "github": {"stdio": {"command": "docker"}, "env": {"TOKEN": "{{GITHUB_PERSONAL_ACCESS_TOKEN}}"}},
        "blender": {"stdio": {"command": "python3", "args": ["{{PORT}}"]}},
    }
    (configs / "server_list.json").write_text(json.dumps(servers))
    _interpreter(folder, packages)
    _mark(folder, "mcp-universe")
    return packages


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    folder = tmp_path / "workspace"
    folder.mkdir()
    Catalog.open(folder / "catalog.db").close()
    with Workspace.open(folder) as opened:
        yield opened


@pytest.fixture
def bare_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it but what a test puts there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(folder: Path, name: str, script: str) -> Path:
    """A shell script on a PATH."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
