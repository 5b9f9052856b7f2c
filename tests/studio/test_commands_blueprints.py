"""`synth --offline` and `blueprint`: what they print, and their exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pipeline.errors import UserError
from pipeline.model import STAGES
from studio.cli import awm_studio
from tests.pipeline.blueprints.test_language import GOOD

Studio = Callable[..., Result]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


@pytest.fixture
def studio(workspace: Path) -> Studio:
    """Run `awm-studio` on the test's workspace in this process."""

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(awm_studio, ["--workspace", str(workspace), *arguments])

    return run


def test_synth_offline_has_the_keys_that_others_rely_on(studio: Studio):
    document = json.loads(studio("synth", "--offline", "--count", "3", "--seed", "7", "--json").stdout)
    assert document["made_by"] == "rules"
    assert document["stages"].keys() == STAGES.keys()
    for stage in document["stages"].values():
        assert stage.keys() == {"attempts", "first_try", "final", "tokens", "usd", "seconds"}
        assert (stage["attempts"], stage["first_try"], stage["tokens"], stage["usd"]) == (3, 1.0, 0, 0.0)
    assert document["means"].keys() == {"tables", "rows", "tools", "lines", "tokens"}
    assert document["means"]["tables"] == round(sum(e["tables"] for e in document["environments"]) / 3, 1)
    assert {environment["state"] for environment in document["environments"]} == {"done"}


def test_synth_offline_prints_sizes_and_where_they_come_from(studio: Studio):
    result = studio("synth", "--offline", "--count", "2", "--domain", "ledger")
    assert result.exit_code == 0
    assert result.stdout.count("ledger_") == 2
    assert "rows" in result.stdout
    assert "2 environments, made by rules from 1 domain" in result.stderr


def test_list_shows_the_origin_of_what_was_made(studio: Studio):
    studio("synth", "--offline", "--count", "2", "--domain", "farm")
    rows = json.loads(studio("list", "--json").stdout)["environments"]
    assert {(row["origin"], row["tasks"]) for row in rows} == {("blueprint", 10)}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--domain", "shops"), "There is no domain 'shops'"),
        (("--count", "0"), "0 is not in the range"),
        (("--seed", "-1"), "-1 is not in the range"),
        (("--size", "huge"), "'huge' is not one of"),
    ],
)
def test_bad_requests_are_said_before_a_workspace_is_made(
    studio: Studio, workspace: Path, arguments: tuple[str, ...], says: str
):
    result = studio("synth", "--offline", "--count", "1", *arguments)
    assert result.exit_code != 0
    assert says in (str(result.exception) if isinstance(result.exception, UserError) else result.stderr)
    assert not workspace.exists()


def test_blueprint_list_shows_the_shipped_domains(studio: Studio):
    domains = json.loads(studio("blueprint", "list", "--json").stdout)["domains"]
    assert len(domains) >= 24
    assert all(domain["tasks"] >= 7 for domain in domains)
    assert "ledger" in studio("blueprint", "list").stdout


def test_blueprint_check_proves_a_file_in_the_sandbox(studio: Studio, tmp_path: Path):
    result = studio("blueprint", "check", "court_docket", "--count", "1", "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert [environment["findings"] for environment in document["environments"]] == [[]]


def test_blueprint_check_says_what_does_not_hold_and_exits_with_1(studio: Studio, tmp_path: Path):
    file = tmp_path / "tea.yaml"
    without_tasks = re.sub(r"    ask: .*\n", "", GOOD[: GOOD.index("tasks:")])
    file.write_text(without_tasks)
    result = studio("blueprint", "check", str(file), "--count", "1")
    assert result.exit_code == 1
    assert "of 10 tasks could be made" in result.stdout


def test_blueprint_check_names_file_line_and_field_of_a_mistake_and_exits_with_2(workspace: Path, tmp_path: Path):
    file = tmp_path / "tea.yaml"
    file.write_text(GOOD.replace("chairs: int 2..6", "chairs: int 2.6"))
    done = subprocess.run(
        [sys.executable, "-m", "studio.cli", "blueprint", "check", str(file)],
        capture_output=True,
        text=True,
        env={**os.environ, "AWM_WORKSPACE": str(workspace)},
        check=False,
    )
    assert done.returncode == 2
    assert f"{file}:17: entities.seat|place.chairs: int needs a range" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00", b""])
def test_blueprint_check_refuses_what_is_no_domain_file(studio: Studio, tmp_path: Path, content: bytes | None):
    file = tmp_path / "tea.yaml"
    if content is not None:
        file.write_bytes(content)
    result = studio("blueprint", "check", str(file))
    assert isinstance(result.exception, UserError)
    assert str(file) in str(result.exception)
