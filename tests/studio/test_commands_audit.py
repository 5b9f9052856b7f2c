"""`awm-studio audit`, as a script would use it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.model import Author, AuthorKind, Part
from studio.cli import awm_studio
from tests.curation.audit.desk import SOLUTIONS, sql_verifier, verifier
from tests.curation.audit.workspaces import put_desk

LOOSE = verifier(0, '    good = rows(final, TICKETS)[0][2] == "closed"\n')
Command = Callable[..., tuple[int, Any]]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    with Catalog.open(folder / "catalog.db") as catalog:
        put_desk(catalog, "sound_desk", [verifier(0)], SOLUTIONS[:1])
        put_desk(catalog, "loose_desk", [LOOSE, verifier(1)], SOLUTIONS[:1])
        catalog.put("bare", Part.tasks, "[]", author=Author(AuthorKind.person, "test"))
    return folder


@pytest.fixture
def command(workspace: Path) -> Command:
    """Runs the command with --json; gives its exit code and document."""

    def run(*arguments: str) -> tuple[int, Any]:
        asked = ["audit", *arguments, "--json", "--workspace", str(workspace)]
        result = CliRunner().invoke(awm_studio, asked)
        if isinstance(result.exception, UserError):
            raise result.exception
        return result.exit_code, json.loads(result.stdout)

    return run


def test_the_document_has_a_verdict_its_rates_and_its_evidence_for_every_verifier(command: Command) -> None:
    code, document = command("--all")
    assert code == 1
    assert set(document) >= {"verifiers", "by_category", "summary"}
    by_name = {(row["name"], row["task"], row["mode"]): row for row in document["verifiers"]}
    assert {key: row["verdict"] for key, row in by_name.items()} == {
        ("sound_desk", 0, "code"): "trusted",
        ("loose_desk", 0, "code"): "loose",
        ("loose_desk", 1, "code"): "unproven",
    }
    loose = by_name["loose_desk", 0, "code"]
    assert loose["false_accepts"]["accepted"] > 0
    assert loose["false_accepts"]["low"] < loose["false_accepts"]["accepted"] / loose["false_accepts"]["tried"]
    assert loose["false_rejects"] == {"tried": 5, "rejected": 0, "low": 0.0, "high": 0.4345}
    assert {f["code"] for f in loose["findings"]} >= {"accepts_too_many"}
    assert document["summary"]["verifiers"] == 3


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("sound_desk",), 0),
        (("Sound Desk",), 0),
        (("bare",), 0),
        (("loose_desk",), 1),
        (("loose_desk", "--fail-on", "never"), 0),
        (("sound_desk", "--fail-on", "unproven"), 0),
    ],
)
def test_the_exit_code_says_whether_a_verifier_is_at_fault(
    command: Command, arguments: tuple[str, ...], code: int
) -> None:
    assert command(*arguments)[0] == code


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name the environments"),
        (("sound_desk", "--all"), "name the environments"),
        (("nobody",), "There is no environment 'nobody'"),
        (("sound_desk", "--report", "nowhere/out.html"), "there is no folder"),
        (("sound_desk", "--trajectories", "nowhere"), "is not a folder"),
        (("sound_desk", "--base-url", "http://localhost:1/v1"), "--solver"),
        (("sound_desk", "--solver", "m", "--base-url", "nonsense"), "not an http"),
    ],
)
def test_what_cannot_be_done_is_said_before_any_work(command: Command, arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(UserError, match=words):
        command(*arguments)


def test_an_empty_workspace_is_a_sentence(tmp_path: Path) -> None:
    Catalog.open(tmp_path / "catalog.db").close()
    result = CliRunner().invoke(awm_studio, ["audit", "--all", "--workspace", str(tmp_path)])
    assert isinstance(result.exception, UserError)
    assert "holds no environments" in str(result.exception)


def test_reports_are_written_beside_the_document(command: Command, tmp_path: Path) -> None:
    page, text = tmp_path / "out.html", tmp_path / "out.md"
    command("--all", "--report", str(page), "--report", str(text))
    assert "loose_desk" in page.read_text("utf-8")
    assert "loose_desk" in text.read_text("utf-8")


def test_people_see_what_was_accepted_and_what_to_do(workspace: Path) -> None:
    result = CliRunner().invoke(awm_studio, ["audit", "loose_desk", "--workspace", str(workspace)])
    shown = " ".join(result.stdout.split())
    assert "loose_desk task 0, code mode: loose" in shown
    assert "is changed as well → complete" in shown
    assert "do: make it count" in shown
    assert "2 verifiers" in result.stderr


def test_a_solver_that_is_down_is_a_sentence_and_the_audit_goes_on(command: Command, workspace: Path) -> None:
    asked = ["audit", "loose_desk", "--solver", "m", "--base-url", "http://127.0.0.1:9/v1", "--tries", "2"]
    config = workspace / "config.toml"
    config.write_text('[profiles.default]\nmodel = "m"\napi_key_env = ""\nretries = 0\n')
    result = CliRunner(env={"AWM_CONFIG": str(config)}).invoke(
        awm_studio, [*asked, "--json", "--workspace", str(workspace)]
    )
    assert "The solver was stopped" in result.stderr
    assert json.loads(result.stdout)["summary"]["verifiers"] == 2


def test_guards_are_put_into_loose_verifiers_and_audited(tmp_path: Path) -> None:
    with Catalog.open(tmp_path / "catalog.db") as catalog:
        put_desk(catalog, "loose_desk", [LOOSE, verifier(1)], SOLUTIONS[:1])
    result = CliRunner().invoke(awm_studio, ["audit", "loose_desk", "--guard", "--json", "--workspace", str(tmp_path)])
    assert "guards put into 1 verifier of 1 environment" in result.stderr
    verdicts = {row["task"]: row["verdict"] for row in json.loads(result.stdout)["verifiers"]}
    assert verdicts == {0: "trusted", 1: "unproven"}
    assert result.exit_code == 0


def test_a_judge_that_is_down_is_a_sentence_and_the_audit_goes_on(tmp_path: Path) -> None:
    evidence = sql_verifier(0)
    evidence = replace(evidence, code=evidence.code.replace('{"holds": good}', '{"as_asked": good}'))
    with Catalog.open(tmp_path / "catalog.db") as catalog:
        put_desk(catalog, "desk", [evidence], SOLUTIONS[:1])
    config = tmp_path / "config.toml"
    config.write_text('[profiles.default]\nmodel = "m"\napi_key_env = ""\nretries = 0\n')
    asked = ["audit", "desk", "--judge", "m", "--base-url", "http://127.0.0.1:9/v1", "--json"]
    result = CliRunner(env={"AWM_CONFIG": str(config)}).invoke(awm_studio, [*asked, "--workspace", str(tmp_path)])
    assert "The judge was stopped" in result.stderr
    assert json.loads(result.stdout)["verifiers"][0]["why"] == "its evidence needs a judge"


def test_a_judge_with_nothing_to_judge_is_told(workspace: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[profiles.default]\nmodel = "m"\napi_key_env = ""\n')
    asked = ["audit", "sound_desk", "--judge", "m", "--workspace", str(workspace)]
    result = CliRunner(env={"AWM_CONFIG": str(config)}).invoke(awm_studio, asked)
    assert "there was nothing for the judge to judge" in result.stderr
