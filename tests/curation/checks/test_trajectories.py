"""What recorded runs say of tasks: keep, review or reject, by stated rules, whatever is half-written among them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from curation.checks.trajectories import RULES, recorded_facts
from curation.recorded_runs import CameBack, came_back
from pipeline.errors import UserError

FINE = '{"id": 7, "title": "Lamp"}'
BROKEN = "Error calling add_note. Status code: 500. Response: Internal Server Error"
REFUSED = 'Error calling add_note. Status code: 404. Response: {"detail":"There is no such ticket."}'
NOTHING = '{"total": 0, "notes": []}'
LATE = "Error calling add_note. No answer within 10 seconds."
TASKS = {"help_desk": 10}
"""How many tasks the environments have that are asked about."""


def awm_run(folder: Path, shown: Sequence[str], *, name: str = "Help Desk", task: int = 0) -> Path:
    """A run folder as upstream's agent writes it."""
    steps: list[dict[str, Any]] = [
        {
            "iteration": number,
            "role": "assistant",
            "tool_calls": [{"name": "call_tool", "arguments": {"tool_name": "mcp_tool_add_note", "arguments": "{}"}}],
            "tool_response": {"tool_call_id": "c", "content": text},
        }
        for number, text in enumerate(shown)
    ]
    steps.append({"role": "assistant", "content": "Done.", "tool_calls": [], "is_final": True})
    folder.mkdir(parents=True)
    (folder / "trajectory.json").write_text(json.dumps({"scenario": name, "task_id": task, "trajectory": steps}))
    return folder


def our_run(ended: Sequence[tuple[int | None, str | None, str]], *, task: int = 0) -> str:
    """A line of our own records."""
    turns = [{"move": "call", "tool": "add_note", "status": s, "fault": f, "shown": shown} for s, f, shown in ended]
    return json.dumps({"environment": "help_desk", "task": task, "turns": [{"move": "list"}, *turns]}) + "\n"


@pytest.mark.parametrize(
    ("shown", "ended"),
    [
        (FINE, "ok"),
        ('{"success": false}', "ok"),
        ("[1, 2]", "ok"),
        ("Deleted.", "ok"),
        (NOTHING, "empty"),
        ("[]", "empty"),
        ("", "empty"),
        ("null", "empty"),
        (BROKEN, "server_error"),
        ("Error: Internal Server Error", "server_error"),
        (REFUSED, "refused"),
        ("Input validation error: 'body' is a required property", "refused"),
        ("Unknown tool: add_notes", "refused"),
        (LATE, "timeout"),
        ("Error: request timed out", "timeout"),
    ],
)
def test_how_a_call_ended_is_told_from_what_the_agent_was_shown(shown: str, ended: CameBack) -> None:
    assert came_back(shown) == ended


@pytest.mark.parametrize(
    ("runs", "decision", "troubles"),
    [
        pytest.param([[FINE] * 5], "keep", {}, id="nothing wrong"),
        pytest.param([[FINE, BROKEN, FINE, FINE, FINE, FINE]], "keep", {}, id="one error, left behind"),
        pytest.param([[FINE, REFUSED, REFUSED, REFUSED]] * 3, "keep", {}, id="the agent's own mistakes"),
        pytest.param([[BROKEN, BROKEN, FINE]], "review", {"run_server_errors": 1}, id="one troubled run alone"),
        pytest.param(
            [[BROKEN, BROKEN, FINE]] * 2 + [[FINE]], "reject", {"run_server_errors": 2}, id="most runs troubled"
        ),
        pytest.param(
            [[BROKEN, BROKEN, FINE]] * 2 + [[FINE]] * 2, "review", {"run_server_errors": 2}, id="half of the runs"
        ),
        pytest.param([[NOTHING] * 5] * 2, "reject", {"run_only_empty": 2}, id="nothing but empty replies"),
        pytest.param([[NOTHING] * 4 + [FINE]] * 2, "keep", {}, id="some empty replies"),
        pytest.param([[LATE, FINE]] * 2, "reject", {"run_timeouts": 2}, id="no answer in time"),
        pytest.param(
            [[BROKEN] * 2 + [FINE] * 3] * 2, "reject", {"run_server_errors": 2, "run_error_rate": 2}, id="rate"
        ),
        pytest.param([[BROKEN]] * 2, "reject", {"run_ends_in_error": 2}, id="errors that end runs"),
        pytest.param([[]], "review", {}, id="no calls at all"),
    ],
)
def test_several_runs_decide_by_stated_rules(
    tmp_path: Path, runs: list[list[str]], decision: str, troubles: dict[str, int]
) -> None:
    for number, shown in enumerate(runs):
        awm_run(tmp_path / f"run_{number}", shown)
    (task,) = recorded_facts(tmp_path, TASKS).tasks
    assert (task.decision, task.troubles) == (decision, troubles)
    assert task.decision in RULES


