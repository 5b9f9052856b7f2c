"""What harnesses wrote is read soberly: what got no answer is left out, and what is damaged has no number."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.train.harness.conftest import RECORDED
from tests.train.harness.scripted_agent import PASSES
from train.evaluate_report import Item
from train.harness import bfcl, mcp_universe, tau2
from train.harness.plan import Standing
from train.harness.result_files import Damaged

BFCL = {
    "simple": ["simple_0", "simple_1"],
    "parallel": ["parallel_0"],
    "irrelevance": ["irrelevance_0"],
    "multi_turn_base": ["multi_turn_base_0", "multi_turn_base_1"],
}
AIRLINE = {"airline": ["0", "1", "2", "3", "4"]}
ECHO = {"echo": ["echo/say_harbour.json", "echo/say_two_words.json"]}


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    return shutil.copytree(RECORDED, tmp_path / "recorded")


def passes(items: list[Item]) -> dict[str, bool]:
    return {item.id: all(item.passes) for item in items if item.passes}


def excluded(items: list[Item]) -> dict[str, dict[str, int]]:
    return {item.id: dict(item.excluded) for item in items if item.excluded}


@pytest.mark.parametrize(
    ("suite", "module", "wanted"),
    [("bfcl", bfcl, BFCL), ("tau2", tau2, AIRLINE), ("mcp-universe", mcp_universe, ECHO)],
)
def test_recorded_results_are_what_the_scripted_agent_did(
    suite: str, module: Any, wanted: dict[str, list[str]]
) -> None:
    items = module.items(RECORDED / suite, wanted)
    assert passes(items) == PASSES[suite]
    assert excluded(items) == {}


def test_bfcls_tasks_without_an_answer_are_left_out(recorded: Path) -> None:
    items = bfcl.items(recorded / "bfcl-refused", BFCL)
    assert excluded(items) == {"simple_1": {bfcl.LOST: 1}}
    assert passes(items) == {name: passed for name, passed in PASSES["bfcl"].items() if name != "simple_1"}


def test_bfcls_poison_is_seen_while_it_is_still_among_the_results(recorded: Path) -> None:
    root = recorded / "bfcl-refused"
    poison = (root / "lost.jsonl").read_text()
    with (root / "result" / bfcl.NAME / "BFCL_v3_simple_result.json").open("a") as file:
        file.write(poison)
    shutil.rmtree(root / "score")
    assert bfcl.progress(root, BFCL) == Standing(done=6, excluded=1)


def test_bfcls_results_are_not_judged_before_bfcl_has_judged_them(recorded: Path) -> None:
    shutil.rmtree(recorded / "bfcl" / "score")
    assert bfcl.items(recorded / "bfcl", BFCL) == []


def test_a_result_that_is_being_written_is_not_counted(recorded: Path) -> None:
    path = recorded / "bfcl" / "result" / bfcl.NAME / "BFCL_v3_simple_result.json"
    path.write_text(path.read_text()[:-20])
    assert bfcl.progress(recorded / "bfcl", {"simple": BFCL["simple"]}) == Standing(done=1)


def test_bfcls_scores_of_other_results_are_no_scores(recorded: Path) -> None:
    path = recorded / "bfcl" / "result" / bfcl.NAME / "BFCL_v3_simple_result.json"
    path.write_text(path.read_text().splitlines()[0] + "\n")
    with pytest.raises(Damaged, match="judges 2 tasks, 1 of them right, and there are 1 results"):
        bfcl.items(recorded / "bfcl", BFCL)


def test_a_nan_among_bfcls_scores_is_told_with_its_place(recorded: Path) -> None:
    path = recorded / "bfcl" / "score" / bfcl.NAME / "BFCL_v3_simple_score.json"
    path.write_text(path.read_text().replace('"accuracy": 0.5', '"accuracy": NaN'))
    with pytest.raises(Damaged, match=r"BFCL_v3_simple_score.json, line 1 is damaged \(NaN is not a result\)"):
        bfcl.items(recorded / "bfcl", BFCL)


def test_bfcls_overall_score_is_told_for_all_categories_only(recorded: Path) -> None:
    root = recorded / "bfcl"
    table = (root / "score" / "data_overall.csv").read_text()
    assert "18.61%" in table  # what BFCL says of six tasks: the categories that were not run count as 0
    assert bfcl.overall(root, BFCL) is None
    assert bfcl.overall(root, bfcl.CATEGORIES) == 0.1861
    (root / "score" / "data_overall.csv").write_text(table.replace("18.61%", "nan%"))
    with pytest.raises(Damaged, match="the overall score is nan"):
        bfcl.overall(root, bfcl.CATEGORIES)
    (root / "score" / "data_overall.csv").write_text("")
    with pytest.raises(Damaged, match="has no overall score"):
        bfcl.overall(root, bfcl.CATEGORIES)


def test_tau2s_skipped_simulations_are_left_out_and_not_failed(recorded: Path) -> None:
    items = tau2.items(recorded / "tau2-refused", AIRLINE)
    assert excluded(items) == {"airline/1": {tau2.SKIPPED: 1}}
    assert passes(items) == {name: passed for name, passed in PASSES["tau2"].items() if name != "airline/1"}
    assert tau2.progress(recorded / "tau2-refused", AIRLINE) == Standing(done=5, judged=4, passed=2, excluded=1)


def changed(recorded: Path, number: int, **fields: Any) -> Path:
    path = recorded / "tau2" / "results" / "airline.json"
    document = json.loads(path.read_text())
    document["simulations"][number] |= fields
    path.write_text(json.dumps(document))
    return recorded / "tau2"


def test_a_user_who_breaks_the_rules_is_not_the_agents_failure(recorded: Path) -> None:
    items = tau2.items(changed(recorded, 0, termination_reason="user_error"), AIRLINE)
    assert list(excluded(items).values()) == [{tau2.USER_BROKE_OFF: 1}]


@pytest.mark.parametrize("reward", [float("nan"), None, "1.0"])
def test_a_reward_that_is_no_number_is_told_and_not_counted(recorded: Path, reward: Any) -> None:
    with pytest.raises(Damaged, match=r"airline.json"):
        tau2.items(changed(recorded, 0, reward_info={"reward": reward}), AIRLINE)


def test_a_cut_file_of_tau2_is_told(recorded: Path) -> None:
    path = recorded / "tau2" / "results" / "airline.json"
    path.write_text(path.read_text()[:500])
    with pytest.raises(Damaged, match=r"airline.json is damaged"):
        tau2.items(recorded / "tau2", AIRLINE)


def test_tries_are_in_their_order_whatever_order_they_ended_in(recorded: Path) -> None:
    path = recorded / "tau2" / "results" / "airline.json"
    document = json.loads(path.read_text())
    first = next(each for each in document["simulations"] if each["task_id"] == "0")
    document["simulations"] = [
        first | {"trial": trial, "reward_info": {"reward": reward}} for trial, reward in ((2, 0.0), (0, 1.0), (1, 0.5))
    ]
    path.write_text(json.dumps(document))
    (item,) = tau2.items(recorded / "tau2", AIRLINE)
    assert item.passes == (True, False, False)


def evaluated(root: Path, *evaluations: dict[str, Any]) -> list[Item]:
    (root / "results").mkdir(exist_ok=True)
    row = {"task": "echo/say_harbour.json", "evaluations": list(evaluations)}
    (root / "results" / "echo.jsonl").write_text(json.dumps(row) + "\n")
    return mcp_universe.items(root, ECHO)


def test_a_task_of_mcp_universe_passes_where_all_evaluators_say_so(tmp_path: Path) -> None:
    good, bad = {"passed": True, "reason": "", "error": ""}, {"passed": False, "reason": "no", "error": ""}
    assert passes(evaluated(tmp_path, good, good)) == {"echo/say_harbour": True}
    assert passes(evaluated(tmp_path, good, bad)) == {"echo/say_harbour": False}


def test_an_evaluator_that_met_a_dead_service_excludes_its_task(tmp_path: Path) -> None:
    unasked = {"passed": False, "reason": "Execution error", "error": "requests.exceptions.ConnectionError: no route"}
    (item,) = evaluated(tmp_path, unasked)
    assert (item.passes, item.excluded) == ((), {mcp_universe.BROKEN: 1})


def test_an_answer_that_an_evaluator_cannot_take_is_the_agents_failure(tmp_path: Path) -> None:
    lacking = {"passed": False, "reason": "Execution error", "error": "KeyError: 'echoed'"}
    assert passes(evaluated(tmp_path, lacking)) == {"echo/say_harbour": False}


def test_an_evaluation_that_says_nothing_is_damage(tmp_path: Path) -> None:
    with pytest.raises(Damaged, match="neither passed nor failed"):
        evaluated(tmp_path, {"passed": None})
