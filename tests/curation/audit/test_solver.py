"""Known solutions from a model: what most of its tries agree on is kept, what none confirms is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from curation.audit.solver import Agreement, solve_environment
from pipeline.catalog import Catalog
from pipeline.llm.client import Client
from pipeline.llm.faults import ModelFault
from pipeline.llm.profiles import Profile
from pipeline.llm.replies import Replies
from pipeline.model import AuthorKind, Call, Part
from pipeline.runtime.host import Host
from tests.curation.audit.desk import TASKS, verifier
from tests.curation.audit.workspaces import put_desk
from tests.llm_server import Answer, Raw, Say, Server, Status

Moves = list[Call | str]


def called(call: Call) -> Raw:
    function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": function}],
    }
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    document = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    return Raw(json.dumps(document).encode(), "application/json")


class Scripted:
    """A model that plays a given list of moves in each try at a task; tries are told apart by when they begin."""

    def __init__(self, tries: dict[str, list[Moves]]) -> None:
        self._fresh = {task: list(moves) for task, moves in tries.items()}
        self._playing: dict[str, list[Moves]] = {task: [] for task in tries}

    def __call__(self, body: dict[str, Any]) -> Answer:
        messages = body["messages"]
        task = messages[1]["content"]
        done = sum(message["role"] == "assistant" for message in messages)
        if done == 0:
            self._playing[task].append(self._fresh[task].pop(0))
            moves = self._playing[task][-1]
        else:
            first = messages[2]["tool_calls"][0]["function"]
            moves = next(m for m in self._playing[task] if isinstance(m[0], Call) and _same(m, messages, first))
        move = moves[done]
        return Say(move) if isinstance(move, str) else called(move)


def _same(moves: Moves, messages: list[dict[str, Any]], first: dict[str, Any]) -> bool:
    made = [m["tool_calls"][0]["function"] for m in messages if m["role"] == "assistant"]
    wanted = [{"name": m.tool, "arguments": json.dumps(m.arguments)} for m in moves if isinstance(m, Call)]
    return made == wanted[: len(made)]


CLOSE, LIST = Call("close_ticket", {"ticket_id": 11}), Call("list_tickets")
WRONG = Call("close_ticket", {"ticket_id": 12})
MISSING = Call("close_ticket", {"ticket_id": 99})


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.open(tmp_path / "catalog.db") as opened:
        put_desk(opened, "desk", [verifier(0), verifier(2)])
        opened.put("desk", Part.tasks, json.dumps([TASKS[0], TASKS[2]]), author=opened.current("desk")[0].author)
        yield opened


async def solve(
    catalog: Catalog, tmp_path: Path, host: Host, model: Callable[[dict[str, Any]], Answer] | list[Answer], **options
) -> list[Agreement]:
    replies = Replies(tmp_path / "replies.db")
    client = Client(replies)
    with Server(model) as server:
        profile = Profile(model="m", base_url=server.url, api_key_env="", retries=0)
        try:
            return await solve_environment(catalog, "desk", host, client, profile, **options)
        finally:
            await client.close()
            replies.close()


async def test_what_two_of_three_tries_agree_on_is_kept_with_the_agreement(
    catalog: Catalog, tmp_path: Path, host: Host
) -> None:
    model = Scripted(
        {
            TASKS[0]: [[LIST, CLOSE, "DONE"], [CLOSE, "Done."], [WRONG, "DONE"]],
            TASKS[2]: [[LIST, "She has 2 tickets."], ["2"], ["3"]],
        }
    )
    closed, counted = await solve(catalog, tmp_path, host, model)
    assert (closed.tries, closed.agreeing, closed.calls, closed.answer) == (3, 2, (CLOSE,), None)
    assert (counted.agreeing, counted.calls) == (2, ())
    environment = catalog.environment("desk")
    assert environment.solution(0).calls == (CLOSE,)
    assert environment.solution(1).answer in ("2", "She has 2 tickets.")
    (version,) = catalog.versions("desk", Part.solution, "0")
    assert (version.author.kind, version.author.name) == (AuthorKind.model, "m")
    assert catalog.extra(version) == {"agreement": {"tries": 3, "agreeing": 2}}
    assert await solve(catalog, tmp_path, host, [Status(500)]) == []  # nothing is left to solve


async def test_tries_that_disagree_or_do_not_end_prove_nothing(catalog: Catalog, tmp_path: Path, host: Host) -> None:
    model = Scripted(
        {
            TASKS[0]: [[CLOSE, "DONE"], [WRONG, "DONE"], [LIST, *[LIST] * 29, "DONE"]],
            TASKS[2]: [["2"], ["3"], ["4"]],
        }
    )
    closed, counted = await solve(catalog, tmp_path, host, model)
    assert (closed.agreeing, closed.calls, counted.calls) == (1, None, None)
    assert catalog.environment("desk").solutions == ()


async def test_calls_that_fail_are_no_part_of_the_solution(catalog: Catalog, tmp_path: Path, host: Host) -> None:
    model = Scripted({TASKS[0]: [[MISSING, CLOSE, "DONE"], [CLOSE, "DONE"]], TASKS[2]: [["2"], ["2"]]})
    closed, _ = await solve(catalog, tmp_path, host, model, tries=2)
    assert (closed.agreeing, closed.calls) == (2, (CLOSE,))


async def test_a_model_that_is_down_is_a_fault_with_a_sentence(catalog: Catalog, tmp_path: Path, host: Host) -> None:
    with pytest.raises(ModelFault):
        await solve(catalog, tmp_path, host, [Status(500, "out of order")])
