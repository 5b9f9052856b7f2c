"""Batches of rollouts: scripts and models, what goes wrong, and going on."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import UserError
from pipeline.llm.profiles import Profile
from pipeline.workspace import Workspace
from tests.llm_server import Answer, Hold, Raw, Say, Server, Status
from tests.train.pantry import broken, fill, pantry
from train import rollout_run
from train.protocol import Form, call_text, list_text
from train.records import TRAJECTORIES, read_records
from train.replay import environment_of, replay
from train.rollout import Plan
from train.rules import Rules
from train.trajectory import End, Trajectory

pytestmark = pytest.mark.usefixtures("one_host")

SOLUTION = [
    list_text(),
    call_text("list_items", {"name": "rice"}),
    call_text("set_amount", {"item_id": 1, "amount": 5}),
    "Done.",
]


@pytest.fixture
def workspace(tmp_path: Path) -> Any:
    with Workspace.open(fill(tmp_path / "workspace")) as opened:
        yield opened


def roll(workspace: Workspace, **plan: Any) -> tuple[dict[str, Any], list[Trajectory]]:
    tasks = plan.pop("tasks", [("pantry", 0)])
    run = rollout_run.create(workspace, Plan(tasks=tasks, **plan))
    figures = rollout_run.work(workspace, run)
    return figures, list(read_records(workspace.runs / str(run.id)))


def profile(server: Server, **fields: Any) -> Profile:
    return Profile(**{"model": "agent", "base_url": server.url, "api_key_env": "", "retries": 0, **fields})


def by_turn(*turns: str | Answer) -> Callable[[dict[str, Any]], Answer]:
    """Answers by how many turns the agent has had, as its messages tell."""

    def answer(body: dict[str, Any]) -> Answer:
        turn = turns[sum(message["role"] == "assistant" for message in body["messages"])]
        return Say(turn, tokens=(10, 5)) if isinstance(turn, str) else turn

    return answer


def test_reference_solutions_complete_their_tasks(workspace: Workspace) -> None:
    figures, _ = roll(workspace, actor="reference", tasks=[("pantry", 0), ("pantry", 1)], tries=2)
    assert (figures["rollouts"], figures["complete"], figures["rate"]) == (4, 4, 1.0)
    assert figures["interval"][0] < 1.0
    assert figures["outcomes"] == {"answered": 4}
    assert figures["calls"] == 6


def test_doing_nothing_completes_nothing(workspace: Workspace) -> None:
    figures, (record,) = roll(workspace, actor="noop")
    assert (figures["complete"], figures["mean_reward"]) == (0, 0.0)
    assert record.initial == record.final
    assert not record.diff


def test_random_agents_do_the_same_for_the_same_seed(workspace: Workspace) -> None:
    def calls(seed: int) -> list[Any]:
        _, records = roll(
            workspace, actor="random", seed=seed, tries=3, rules=Rules(stop_on_slip=False, stop_on_fault=False)
        )
        return [
            (turn.tool, turn.arguments) for record in sorted(records, key=lambda r: r.attempt) for turn in record.turns
        ]

    assert calls(1) == calls(1) != calls(2)


def test_a_model_completes_a_task_in_the_text_protocol(workspace: Workspace) -> None:
    with Server(by_turn(*SOLUTION)) as server:
        figures, (record,) = roll(workspace, actor="model", model=profile(server, params={"temperature": 0.6}))
        first, *_, last = server.requests
    assert (figures["complete"], record.end, record.answer) == (1, End.answered, "Done.")
    assert first["temperature"] == 0.6
    assert "tools" not in first
    assert [message["role"] for message in last["messages"]] == ["system", "user", *["assistant", "tool"] * 3]
    assert record.turns[0].tokens_out == 5
    assert record.diff["items"]["changed"][0]["after"] == {"amount": 5}
    assert record.reward is not None
    assert record.reward.outcome == "complete"


def test_a_model_completes_a_task_by_native_calls(workspace: Workspace) -> None:
    def native(tool: str, arguments: dict[str, Any]) -> Raw:
        call = {"id": "c", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        body = {
            "id": "x",
            "model": "agent",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        }
        return Raw(json.dumps(body).encode(), "application/json")

    turns = by_turn(native("list_items", {}), native("set_amount", {"item_id": 1, "amount": 5}), "Done.")
    with Server(turns) as server:
        figures, (record,) = roll(workspace, actor="model", model=profile(server), rules=Rules(form=Form.native))
        last = server.requests[-1]
    assert (figures["complete"], [turn.tool for turn in record.turns]) == (1, ["list_items", "set_amount", ""])
    assert {tool["function"]["name"] for tool in last["tools"]} >= {"list_items", "set_amount"}
    assert [message["role"] for message in last["messages"]] == ["system", "user", *["assistant", "tool"] * 2]


def test_each_try_is_asked_anew_and_a_run_repeats_no_request(workspace: Workspace) -> None:
    with Server(by_turn(*SOLUTION)) as server:
        roll(workspace, actor="model", model=profile(server), tries=3)
        assert len(server.requests) == 3 * len(SOLUTION)
        roll(workspace, actor="model", model=profile(server))
        assert len(server.requests) == 4 * len(SOLUTION)


def test_token_ids_of_the_server_are_kept(workspace: Workspace) -> None:
    message = {"role": "assistant", "content": list_text()}
    choice = {"index": 0, "message": message, "finish_reason": "length", "token_ids": [4, 2],
              "logprobs": {"content": [{"token": "a", "logprob": -1.5}, {"token": "b", "logprob": -0.5}]}}  # fmt: skip
    body = {"id": "x", "model": "agent", "prompt_token_ids": [1, 2, 3], "choices": [choice]}
    with Server([Raw(json.dumps(body).encode(), "application/json")]) as server:
        _, (record,) = roll(workspace, actor="model", model=profile(server))
    turn = record.turns[0]
    assert (turn.prompt_ids, turn.completion_ids, turn.logprobs) == ((1, 2, 3), (4, 2), (-1.5, -0.5))
    assert (record.end, record.detail) == (End.format_error, "cut_off")


@pytest.mark.parametrize(
    ("answer", "end"),
    [
        (Status(500), End.model_error),
        (Status(400, "maximum context length is 10 tokens"), End.context_limit),
        (Say("nothing", finish="length"), End.format_error),
    ],
)
def test_what_goes_wrong_at_the_models_server_has_its_name(workspace: Workspace, answer: Answer, end: End) -> None:
    with Server(by_turn(list_text(), answer)) as server:
        _, (record,) = roll(workspace, actor="model", model=profile(server))
    assert record.end is end
    assert record.detail
    assert len(record.turns) == (2 if end is End.format_error else 1)


def test_a_rollout_that_takes_too_long_is_ended(workspace: Workspace) -> None:
    released = threading.Event()
    with Server(by_turn(list_text(), Hold(released))) as server:
        figures, (record,) = roll(workspace, actor="model", model=profile(server), rules=Rules(time_limit_s=0.5))
        released.set()
    assert (record.end, figures["excluded"]) == (End.time_limit, 0)


def test_a_server_that_is_not_there_ends_the_batch_with_a_sentence_and_it_can_go_on(workspace: Workspace) -> None:
    with Server([Status(401, "no")]) as server:
        run = rollout_run.create(workspace, Plan(actor="model", model=profile(server), tasks=[("pantry", 0)]))
        with pytest.raises(UserError, match="cannot go on"):
            rollout_run.work(workspace, run)
    (kept,) = [each for each in workspace.catalog.runs() if each.id == run.id]
    assert (kept.state, kept.pid) == ("stopped", None)
    assert rollout_run.find(workspace, None).id == run.id


def test_an_environment_that_does_not_load_is_a_record_and_the_rest_goes_on(tmp_path: Path) -> None:
    with Workspace.open(fill(tmp_path / "w", broken(), pantry())) as workspace:
        figures, records = roll(workspace, actor="reference", tasks=[("ruin", 0), ("ruin", 1), ("pantry", 0)])
    assert figures["outcomes"] == {"environment_error": 2, "answered": 1}
    assert (figures["excluded"], figures["complete"]) == (2, 1)
    assert "NameError" in next(record.detail for record in records if record.environment == "ruin")


def test_going_on_does_only_what_is_missing(workspace: Workspace) -> None:
    plan = Plan(actor="reference", tasks=[("pantry", 0), ("pantry", 1)], tries=3)
    run = rollout_run.create(workspace, plan)
    rollout_run.work(workspace, run)
    file = workspace.runs / str(run.id) / TRAJECTORIES
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2]) + lines[2][:100])  # as kill -9 leaves it
    told: list[str] = []
    figures = rollout_run.work(workspace, run, tell=lambda trajectory, _: told.append(trajectory.key))
    assert (figures["rollouts"], figures["complete"], len(told)) == (6, 6, 4)
    assert {record.key for record in read_records(file)} == {f"pantry/{task}/{n}" for task in (0, 1) for n in range(3)}


def test_a_recorded_rollout_gives_the_same_bytes_again(workspace: Workspace) -> None:
    _, (record,) = roll(workspace, actor="random", rules=Rules(stop_on_slip=False, stop_on_fault=False), seed=7)
    from pipeline.runtime.host import Host

    with Host.from_settings(workspace.settings).program(environment_of(workspace.catalog, record)) as program:
        again = replay(record, program)
        tampered = Trajectory.from_json({**record.to_json(), "final": "0" * 64})
        assert not replay(tampered, program).same
    assert again.same
    assert len(again.steps) == len(record.turns)


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"actor": "reference", "tasks": []}, "no tasks"),
        ({"actor": "reference", "tasks": [("pantry", 2)]}, "no reference solution for task 2"),
        ({"actor": "noop", "tasks": [("pantry", 0)], "rewards": {"by": "judge"}}, "--judge-model"),
    ],
)
def test_what_cannot_work_is_said_before_it_begins(workspace: Workspace, plan: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        rollout_run.create(workspace, Plan.model_validate(plan))
    assert workspace.catalog.runs() == []


def test_many_rollouts_go_on_at_once(workspace: Workspace) -> None:
    arrived = threading.Barrier(8, timeout=20)

    def together(body: dict[str, Any]) -> Answer:
        if len(body["messages"]) == 2:
            arrived.wait()
        return by_turn(*SOLUTION)(body)

    with Server(together) as server:
        model = profile(server, concurrency=8)
        figures, _ = roll(workspace, actor="model", model=model, tries=8, concurrency=8)
    assert figures["complete"] == 8
