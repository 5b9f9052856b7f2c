"""Rollouts at once: 256 agents behind one scripted server, in both protocols, with memory and throughput."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from pipeline.blueprints.make import environment
from pipeline.blueprints.synthesis import put
from pipeline.catalog import Catalog
from pipeline.llm.profiles import Profile
from pipeline.workspace import Workspace
from tests.llm_server import Answer, Raw, Say, Server
from train import rollout_run
from train.protocol import Form, call_text, list_text
from train.rollout import Plan
from train.rules import Rules

pytestmark = pytest.mark.benchmark

ENVIRONMENTS, TRIES, AT_ONCE = 4, 8, 256


@pytest.fixture
def workspace(tmp_path: Path) -> Any:
    folder = tmp_path / "workspace"
    folder.mkdir()
    with Catalog.open(folder / "catalog.db") as catalog, catalog.bulk():
        for index in range(ENVIRONMENTS):
            put(catalog, environment("library", 0, index))
    with Workspace.open(folder) as opened:
        yield opened


def agent(solutions: dict[str, Any], form: Form) -> Any:
    """A server that knows the reference solution of every task by the task's words."""

    def answer(body: dict[str, Any]) -> Answer:
        solution = solutions[body["messages"][1]["content"]]
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        if form is Form.text and turn == 0:
            return Say(list_text(), streams=False)
        made = turn - (form is Form.text)
        if made >= len(solution.calls):
            return Say(solution.answer or "Done.", streams=False)
        call = solution.calls[made]
        if form is Form.text:
            return Say(call_text(call.tool, call.arguments), streams=False)
        function = {"name": call.tool, "arguments": json.dumps(dict(call.arguments))}
        message = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        return Raw(json.dumps({"id": "x", "model": "agent", "choices": [choice]}).encode(), "application/json")

    return answer


@pytest.mark.parametrize("form", list(Form))
def test_256_rollouts_at_once(workspace: Workspace, form: Form) -> None:
    environments = list(workspace.catalog.environments())
    texts = Counter(text for env in environments for text in env.tasks)
    tasks = [(env.name, n) for env in environments for n, text in enumerate(env.tasks) if texts[text] == 1]
    solutions = {env.tasks[s.task]: s for env in environments for s in env.solutions}
    with Server(agent(solutions, form)) as server:
        model = Profile(model="agent", base_url=server.url, api_key_env="", concurrency=AT_ONCE)
        plan = Plan(
            actor="model",
            model=model,
            tasks=tasks,
            tries=TRIES,
            concurrency=AT_ONCE,
            rules=Rules(form=form, window=None),
        )
        run = rollout_run.create(workspace, plan)
        before, began, worked = psutil.Process().memory_info().rss, time.perf_counter(), time.process_time()
        peak = 0

        def watch(*_: Any) -> None:
            nonlocal peak
            peak = max(peak, psutil.Process().memory_info().rss)

        figures = rollout_run.work(workspace, run, tell=watch)
        seconds, cpu = time.perf_counter() - began, time.process_time() - worked
        asked = len(server.requests)
    print(
        f"\n{form}: {figures['rollouts']} rollouts, {AT_ONCE} at once, {figures['complete']} complete, in {seconds:.1f} s "
        f"({cpu:.1f} s of one processor, the scripted server included): "
        f"{figures['rollouts'] / seconds:.1f} rollouts/s, {asked / seconds:.0f} turns/s, "
        f"{figures['calls'] / seconds:.0f} calls/s, {(peak - before) / 1e6:.0f} MB more memory in the process"
    )
    assert figures["complete"] == figures["rollouts"] == len(tasks) * TRIES
