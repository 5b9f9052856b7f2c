"""Records on disk: as they were written, and in the layout of AWM's own agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import UserError
from pipeline.llm.request import Message, ToolCall
from pipeline.runtime.hosted import Instance
from pipeline.workspace import Workspace
from tests.train.pantry import fill
from train import rollout_run
from train.awm_runs import export_awm, read_awm
from train.files import one, recorded
from train.json_lines import drop_cut_line, json_line, read_json_line
from train.protocol import call_text, list_text
from train.records import Records, read_records
from train.replay import replays
from train.reward import Reward
from train.rollout import Plan
from train.rules import Rules
from train.trajectory import End, Trajectory, Turn

TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
TURNS = st.builds(
    Turn,
    content=TEXTS,
    thinking=TEXTS,
    calls=st.lists(st.builds(ToolCall, TEXTS, TEXTS, TEXTS), max_size=2).map(tuple),
    cut=st.booleans(),
    completion_ids=st.lists(st.integers(0, 2**31), max_size=4).map(tuple),
    logprobs=st.lists(st.floats(-50, 0), max_size=4).map(tuple),
    move=st.sampled_from(["list", "call", "other", "answer"]),
    tool=TEXTS,
    arguments=st.dictionaries(TEXTS, st.integers() | TEXTS | st.none(), max_size=2),
    slip=st.none() | st.just("unknown_tool"),
    status=st.none() | st.just(200),
    shown=st.none() | TEXTS,
)
RECORDS = st.builds(
    Trajectory,
    environment=st.just("pantry"),
    task=st.integers(0, 9),
    attempt=st.integers(0, 9),
    text=TEXTS,
    policy=TEXTS,
    rules=st.builds(Rules, window=st.none() | st.integers(0, 9), max_turns=st.integers(1, 50)),
    contents=st.just({"code/": "ab"}),
    now=st.just("2026-01-01T12:00:00+00:00"),
    head=st.just((Message("system", "s"), Message("user", "u"))),
    turns=st.lists(TURNS, max_size=3).map(tuple),
    end=st.sampled_from(End),
    answer=st.none() | TEXTS,
    reward=st.none() | st.builds(Reward, total=st.floats(-1, 1), reasons=st.just(("why",))),
)


@given(RECORDS)
def test_a_record_that_is_written_is_read_whole(record: Trajectory) -> None:
    assert Trajectory.from_json(read_json_line(json_line(record.to_json()))) == record


def test_huge_numbers_and_lone_surrogates_can_be_kept() -> None:
    value = {"n": 10**40, "s": "\ud800"}
    assert read_json_line(json_line(value)) == value


@given(st.lists(st.binary(max_size=9).map(lambda b: b.replace(b"\n", b"")), max_size=5), st.binary(max_size=9))
def test_only_a_cut_last_line_is_dropped(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], cut: bytes
) -> None:
    file = tmp_path_factory.mktemp("lines") / "f"
    whole = b"".join(line + b"\n" for line in lines)
    file.write_bytes(whole + cut.replace(b"\n", b""))
    drop_cut_line(file)
    assert file.read_bytes() == whole


@pytest.fixture
def run(tmp_path: Path, one_host: None) -> Iterator[tuple[Workspace, Path]]:
    """A run with two tries at one task and one at another."""
    with Workspace.open(fill(tmp_path / "workspace")) as workspace:
        made = rollout_run.create(workspace, Plan(actor="reference", tasks=[("pantry", 0), ("pantry", 1)], tries=2))
        rollout_run.work(workspace, made)
        yield workspace, workspace.runs / str(made.id)


def test_equal_databases_are_kept_once(run: tuple[Workspace, Path]) -> None:
    assert len(list((run[1] / "snapshots").iterdir())) == 2


def test_a_run_goes_out_in_awms_layout_and_comes_back_whole(run: tuple[Workspace, Path], tmp_path: Path) -> None:
    workspace, folder = run
    records = sorted(read_records(folder), key=lambda record: record.key)
    assert export_awm(records, folder, tmp_path / "out") == 4
    first = json.loads((tmp_path / "out/pantry/task_0/trajectory.json").read_text())
    assert (first["scenario"], first["task_id"], first["total_iterations"]) == ("pantry", 0, 4)
    assert first["trajectory"][1]["tool_calls"][0]["name"] == "call_tool"
    assert first["trajectory"][1]["tool_response"]["content"] == first["messages"][5]["content"]
    assert first["trajectory"][-1]["is_final"]
    assert (tmp_path / "out/pantry/task_0/try_1/final.db").read_bytes().startswith(b"SQLite format 3")
    number, figures = rollout_run.take_in(workspace, tmp_path / "out")
    assert figures["complete"] == 4
    assert sorted(read_records(workspace.runs / str(number)), key=lambda record: record.key) == records


def test_a_rollout_that_cannot_be_done_again_is_told_once_and_the_others_are_done(
    run: tuple[Workspace, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, folder = run
    records = list(read_records(folder))
    state, failing = Instance.snapshot, iter([False, False, True])

    def lost(instance: Instance) -> bytes:
        if next(failing, False):
            raise UserError("The state of pantry cannot be read: no answer.")
        return state(instance)

    monkeypatch.setattr(Instance, "snapshot", lost)
    found = [(trajectory.key, again) for trajectory, again in replays(workspace, records)]
    assert sorted(key for key, _ in found) == sorted(record.key for record in records)
    assert [again for _, again in found if isinstance(again, str)] == ["The state of pantry cannot be read: no answer."]


def test_a_folder_that_is_not_empty_is_not_written_to(run: tuple[Workspace, Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not empty"):
        export_awm(read_records(run[1]), run[1], tmp_path)


def foreign(place: Path, **changes: Any) -> None:
    """A run as upstream's own agent leaves it."""
    shown = "Available MCP Tools (1 tools):"
    look = call_text("mcp_server_list_items", {})
    steps = [
        {"iteration": 1, "content": list_text(), "tool_calls": [{}], "tool_response": {"content": shown}},
        {"iteration": 2, "content": look, "tool_calls": [{}], "tool_response": {"content": "Error: no"}},
        {"iteration": 3, "content": "<think>So.</think>None.", "tool_calls": [], "is_final": True},
    ]
    messages = [{"role": "system", "content": "S"}, {"role": "user", "content": "T"}]
    document = {
        "scenario": "Pantry",
        "task_id": 1,
        "task": "T",
        "model": "m",
        "max_iterations": 30,
        "trajectory": steps,
        "messages": messages,
    }
    place.mkdir(parents=True)
    (place / "trajectory.json").write_text(json.dumps({**document, **changes}))


