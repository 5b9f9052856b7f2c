"""`awm-studio verify`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from studio.commands.options import (
    json_option,
    open_workspace,
    print_json,
    require_task,
    say,
    visible,
    workspace_option,
)

if TYPE_CHECKING:
    from pipeline.model import Environment, Verifier


@click.command("verify")
@click.argument("environment", metavar="ENV")
@click.option("--task", type=click.IntRange(min=0), required=True, metavar="N", help="The task (numbered from 0).")
@click.option(
    "--initial",
    metavar="A.db",
    type=click.Path(path_type=Path),
    help="The database before [default: the environment's initial one].",
)
@click.option(
    "--final", metavar="B.db", type=click.Path(path_type=Path), required=True, help="The database after the agent."
)
@click.option("--answer", metavar="TEXT", help="The agent's final answer.")
@click.option(
    "--mode",
    type=click.Choice(["code", "sql"]),
    help="Which verifier, where a task has both [default: code, if there is one].",
)
@workspace_option
@json_option
def verify_command(
    *,
    environment: str,
    task: int,
    initial: Path | None,
    final: Path,
    answer: str | None,
    mode: str | None,
    workspace: str | None,
    as_json: bool,
) -> None:
    """Run a task's verifier over a database before and after, and the agent's answer.

    A code-mode verifier says complete or others; a sql-mode verifier gives evidence for a judge. judge_error is no
    verdict: the verifier or a database is broken. Exits with 0 for complete and evidence, else with 1.

    Examples:

        awm-studio verify gofundme --task 3 --initial initial.db --final after.db

        awm-studio verify gofundme --task 3 --final after.db --answer "It costs 12 USD." --json
    """
    from pipeline.runtime.host import Host
    from pipeline.sqlite_files import read_database

    with open_workspace(workspace) as opened:
        env = opened.catalog.environment(environment)
        verifier = _verifier(env, task, mode)
        after = read_database(final)
        with Host.from_settings(opened.settings) as host:
            before = read_database(initial) if initial is not None else host.initial(env)[0]
            verdict = host.verify(verifier, before, after, answer, now=env.now)
    if as_json:
        print_json(
            {
                "verdict": verdict.verdict,
                "evidence": verdict.evidence,
                "error": verdict.error,
                "queries": verdict.queries,
                "mode": verifier.mode,
                "ms": round(verdict.ms, 3),
            }
        )
    else:
        click.echo(verdict.verdict)
        if verdict.evidence is not None:
            print_json(verdict.evidence)
        if verdict.error:
            say(visible(verdict.error))
        failed = sum(not query["ok"] for query in verdict.queries)
        say(f"{len(verdict.queries)} statements, {failed} failed, {verdict.ms:.0f} ms")
    if verdict.verdict not in ("complete", "evidence"):
        sys.exit(1)


def _verifier(env: Environment, task: int, mode: str | None) -> Verifier:
    from pipeline.errors import UserError
    from pipeline.model import Mode

    require_task(env, task)
    verifier = env.verifier(task, None if mode is None else Mode(mode))
    if verifier is None:
        modes = sorted({known.mode.value for known in env.verifiers if known.task == task})
        have = f"only one in {modes[0]} mode" if modes else "none"
        kind = f"{mode}-mode " if mode and modes else ""
        raise UserError(f"Task {task} of {env.name} has no {kind}verifier ({have}).")
    return verifier
