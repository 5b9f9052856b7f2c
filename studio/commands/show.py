"""`awm-studio show`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import rich_click as click

from studio.commands.options import (
    json_option,
    open_workspace,
    print_json,
    print_table,
    require_task,
    visible,
    workspace_option,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.model import Environment
    from pipeline.records import Version

PARTS = ("scenario", "tasks", "schema", "sample", "spec", "code", "verifiers", "solutions")


@click.command()
@click.argument("env", metavar="ENV")
@click.option("--part", type=click.Choice(PARTS), help="Only this part [default: what the environment is, in brief].")
@click.option("--task", type=click.IntRange(0), metavar="N", help="Only this task's verifiers or solution.")
@json_option
@workspace_option
def show_command(env: str, part: str | None, task: int | None, as_json: bool, workspace: str | None) -> None:
    """Show an environment, or one of its parts in full.

    On a terminal SQL and Python are highlighted; elsewhere they are printed as they are, ready for a file.

    Examples:

        awm-studio show gofundme

        awm-studio show gofundme --part code > gofundme.py

        awm-studio show gofundme --part verifiers --task 3

        awm-studio show gofundme --json | jq .tasks
    """
    with open_workspace(workspace) as opened:
        environment = opened.catalog.environment(env)
        versions = opened.catalog.current(environment.name)
    if task is not None:
        require_task(environment, task)
    if as_json:
        document = _document(environment, task)
        print_json({"name": environment.name, part: document[part]} if part else document)
    elif part is None:
        _print_overview(environment, versions)
    else:
        for heading, text, language in _texts(environment, part, task):
            _print_text(heading, text, language)


def _document(env: Environment, task: int | None) -> dict[str, Any]:
    """An environment as JSON: what `Environment` has, under the words of `PARTS`."""
    return {
        "name": env.name,
        "title": env.title,
        "origin": env.origin,
        "domain": env.domain,
        "now": env.now.isoformat(),
        "missing": env.missing,
        "scenario": env.description,
        "tasks": env.tasks,
        "schema": [asdict(table) for table in env.schema],
        "sample": [asdict(table) for table in env.sample],
        "spec": [asdict(operation) for operation in env.operations],
        "code": env.code,
        "verifiers": [asdict(verifier) for verifier in env.verifiers if task in (None, verifier.task)],
        "solutions": [asdict(solution) for solution in env.solutions if task in (None, solution.task)],
    }


def _print_overview(env: Environment, versions: list[Version]) -> None:
    by_task = {number: [v.mode.value for v in env.verifiers if v.task == number] for number in range(len(env.tasks))}
    _print_text(f"{env.title} ({env.name})", env.description, "")
    print_table(
        ["task", "", "verifiers"],
        [(number, text, "+".join(by_task[number])) for number, text in enumerate(env.tasks)],
    )
    rows = {table.table: len(table.inserts) for table in env.sample}
    print_table(["table", "inserts"], [(table.name, rows.get(table.name, 0)) for table in env.schema])
    print_table(["tool", "", ""], [(op.operation_id, f"{op.method} {op.path}", op.summary) for op in env.operations])
    print_table(
        ["part", "version", "author", "made"],
        [
            (v.part, v.number, " ".join((v.author.kind, v.author.name)), f"{v.created_at:%F %T}")
            for v in versions
            if not v.slot
        ],
    )
    facts = [("origin", env.origin), ("domain", env.domain), ("now", env.now.isoformat())]
    print_table(["", ""], [*facts, ("missing", " ".join(env.missing) or None)])


def _print_text(heading: str, text: str, language: str) -> None:
    if heading:
        click.secho(visible(heading), bold=True)
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.syntax import Syntax

        shown = Syntax(visible(text), language or "text", theme="ansi_dark", background_color="default", word_wrap=True)
        Console().print(shown)
    else:
        click.echo(text.encode("utf-8", "backslashreplace"), nl=not text.endswith("\n"))


def _pretty(value: object) -> str:
    import orjson

    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _texts(env: Environment, part: str, task: int | None) -> Iterator[tuple[str, str, str]]:
    """What to print of a part: headings (may be empty), texts, and the languages they are in (may be empty)."""
    match part:
        case "scenario":
            yield env.title, env.description, ""
        case "tasks":
            yield "", "\n".join(f"{number}. {text}" for number, text in enumerate(env.tasks)), ""
        case "schema":
            statements = [sql for table in env.schema for sql in (table.ddl, *table.indexes)]
            yield "", "\n".join(statements), "sql"
        case "sample":
            yield "", "\n".join(sql for table in env.sample for sql in table.inserts), "sql"
        case "spec":
            yield "", _pretty([asdict(operation) for operation in env.operations]), "json"
        case "code":
            yield "", env.code or "", "python"
        case "verifiers":
            for verifier in env.verifiers:
                if task in (None, verifier.task):
                    yield f"# task {verifier.task}, {verifier.mode} mode", verifier.code, "python"
        case "solutions":
            for solution in env.solutions:
                if task in (None, solution.task):
                    yield f"# task {solution.task}", _pretty(asdict(solution)), "json"