def test_rollouts_of_awms_own_agent_are_read(tmp_path: Path) -> None:
    foreign(tmp_path / "run_1/pantry/task_1")
    foreign(tmp_path / "run_2/pantry/task_1")
    (first, *_), (second, *_) = read_awm(tmp_path)
    assert (first.key, second.key) == ("pantry/1/0", "pantry/1/1")
    assert (first.end, first.answer, first.policy) == (End.answered, "None.", "m")
    assert [(turn.move, turn.tool) for turn in first.turns] == [("list", ""), ("call", "list_items"), ("answer", "")]
    assert first.messages()[0] == Message("system", "S")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"scenario": None}, "which scenario"),
        ({"messages": 1}, "not a trajectory"),
        ({"trajectory": None}, "not a trajectory"),
        ({"trajectory": ["step"]}, "not a trajectory"),
        ({"trajectory": [{"tool_response": "text"}]}, "not a trajectory"),
        ({"messages": ["hello", 5]}, "not a trajectory"),
        ({"messages": [{"role": "system"}]}, "not a trajectory"),
        ({"task_id": "first"}, "which task"),
        ({"task_id": float("inf")}, "which task"),
        ({"max_iterations": -1}, "not a trajectory"),
    ],
)
def test_what_is_no_trajectory_is_said_with_its_file(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    foreign(tmp_path / "pantry/task_1", **changes)
    with pytest.raises(UserError, match=said):
        list(read_awm(tmp_path))


def test_rollouts_are_found_by_run_folder_and_file(run: tuple[Workspace, Path]) -> None:
    workspace, folder = run
    for name in (Path(folder.name), folder, folder / "trajectories.jsonl"):
        assert len(list(recorded(name, workspace.runs))) == 4
    initial, final = one(folder, None, 0).read_databases()
    assert initial[:15] == final[:15] == b"SQLite format 3"
    with pytest.raises(UserError, match="choose one"):
        one(folder, None, None)
    with pytest.raises(UserError, match="0 to 3"):
        one(folder, None, 4)
    with pytest.raises(UserError, match="There is no"):
        list(recorded(Path("nowhere"), workspace.runs))


def test_a_line_that_is_no_record_is_named(tmp_path: Path) -> None:
    (tmp_path / "trajectories.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(UserError, match=r"trajectories\.jsonl, line 1"):
        list(read_records(tmp_path))


@pytest.mark.parametrize(
    "changes",
    [
        {"policy": 5},
        {"task": "first"},
        {"task": 0.9},
        {"environment": None},
        {"seconds": "long"},
        {"contents": 5},
        {"contents": {"bogus/": "ab"}},
        {"now": "yesterday"},
        {"initial": 5},
        {"reward": 5},
        {"reward": {"total": "much"}},
        {"head": [{"role": "user", "content": 5}]},
        {"turns": 5},
        {"turns": ["said"]},
        {"turns": [{"content": 5}]},
        {"turns": [{"content": "", "tool": 5}]},
        {"turns": [{"content": "", "arguments": [1]}]},
        {"turns": [{"content": "", "calls": [{"id": "1", "name": 5, "arguments": ""}]}]},
    ],
)
def test_a_record_with_something_else_in_it_is_named(
    run: tuple[Workspace, Path], tmp_path: Path, changes: dict[str, Any]
) -> None:
    record = next(iter(read_records(run[1]))).to_json()
    (tmp_path / "trajectories.jsonl").write_bytes(json_line({**record, **changes}))
    with pytest.raises(UserError, match=r"line 1: this is not a record of a rollout"):
        list(read_records(tmp_path))


def test_what_is_nested_too_deeply_is_no_record(tmp_path: Path) -> None:
    (tmp_path / "trajectories.jsonl").write_text("[" * 100_000 + "\n")
    with pytest.raises(UserError, match="this is not a record"):
        list(read_records(tmp_path))
    foreign(tmp_path / "pantry")
    (tmp_path / "pantry" / "trajectory.json").write_text("[" * 100_000)
    with pytest.raises(UserError, match="not a trajectory"):
        list(read_awm(tmp_path / "pantry"))


def test_a_disk_that_is_full_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = Trajectory("e", 0, 0, "", "p", Rules(), {}, "", (), (), End.answered)
    with Records(tmp_path) as records:
        records.add(replace(record, attempt=1))
        with Path("/dev/full").open("ab", buffering=0) as full:
            monkeypatch.setattr(records, "_file", full)
            with pytest.raises(UserError, match="free some space"):
                records.add(record)
    assert [kept.attempt for kept in read_records(tmp_path)] == [1]
