"""`awm-studio solution`, as a script would use it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.model import AuthorKind, Call, Part
from studio.cli import awm_studio

Command = Callable[..., Any]
CLAIM = {"tool": "create_claim", "arguments": {"bag_id": 2, "amount": 250}}


@pytest.fixture
def command(workspace: Path) -> Command:
    """Runs the command on the airline with these calls on stdin."""

    def run(calls: object, *arguments: str) -> Any:
        asked = ["solution", "airline_lost_baggage", "-", *arguments, "--json", "--workspace", str(workspace)]
        text = calls if isinstance(calls, str) else json.dumps(calls)
        result = CliRunner().invoke(awm_studio, asked, input=text)
        if result.exception is not None:
            raise result.exception
        return json.loads(result.stdout)

    return run


def test_calls_are_made_and_kept_as_a_persons_solution(command: Command, workspace: Path) -> None:
    document = command([CLAIM], "--task", "0", "--answer", "done")
    assert document["version"] == 1
    assert [row["amount"] for row in document["diff"]["claims"]["added"]] == [250]
    with Catalog.open(workspace / "catalog.db") as catalog:
        solution = catalog.environment("airline_lost_baggage").solution(0)
        [version] = catalog.versions("airline_lost_baggage", Part.solution, "0")
    assert solution is not None
    assert (solution.calls, solution.answer) == ((Call("create_claim", CLAIM["arguments"]),), "done")
    assert version.author.kind is AuthorKind.person


def test_what_the_verifier_rejects_is_kept_and_told(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("studio.commands.solution.say", said.append)
    assert command([{"tool": "list_bags", "arguments": {}}], "--task", "0")["version"] == 1
    assert any("The code verifier says others, not complete" in line for line in said)
    said.clear()
    assert command([CLAIM], "--task", "0", "--answer", "done")["version"] == 2
    assert said == []


@pytest.mark.parametrize(
    ("calls", "task", "says"),
    [
        ([{"tool": "create_claim", "arguments": {"bag_id": 99}}], "0", "Nothing was kept, because a call was refused"),
        ([CLAIM, {"arguments": {}}], "0", 'call 2 needs "tool"'),
        ({"calls": []}, "0", "no list of calls"),
        ("[{", "0", "is not JSON"),
        ([CLAIM], "7", "has no task 7"),
    ],
)
def test_what_is_no_solution_is_said_and_not_kept(
    command: Command, workspace: Path, calls: object, task: str, says: str
) -> None:
    with pytest.raises(UserError, match=says):
        command(calls, "--task", task)
    with Catalog.open(workspace / "catalog.db") as catalog:
        assert catalog.environment("airline_lost_baggage").solutions == ()
