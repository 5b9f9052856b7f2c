"""Ablations that ask a model: who judges, and whether a model can stand in for the environment."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pipeline.errors import UserError
from pipeline.workspace import Workspace
from studio.cli import awm_studio
from tests.llm_server import Answer, Say, Server, Status
from tests.train.held_out import SUBSET, profile, workspace_with_held_out
from tests.train.pantry import fill, pantry
from train import rollout_run
from train.ablate import Answer as Found
from train.ablate_cases import cases_of_run, cases_of_solutions
from train.ablate_simulator import ablate_simulator, apply_changes, rows_wrong
from train.ablate_verification import ablate_verification, kappa
from train.files import recorded
from train.rollout import Plan

pytestmark = pytest.mark.usefixtures("one_host")


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(fill(tmp_path / "workspace", pantry())) as opened:
        yield opened


def table(answer: Found, heading: str) -> dict[Any, list[Any]]:
    (found,) = (each for each in answer.tables if each.heading == heading)
    return {row[0]: list(row[1:]) for row in found.rows}


# --- verification


def judge(body: dict[str, Any]) -> Answer:
    """Says complete where something was changed or answered; with evidence it goes by the verifier."""
    document = json.loads(body["messages"][1]["content"])
    evidence = document.get("evidence")
    if evidence is None:
        outcome = "complete"
    else:
        seen = evidence["verifier"]
        outcome = "complete" if seen.get("rice") == 5 or seen.get("verdict") == "complete" else "agent_error"
    return Say(json.dumps({"reason": "because", "outcome": outcome}), tokens=(100, 10))


def rolled(workspace: Workspace) -> list[Any]:
    """Six rollouts: two tasks and one whose verifier is broken, each done right (or not at all) and not."""
    found: list[Any] = []
    for actor, tasks in (("reference", [0, 1]), ("noop", [0, 1, 2])):
        plan = Plan(actor=actor, tasks=[("pantry", task) for task in tasks])  # ty: ignore[invalid-argument-type]
        run = rollout_run.create(workspace, plan)
        rollout_run.work(workspace, run)
        found += recorded(workspace.runs / str(run.id))
    return found


def test_three_judges_say_what_they_accept_and_how_alike_they_are(workspace: Workspace) -> None:
    rollouts = rolled(workspace)
    with Server(judge) as server:
        answer = ablate_verification(workspace, rollouts, profile(server))
        asked = len(server.requests)
        again = ablate_verification(workspace, rollouts, profile(server))
        assert len(server.requests) == asked  # judgements are kept
    assert again.tables == answer.tables
    assert answer.state == "done"
    assert answer.n == {"rollouts": 5, "tasks": 3, "left out": 0}
    methods = table(answer, "Methods")
    assert methods["code alone"][0] == 4  # the broken verifier judges nothing
    assert methods["code alone"][1].startswith("0.500 (")
    assert methods["LLM alone"][1].startswith("1.000 (")
    assert [row[2] for row in methods.values()] == [1, 0, 1]  # blocked tasks
    assert methods["code alone"][3] is None
    assert methods["LLM alone"][3:5] == [500, 50]
    agreement = table(answer, "Agreement")
    assert agreement["code alone / LLM with the code's evidence"][0] == 4
    assert agreement["code alone / LLM with the code's evidence"][2] == 1.0
    assert agreement["code alone / LLM alone"][2] == 0.0
    assert "Cohen's kappa" in answer.markdown("verification")


def test_judgements_that_a_server_failed_are_missing_and_not_rejections(workspace: Workspace) -> None:
    rollouts = rolled(workspace)[:2]
    with Server([Status(404, "gone")]) as server:
        answer = ablate_verification(workspace, rollouts, profile(server))
    assert (answer.state, "judgements are missing" in answer.why) == ("stopped", True)
    assert table(answer, "Methods")["LLM alone"][:3] == [0, None, 0]


def test_kappa_is_agreement_beyond_chance() -> None:
    assert kappa([(True, True), (False, False)]) == 1.0
    assert kappa([(True, True), (True, False), (False, True), (False, False)]) == 0.0
    assert kappa([(True, True)]) is None
    assert kappa([]) is None


# --- simulator


def imagine(mistaken: bool) -> Callable[[dict[str, Any]], Answer]:
    """A model that imagines the pantry, rightly or with a write that it forgets."""

    def answer(body: dict[str, Any]) -> Answer:
        told = json.loads(body["messages"][1]["content"].partition("\n\nReply with one JSON")[0])
        rows, call = told["rows"]["items"], told["call"]
        arguments = call["arguments"]
        if call["operation"] == "list_items":
            name = arguments.get("name")
            return reply(200, [row for row in rows if name in (None, row["name"])], [])
        (row,) = (row for row in rows if row["id"] == arguments["item_id"])
        new = {**row, "amount": arguments["amount"]}
        return reply(200, new, [] if mistaken else [{"table": "items", "before": row, "after": new}])

    return answer


def reply(status: int, body: Any, changes: list[Any]) -> Say:
    return Say(json.dumps({"status": status, "body": body, "changes": changes}), tokens=(400, 40))


def test_a_model_that_imagines_rightly_keeps_its_state_right(workspace: Workspace) -> None:
    cases = cases_of_solutions(workspace, None, ["pantry"])
    with Server(imagine(mistaken=False)) as server:
        answer = ablate_simulator(workspace, cases, profile(server))
    assert answer.n == {"tasks": 2, "calls": 3, "calls that write": 1, "tasks left out": 0}
    beside = table(answer, "Side by side")
    assert beside["state right after a call"][1].startswith("1.000 (")
    assert beside["body right"][1].startswith("1.000 (")
    assert beside["tokens a step, mean"] == [0, 440]
    assert beside["usd a step, mean"][1] is None  # no price is known
    assert beside["milliseconds a step, median"][0] > 0


def test_a_write_that_it_forgets_is_a_wrong_row_from_then_on(workspace: Workspace) -> None:
    cases = cases_of_solutions(workspace, None, ["pantry"])
    with Server(imagine(mistaken=True)) as server:
        answer = ablate_simulator(workspace, cases, profile(server))
    beside = table(answer, "Side by side")
    assert beside["state right after a call that writes"][1].startswith("0.000 (")
    assert beside["tasks whose state is right throughout"][1].startswith("0.500 (")
    assert beside["rows wrong after the last call, mean"][1] == 0.5
    assert [step["rows_wrong"] for step in answer.data["steps"]] == [0, 1, 0]
    assert [step["body"] for step in answer.data["steps"]] == [True, True, True]


def test_recorded_calls_are_tried_too(workspace: Workspace) -> None:
    rolled(workspace)
    assert sorted(len(case.calls) for case in cases_of_run(workspace, 1)) == [1, 2]
    with pytest.raises(UserError, match="cannot be read"):
        cases_of_run(workspace, 9)


def test_a_reply_that_cannot_be_read_is_wrong_and_changes_nothing(workspace: Workspace) -> None:
    cases = cases_of_solutions(workspace, None, ["pantry"])[:1]
    with Server([Say("I would rather not.")]) as server:
        answer = ablate_simulator(workspace, cases, profile(server))
    assert [(step["status"], step["rows_wrong"]) for step in answer.data["steps"]] == [(False, 0), (False, 1)]


def test_a_simulator_whose_server_is_gone_has_no_figures(workspace: Workspace) -> None:
    cases = cases_of_solutions(workspace, None, ["pantry"])
    with Server([Status(404, "gone")]) as server:
        answer = ablate_simulator(workspace, cases, profile(server))
    assert (answer.state, answer.n["tasks"]) == ("stopped", 0)
    assert "knows no model" in answer.why
    assert table(answer, "Side by side")["state right after a call"][1] is None


def test_changes_are_applied_by_whole_rows_or_by_key_and_nonsense_is_not() -> None:
    rows = {"items": [{"id": 1, "n": 1}, {"id": 2, "n": 2}]}
    assert apply_changes(rows, [{"table": "items", "before": {"id": 1}, "after": {"n": 5}}]) == {
        "items": [{"id": 2, "n": 2}, {"id": 1, "n": 5}]
    }
    assert apply_changes(rows, [{"table": "items", "before": {"id": 2, "n": 9}, "after": None}]) == {
        "items": [{"id": 1, "n": 1}]
    }
    assert apply_changes(rows, [None, {"table": 3}, {"table": "items", "before": "x", "after": 4}]) == rows
    assert apply_changes(rows, "nothing") == rows


def test_a_row_that_is_wrong_counts_once() -> None:
    real = {"items": [{"id": 1, "n": 1}, {"id": 2, "n": 2}]}
    assert rows_wrong({"items": [{"n": 1.0, "id": 1}, {"id": 2, "n": 3}]}, real) == 1
    assert rows_wrong({}, real) == 2
    assert rows_wrong(real, real) == 0


# --- the commands


def test_a_command_writes_its_report(tmp_path: Path) -> None:
    folder = workspace_with_held_out(tmp_path / "w", ("pantry0",))
    with Server(imagine(mistaken=True)) as server:
        words = ["simulator", "--subset", SUBSET, "--model", "m", "--base-url", server.url, "--json"]
        result = CliRunner().invoke(awm_studio, ["-w", str(folder), "ablate", *words], catch_exceptions=False)
    document = json.loads(result.stdout)
    assert (result.exit_code, document["state"], document["n"]["tasks"]) == (0, "done", 2)
    place = folder / "runs" / str(document["run"])
    assert json.loads((place / "report.json").read_bytes())["n"] == document["n"]
    assert "| state right after a call | all, by definition |" in (place / "report.md").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("verification",), "Name a run of rollouts"),
        (("verification", "--run", "7", "--model", "m"), "There is no .*runs/7"),
        (("simulator", "--model", "m"), "Say which calls"),
        (("history",), "Say what to train on"),
        (("history", "--subset", "nothing"), "no subset 'nothing'"),
        (("scaling", "--subset", SUBSET, "--preset", "huge"), "no preset 'huge'"),
        (("scaling", "--resume", "3"), "no ablation scaling with the number 3"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    folder = workspace_with_held_out(tmp_path / "w", ("pantry0",))
    with pytest.raises(UserError, match=said):
        CliRunner().invoke(awm_studio, ["-w", str(folder), "ablate", *words], catch_exceptions=False)
