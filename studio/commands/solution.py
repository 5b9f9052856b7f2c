"""`awm-studio solution`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from studio.commands.options import (
    json_option,
    open_workspace,
    print_json,
    require_task,
    say,
    workspace_option,
)

if TYPE_CHECKING:
    from pipeline.model import Call


@click.command("solution")
@click.argument("environment", metavar="ENV")
@click.argument("calls", metavar="CALLS.json", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--task", type=click.IntRange(min=0), required=True, metavar="N", help="The task (numbered from 0).")
@click.option("--answer", metavar="TEXT", help="The final answer, if the task asks for one.")
@workspace_option
@json_option
def solution_command(
    *, environment: str, calls: Path, task: int, answer: str | None, workspace: str | None, as_json: bool
) -> None:
    """Keep calls as the reference solution of a task, by you, after making them on a fresh instance.

    CALLS.json (or - for stdin) is a list like [{"tool": "close_ticket", "arguments": {"ticket_id": 11}}]. Nothing is
    kept where a call is refused. awm-studio audit then tries the task's verifiers with it. In the studio, calls made
    in the tool form are saved the same way.

    Examples:

        awm-studio solution gofundme calls.json --task 3

        awm-studio solution gofundme - --task 3 --answer "Three campaigns" < calls.json
    """
    from curation.audit.states import play
    from curation.solutions import save_solution
    from pipeline.errors import UserError
    from pipeline.runtime.diff import diff
    from pipeline.runtime.host import Host
    from studio.commands.diff import print_changes
    from studio.person import person

    wanted = read_calls(calls)
    opened = open_workspace(workspace)
    env = opened.catalog.environment(environment)
    require_task(env, task)
    with Host.from_settings(opened.settings) as host, host.program(env) as program:
        played = play(program, wanted)
        changes = {} if played.final == program.template else diff(program.template, played.final)
        verdicts = {
            verifier.mode.value: host.verify(verifier, program.template, played.final, answer, now=env.now).verdict
            for verifier in env.verifiers
            if verifier.task == task and not played.refused
        }
    if played.refused:
        raise UserError(f"Nothing was kept, because a call was refused: {played.refused}")
    version = save_solution(opened.catalog, env.name, task, wanted, answer, person())
    for mode, verdict in verdicts.items():
        if verdict not in ("complete", "evidence"):
            say(f"The {mode} verifier says {verdict}, not complete: audits will count that against the verifier.")
    if as_json:
        print_json({"environment": env.name, "task": task, "version": version.number, "diff": changes})
        return
    print_changes(changes)
    say(f"Kept as the solution of task {task} of {env.name}, version {version.number}.")


def read_calls(path: Path) -> list[Call]:
    """The calls in a file, or on stdin for `-`. Raises UserError that names the call which is none."""
    from pipeline.errors import UserError
    from pipeline.model import Call

    try:
        value: Any = json.loads(sys.stdin.read() if str(path) == "-" else path.read_text("utf-8-sig"))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON: {error}.") from None
    if not isinstance(value, list):
        raise UserError(f'{path} is no list of calls, such as [{{"tool": "close_ticket", "arguments": {{"id": 3}}}}].')
    found = []
    for number, one in enumerate(value, 1):
        arguments = one.get("arguments", {}) if isinstance(one, dict) else None
        if arguments is None or not isinstance(arguments, dict) or not isinstance(one.get("tool"), str):
            raise UserError(f'{path}: call {number} needs "tool", a text, and "arguments", an object.')
        found.append(Call(one["tool"], arguments))
    return found
