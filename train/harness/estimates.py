"""What an evaluation will take at the least: requests, tokens and money, told before it starts.

The estimate is of an agent that makes the benchmark's reference calls, one at a time, and says one sentence to each
wish: real agents look around, go wrong and think, and take more. Tokens are counted as four characters each.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipeline.llm.profiles import Profile
from pipeline.llm.request import estimate_tokens
from train.harness.plan import Plan
from train.harness.result_files import read_json, read_lines

REPLY_TOKENS = 60
"""Taken for what an agent says, or one call of it with its arguments."""

RESULT_TOKENS = 150
"""Taken for the result of a call."""

EXCHANGES = 4
"""Taken for how often τ²-bench's user says something: the wish, two answers, the end."""

TAU2_HEADS = {"airline": 4713, "retail": 4657, "telecom": 7538, "mock": 487}
"""Tokens of each domain's policy and tools (measured on version 26.3)."""

TAU2_USER_HEADS = {"airline": 362, "retail": 362, "telecom": 3067, "mock": 362}
"""Tokens of the simulated user's guidelines and tools (measured on version 26.3)."""

BFCL_SERVICES = {
    "GorillaFileSystem": "gorilla_file_system.json",
    "MathAPI": "math_api.json",
    "MessageAPI": "message_api.json",
    "TwitterAPI": "posting_api.json",
    "TicketAPI": "ticket_api.json",
    "TradingBot": "trading_bot.json",
    "TravelAPI": "travel_booking.json",
    "VehicleControlAPI": "vehicle_control.json",
}
"""BFCL's `MULTI_TURN_FUNC_DOC_FILE_MAPPING`."""

HOW = "of an agent that makes the reference calls and no others, without thinking: real ones take more"
HOW_AT_MOST = "turns the agents may take; what the tools' descriptions come to is not known before the servers run"


@dataclass(frozen=True, slots=True)
class Usage:
    """What one model is asked: how often, and how much is read and written. Unknown tokens are None."""

    requests: int
    tokens_in: int | None
    tokens_out: int | None

    def usd(self, profile: Profile) -> float | None:
        """What it costs; None where a price or the tokens are not known."""
        if profile.prices is None or self.tokens_in is None or self.tokens_out is None:
            return None
        return profile.prices.usd(self.tokens_in, self.tokens_out)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a plan takes. `usd` is None where a price or the tokens are not known; `how` says what is counted."""

    tries: int
    model: Usage
    user: Usage | None
    usd: float | None
    how: str

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class _Task:
    """One try: the tokens at its head, and for each wish of the user how many calls it takes."""

    head: int
    calls: Sequence[int]
    closes: bool = True  # a sentence ends each wish

    def usage(self) -> Usage:
        read = written = requests = 0
        context = self.head
        for calls in self.calls:
            context += REPLY_TOKENS
            turns = calls + self.closes or 1
            for turn in range(turns):
                read += context
                context += REPLY_TOKENS + (RESULT_TOKENS if turn < calls else 0)
            requests += turns
            written += turns * REPLY_TOKENS
        return Usage(requests, read, written)


def estimate(plan: Plan, packages: Path) -> Estimate:
    """What a plan takes at the least; for MCP-Universe, how many requests at the most.

    `packages` is where the harness's own data is. Raises Damaged where that cannot be read.
    """
    user: Usage | None = None
    if plan.suite == "bfcl":
        model, how = _summed(task.usage() for task in _bfcl_tasks(plan, packages)), HOW
    elif plan.suite == "tau2":
        (model, user), how = _tau2(plan, packages), HOW
    else:
        model, how = Usage(_most_turns(plan), None, None), HOW_AT_MOST
    if plan.protocol == "awm" and plan.suite != "mcp-universe":  # each try begins with a listing of the tools
        assert model.tokens_in is not None
        model = Usage(model.requests + plan.total, model.tokens_in, model.tokens_out)
    bills = [model.usd(plan.model), *([user.usd(plan.user)] if user and plan.user else [])]
    usd = None if None in bills else round(sum(bill for bill in bills if bill is not None), 2)
    return Estimate(plan.total, model, user, usd, how)


def _bfcl_tasks(plan: Plan, packages: Path) -> Iterable[_Task]:
    data = packages / "bfcl_eval" / "data"
    services = _service_tokens(data / "multi_turn_func_doc")
    for category, names in plan.wanted.items():
        chosen = set(names)
        answers = data / "possible_answer" / f"BFCL_v3_{category}.json"
        truth = {row["id"]: row["ground_truth"] for row in read_lines(answers, finished=True)}
        for row in read_lines(data / f"BFCL_v3_{category}.json", finished=True):
            if row["id"] not in chosen:
                continue
            if category.startswith("multi_turn"):
                head = sum(services[name] for name in row["involved_classes"])
                yield _Task(head, [len(calls) for calls in truth[row["id"]]])
            else:
                yield _Task(estimate_tokens(json.dumps(row["function"])), [0])


def _service_tokens(folder: Path) -> dict[str, int]:
    """The tokens of each simulated service's functions, by the service's name in the tasks."""
    return {name: estimate_tokens((folder / file).read_text("utf-8")) for name, file in BFCL_SERVICES.items()}


def _tau2(plan: Plan, packages: Path) -> tuple[Usage, Usage]:
    agents, users = [], []
    for domain, names in plan.wanted.items():
        tasks = read_json(packages / "tau2" / "data" / "tau2" / "domains" / domain / "tasks.json")
        chosen = set(names)
        for task in tasks:
            if str(task["id"]) not in chosen:
                continue
            made = [action.get("requestor", "assistant") for action in _actions(task)]
            own, theirs = made.count("assistant"), made.count("user")
            agents.append(_Task(TAU2_HEADS[domain], [own, *[0] * (EXCHANGES - 2)]).usage())
            users.append(_Task(TAU2_USER_HEADS[domain], [theirs, *[0] * (EXCHANGES - 1)]).usage())
    return _times(_summed(agents), plan.tries), _times(_summed(users), plan.tries)


def _actions(task: dict[str, Any]) -> list[dict[str, Any]]:
    return (task.get("evaluation_criteria") or {}).get("actions") or []


def _most_turns(plan: Plan) -> int:
    from train.harness import mcp_tasks
    from train.harness.mcp_universe import MAX_ITERATIONS

    assert plan.tasks is not None
    most = {found.name: found.agent.get("max_iterations", MAX_ITERATIONS) for found in mcp_tasks.domains(plan.tasks)}
    return sum(most[domain] * len(tasks) for domain, tasks in plan.wanted.items())


def _summed(usages: Iterable[Usage]) -> Usage:
    usages = list(usages)
    return Usage(
        sum(usage.requests for usage in usages),
        sum(usage.tokens_in or 0 for usage in usages),
        sum(usage.tokens_out or 0 for usage in usages),
    )


def _times(usage: Usage, tries: int) -> Usage:
    return Usage(usage.requests * tries, (usage.tokens_in or 0) * tries, (usage.tokens_out or 0) * tries)