def test_error_rates_leave_the_agents_own_mistakes_out_and_come_with_an_interval(tmp_path: Path) -> None:
    awm_run(tmp_path / "a", [FINE, FINE, FINE, BROKEN, REFUSED, REFUSED])
    (task,) = recorded_facts(tmp_path, TASKS).tasks
    assert (task.calls, task.refused, task.rate) == (6, 2, 0.25)
    assert task.interval is not None
    assert task.interval[0] < 0.25 < task.interval[1]


def test_a_finding_names_the_run_the_tool_and_what_was_said(tmp_path: Path) -> None:
    for number in range(2):
        awm_run(tmp_path / f"run_{number}", [BROKEN] * 3 + [FINE])
    (finding,) = recorded_facts(tmp_path, TASKS).findings["help_desk"]
    assert (finding.code, finding.severity, finding.tasks) == ("run_server_errors", "error", (0,))
    assert "run_0" in finding.evidence
    assert "add_note (3)" in finding.evidence
    assert "Status code: 500" in finding.evidence


def test_our_own_records_say_themselves_how_calls_ended(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    lines = [
        our_run([(200, None, FINE), (500, "server_error", BROKEN), (None, "crash", "gone")]),
        our_run([(422, "invalid_arguments", "Input validation error"), (504, "timeout", LATE)], task=3),
    ]
    (tmp_path / "7" / "trajectories.jsonl").write_text("".join(lines))
    first, second = recorded_facts(tmp_path, TASKS).tasks
    assert (first.task, first.server_errors, first.refused) == (0, 2, 0)
    assert (second.task, second.timeouts, second.refused) == (3, 1, 1)


def test_half_written_files_are_findings_and_the_rest_goes_on(tmp_path: Path) -> None:
    awm_run(tmp_path / "whole", [FINE])
    for number, text in enumerate(('{"scenario": "Help De', "[]", '{"scenario": "Help Desk"}', "\xff")):
        (tmp_path / f"cut_{number}").mkdir()
        (tmp_path / f"cut_{number}" / "trajectory.json").write_text(text, "latin-1")
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "trajectories.jsonl").write_text(our_run([(200, None, FINE)]) + our_run([])[:30])
    facts = recorded_facts(tmp_path, TASKS)
    assert [(task.task, task.runs) for task in facts.tasks] == [(0, 2)]
    assert [Path(finding.where).parent.name for finding in facts.half_written] == [
        *(f"cut_{number}" for number in range(4)),
        "ours",
    ]


def test_steps_of_unknown_form_are_no_calls(tmp_path: Path) -> None:
    folder = awm_run(tmp_path / "odd", [FINE])
    document = json.loads((folder / "trajectory.json").read_text())
    document["trajectory"] += [None, 3, {"tool_calls": "none"}, {"tool_calls": 5}, {"tool_calls": [{"arguments": "{"}]}]
    (folder / "trajectory.json").write_text(json.dumps(document))
    (task,) = recorded_facts(tmp_path, TASKS).tasks
    assert task.calls == 1


def test_runs_of_other_environments_are_counted_and_left_out(tmp_path: Path) -> None:
    awm_run(tmp_path / "a", [FINE], name="Somewhere else")
    facts = recorded_facts(tmp_path, TASKS)
    assert (facts.tasks, dict(facts.elsewhere)) == ([], {"somewhere_else": 1})


def test_runs_of_tasks_that_are_not_there_are_told_and_judge_nothing(tmp_path: Path) -> None:
    (tmp_path / "trajectories.jsonl").write_text("".join(our_run([(500, "crash", "Error")], task=n) for n in (-1, 99)))
    facts = recorded_facts(tmp_path, TASKS)
    assert facts.tasks == []
    assert [finding.message[:20] for finding in facts.half_written] == ["it is about task -1 ", "it is about task 99 "]


def test_numbers_of_tasks_that_are_none_are_told(tmp_path: Path) -> None:
    rows = [f'{{"environment": "help_desk", "task": {task}, "turns": []}}' for task in ("1e999", '"0"', "null")]
    (tmp_path / "trajectories.jsonl").write_text("\n".join([*rows, '{"environment": 5, "task": 0, "turns": []}']))
    facts = recorded_facts(tmp_path, TASKS)
    assert facts.tasks == []
    assert len(facts.half_written) == 4


def test_a_folder_without_runs_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no trajectory\.json"):
        recorded_facts(tmp_path, {})
    with pytest.raises(UserError, match="is not a folder"):
        recorded_facts(tmp_path / "nowhere", {})
