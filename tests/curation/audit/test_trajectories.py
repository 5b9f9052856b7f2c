"""Trajectories that were judged complete are known solutions; whatever else lies in the folder does no harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from curation.audit.environment import audit_environment
from curation.audit.states import play
from curation.audit.trajectories import find_trajectories
from pipeline.errors import UserError
from pipeline.model import DEFAULT_NOW
from pipeline.runtime.host import Host
from tests.curation.audit.desk import DESK, SOLUTIONS, desk, verifier
from tests.curation.audit.runs import write_run


@pytest.fixture(scope="module")
def states(host: Host) -> tuple[bytes, bytes]:
    """The desk before and after ticket T-11 was closed."""
    with host.program(DESK) as program:
        return program.template, play(program, SOLUTIONS[0].calls).final


@pytest.mark.parametrize(
    ("verify", "mode", "ours", "judge"),
    [
        (None, "code", None, "its code-mode verifier"),
        (
            {"reward_type": "incomplete", "llm_judge": {"classification": "complete"}},
            "sql",
            None,
            "its sql-mode verifier",
        ),
        ({}, "code", {"reward": {"outcome": "complete", "verifier": {"mode": "code"}}}, "its code-mode verifier"),
        ({}, "code", {"reward": {"outcome": "complete", "verifier": {}}}, "a judge"),
        ({"reward_type": "others"}, "code", None, None),
        ({"reward_type": "incomplete", "llm_judge": {"classification": "agent_error"}}, "sql", None, None),
        ({}, "code", {"reward": {"outcome": "partial"}}, None),
        ({}, "code", None, None),
    ],
)
def test_only_runs_that_were_judged_complete_are_known_solutions(
    tmp_path: Path, states: tuple[bytes, bytes], verify, mode: str, ours, judge: str | None
) -> None:
    write_run(tmp_path / "desk" / "task_0", *states, verify=verify, mode=mode, ours=ours)
    found = find_trajectories(tmp_path)
    assert [run.judge for run in found.of("desk")] == ([judge] if judge else [])
    assert found.not_complete == (judge is None)


def test_a_run_brings_its_databases_its_calls_and_its_last_words(tmp_path: Path, states: tuple[bytes, bytes]) -> None:
    write_run(tmp_path / "task_0", *states, answer="It is closed.", calls=SOLUTIONS[0].calls)
    (run,) = find_trajectories(tmp_path).of("desk")
    known = run.known(DEFAULT_NOW)
    assert (known.initial, known.final) == states
    assert (known.task, known.calls, known.answer, known.asks) == (0, SOLUTIONS[0].calls, "It is closed.", False)


def test_the_last_words_of_a_run_that_changed_nothing_are_its_solution(
    tmp_path: Path, states: tuple[bytes, bytes]
) -> None:
    write_run(tmp_path / "task_2", states[0], states[0], task=2, answer="2")
    (run,) = find_trajectories(tmp_path).of("desk")
    assert run.known(DEFAULT_NOW).asks


def test_a_verifier_is_tried_on_what_a_trajectory_did(tmp_path: Path, host: Host, states: tuple[bytes, bytes]) -> None:
    write_run(tmp_path / "task_0", *states, calls=SOLUTIONS[0].calls)
    known = [run.known(DEFAULT_NOW) for run in find_trajectories(tmp_path).of("desk")]
    loose = verifier(0, '    good = rows(final, TICKETS)[0][2] == "closed"\n')
    sound, found = audit_environment(desk(verifier(0), loose, solutions=()), host, recorded=known).verifiers
    assert (sound.verdict, found.verdict) == ("trusted", "loose")
    assert sound.solutions == ("trajectory task_0, judged complete by its code-mode verifier",)
    assert (sound.category, sound.steps) == ("write", 2)


HALF_WRITTEN = {
    "an empty trajectory": ("trajectory.json", b""),
    "a cut trajectory": ("trajectory.json", b'{"scenario": "desk", "task_id": 0, "messages": [{"ro'),
    "a list": ("trajectory.json", b"[]"),
    "no scenario": ("trajectory.json", b'{"task_id": 0}'),
    "no task": ("trajectory.json", b'{"scenario": "desk"}'),
    "a cut verdict": ("verify.code.json", b'{"reward_'),
    "no final database": ("final.db", None),
}


@pytest.mark.parametrize("what", HALF_WRITTEN)
def test_a_half_written_run_is_a_problem_with_its_folder_and_the_others_are_used(
    tmp_path: Path, states: tuple[bytes, bytes], what: str
) -> None:
    write_run(tmp_path / "good", *states)
    broken = write_run(tmp_path / "broken", *states)
    file, content = HALF_WRITTEN[what]
    (broken / file).unlink()
    if content is not None:
        (broken / file).write_bytes(content)
    found = find_trajectories(tmp_path)
    (problem,) = found.problems
    assert problem.startswith(str(broken))
    assert [run.path.name for run in found.of("desk")] == ["good"]


def our_record(initial: str, final: str, **parts: Any) -> dict[str, Any]:
    """A record as our own rollouts keep it."""
    turns = [
        {"move": "list"},
        *({"move": "call", "tool": c.tool, "arguments": c.arguments} for c in SOLUTIONS[0].calls),
    ]
    record = {"environment": "desk", "task": 0, "attempt": 2, "turns": turns, "answer": "Closed.", "initial": initial}
    reward = {"outcome": "complete", "verifier": {"mode": "code"}}
    return record | {"final": final, "reward": reward} | parts


def test_our_own_records_are_known_solutions_too(tmp_path: Path, states: tuple[bytes, bytes]) -> None:
    run = tmp_path / "runs" / "7"
    (run / "snapshots").mkdir(parents=True)
    for name, state in zip(("before", "after"), states, strict=True):
        (run / "snapshots" / f"{name}.db").write_bytes(state)
    records = [
        our_record("before", "after"),
        our_record("before", "after", reward={"outcome": "partial"}),
        our_record("before", "lost"),
    ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (run / "trajectories.jsonl").write_text(lines + lines[:40])
    found = find_trajectories(tmp_path)
    (complete,) = found.of("desk")
    known = complete.known(DEFAULT_NOW)
    assert (known.initial, known.final, known.calls) == (*states, SOLUTIONS[0].calls)
    assert known.source == "trajectory desk/0/2 of 7, judged complete by its code-mode verifier"
    assert found.not_complete == 1
    assert ["there is no lost.db" in problem or "line 4" in problem for problem in found.problems] == [True, True]


def test_a_folder_without_runs_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no trajectory\.json"):
        find_trajectories(tmp_path)
    with pytest.raises(UserError, match="is not a folder"):
        find_trajectories(tmp_path / "nowhere")


def test_a_digest_changes_with_anything_in_the_folder(tmp_path: Path, states: tuple[bytes, bytes]) -> None:
    folder = write_run(tmp_path / "run", *states)
    (run,) = find_trajectories(tmp_path).of("desk")
    before = run.digest()
    (folder / "final.db").write_bytes(states[0])
    assert run.digest() != before
