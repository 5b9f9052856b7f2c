"""`awm-studio check`, as a script would use it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from curation.review import queue
from pipeline.catalog import Catalog
from pipeline.errors import UserError
from studio.cli import awm_studio
from tests.curation.audit.desk import SOLUTIONS, verifier
from tests.curation.audit.workspaces import put_desk
from tests.curation.checks.test_trajectories import BROKEN, FINE, awm_run


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    with Catalog.open(folder / "catalog.db") as catalog:
        put_desk(catalog, "desk", [verifier(0)], SOLUTIONS[:1])
    return folder


def check(workspace: Path, *arguments: str) -> Result:
    return CliRunner().invoke(awm_studio, ["check", *arguments, "--workspace", str(workspace)])


def test_a_check_is_a_run_with_progress_and_a_result(workspace: Path) -> None:
    assert check(workspace, "desk", "--again", "--fail-on", "never").exit_code == 0
    with Catalog.open(workspace / "catalog.db") as catalog:
        run = catalog.runs()[0]
        events = catalog.events(run=run.id)
    assert (run.kind, run.state, run.pid) == ("check", "done", None)
    assert [(event.scenario, event.data["done"], event.data["total"]) for event in events] == [("desk", 1, 1)]


def test_recorded_runs_decide_about_tasks(workspace: Path, tmp_path: Path) -> None:
    for number in range(2):
        awm_run(tmp_path / f"run_{number}", [BROKEN, FINE, BROKEN], name="Desk")
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "trajectory.json").write_text("{")
    asked = ["desk", "--trajectories", str(tmp_path)]
    result = check(workspace, *asked, "--json")
    document = json.loads(result.stdout)
    (task,) = document["trajectories"]["tasks"]
    assert (task["decision"], task["runs"], task["server_errors"]) == ("reject", 2, 4)
    assert document["trajectories"]["decisions"] == {"keep": 0, "review": 0, "reject": 1}
    assert [finding["code"] for finding in document["trajectories"]["half_written"]] == ["trajectory_unreadable"]
    assert "run_server_errors" in {finding["code"] for finding in document["environments"][0]["findings"]}
    assert (document["environments"][0]["status"], result.exit_code) == ("fail", 1)

    shown = check(workspace, *asked)
    assert re.search(r"desk +0 +reject +2 +2 +6 +0 +4 +0 +66\.7%", shown.stdout)
    assert "1 task: 0 to keep, 0 to review, 1 to reject" in shown.stderr
    assert "left out: " in shown.stderr

    with Catalog.open(workspace / "catalog.db") as catalog:
        about = {entry.item.code: entry.item.where for entry in queue(catalog, ["desk"])}
    assert about["run_server_errors"] == "runs: task 0"


def test_what_recorded_runs_say_is_kept_until_other_runs_say_otherwise(workspace: Path, tmp_path: Path) -> None:
    def codes(*words: str) -> set[str]:
        document = json.loads(check(workspace, "desk", *words, "--json").stdout)
        return {finding["code"] for finding in document["environments"][0]["findings"]}

    for name, calls in (("bad", [BROKEN, FINE, BROKEN]), ("good", [FINE, FINE])):
        for number in range(2):
            awm_run(tmp_path / name / f"run_{number}", calls, name="Desk")
    own = codes("--again")
    assert codes("--trajectories", str(tmp_path / "bad")) > own
    assert codes() > own
    assert codes("--trajectories", str(tmp_path / "good")) == own
    codes("--trajectories", str(tmp_path / "bad"))
    assert codes("--again") == own


def test_all_are_counted_by_kind_and_those_named_are_told_in_full(workspace: Path) -> None:
    counted = check(workspace, "--all", "--fail-on", "never")
    assert re.search(r"found +findings +environments", counted.stdout)
    assert "do: " not in counted.stdout
    assert "check ENV shows each finding" in counted.stderr
    assert "do: " in check(workspace, "desk", "--fail-on", "never").stdout


def test_a_folder_without_runs_is_said_before_any_work(workspace: Path, tmp_path: Path) -> None:
    result = check(workspace, "desk", "--trajectories", str(tmp_path))
    assert isinstance(result.exception, UserError)
    assert "holds no trajectory.json" in str(result.exception)


def test_an_empty_workspace_is_a_sentence(tmp_path: Path) -> None:
    Catalog.open(tmp_path / "catalog.db").close()
    result = check(tmp_path, "--all")
    assert isinstance(result.exception, UserError)
    assert "holds no environments" in str(result.exception)
