"""What harnesses have written down of a task, read from results that real runs left."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pipeline.errors import UserError
from train.evaluate_records import harness_records, messages_of

RECORDED = Path(__file__).parent / "harness" / "recorded"


def run_of(suite: str, folder: Path) -> Path:
    shutil.copytree(RECORDED / suite, folder / "harness")
    return folder


def test_a_bfcl_task_has_its_result_and_where_it_failed_its_judgement(tmp_path: Path) -> None:
    folder = run_of("bfcl", tmp_path)
    (result, *_) = harness_records(folder, "multi_turn_base_1")
    assert result[0] == "result/awm-studio/BFCL_v3_multi_turn_base_result.json"
    assert result[1]["id"] == "multi_turn_base_1"
    places = [place for place, _ in harness_records(folder, "multi_turn_base_1")]
    assert places[1:] == ["score/awm-studio/BFCL_v3_multi_turn_base_score.json"]
    assert harness_records(folder, "multi_turn_base_99") == []


def test_a_tau2_task_has_its_conversation(tmp_path: Path) -> None:
    folder = run_of("tau2", tmp_path)
    path = folder / "harness" / "results" / "airline.json"
    document = json.loads(path.read_text())
    call = {"id": "c", "name": "get_user", "arguments": {"id": 7}, "requestor": "assistant"}
    document["simulations"][0]["messages"] = [  # which were not recorded
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    path.write_text(json.dumps(document, indent=1))
    ((place, record),) = harness_records(folder, "airline/0")
    assert place == "results/airline.json"
    assert messages_of(record) == [("user", "Hello."), ("assistant", '→ get_user({"id": 7})')]


def test_an_mcp_universe_task_is_found_by_its_files_name(tmp_path: Path) -> None:
    folder = run_of("mcp-universe", tmp_path)
    line = (folder / "harness" / "results" / "echo.jsonl").read_text().splitlines()[0]
    name = Path(json.loads(line)["task"]).stem
    assert [record["task"] for _, record in harness_records(folder, f"echo/{name}")] == [json.loads(line)["task"]]


def test_what_is_damaged_is_told(tmp_path: Path) -> None:
    folder = run_of("bfcl", tmp_path)
    path = folder / "harness" / "result" / "awm-studio" / "BFCL_v3_simple_result.json"
    path.write_text('{"id": "simple_0", "latency": NaN}\n')
    with pytest.raises(UserError, match="line 1 is damaged"):
        harness_records(folder, "simple_0")


def test_a_run_without_results_has_no_records(tmp_path: Path) -> None:
    assert harness_records(tmp_path, "simple_0") == []
