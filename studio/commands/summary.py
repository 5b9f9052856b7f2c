"""What the workspace holds, in a few lines: what `awm-studio` prints where there is no terminal for the studio."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pipeline.words import number_of
from studio.commands.options import open_workspace, print_table, say

if TYPE_CHECKING:
    from pipeline.records import Run, Summary

SHOWN = 20
"""How many environments the summary names; `awm-studio list` has all."""

FIRST_STEPS = (
    ("awm-studio synth --count 3 --offline", "make three environments here, without a model"),
    ("awm-studio import FOLDER", "bring in environments in the AWM release layout"),
    ("awm-studio doctor", "see what works on this machine"),
)
NEXT_STEPS = (
    ("awm-studio check --all", "find out whether they run"),
    ("awm-studio show NAME", "look at one"),
    ("awm-studio serve NAME", "offer one to any MCP client"),
)


def print_summary(workspace: str | None) -> None:
    """Print what the workspace holds, or, where it is empty or not there yet, what to type next."""
    from pipeline import settings
    from pipeline.workspace import is_workspace, locate

    path = locate(workspace)
    if not is_workspace(path, settings.load()) and (not path.exists() or (path.is_dir() and not any(path.iterdir()))):
        print_table(["next", ""], FIRST_STEPS, title=f"No workspace at {path} yet")
        return
    with open_workspace(workspace) as opened:
        summaries, runs = opened.catalog.summaries(), opened.catalog.runs()
    title = f"Workspace {path}: {number_of(len(summaries), 'environment')}"
    if not summaries:
        print_table(["next", ""], FIRST_STEPS, title=title)
        return
    columns, rows = environment_rows(summaries)
    print_table(columns, rows[:SHOWN], title=title)
    if len(rows) > SHOWN:
        say(f"… and {len(rows) - SHOWN:,} more: awm-studio list")
    print_table(["", ""], _totals(summaries, runs))
    print_table(["next", ""], NEXT_STEPS)


def environment_rows(summaries: list[Summary]) -> tuple[list[str], list[tuple[object, ...]]]:
    """The columns and rows that environments are listed in; columns in which nothing is known are left out."""
    cells: dict[str, list[object]] = {
        "name": [item.name for item in summaries],
        "origin": [item.origin for item in summaries],
        "domain": [item.domain for item in summaries],
        "tables": [item.tables for item in summaries],
        "rows": [item.rows for item in summaries],
        "tools": [item.tools for item in summaries],
        "tasks": [item.tasks for item in summaries],
        "verifiers": [f"{item.code_verifiers}+{item.sql_verifiers}" for item in summaries],
        "missing": [" ".join(item.missing) for item in summaries],
        "check": [item.check for item in summaries],
        "audit": [item.audit for item in summaries],
        "concept": [item.concept for item in summaries],
    }
    shown = {header: column for header, column in cells.items() if any(column) or not summaries}
    return list(shown), list(zip(*shown.values(), strict=True))


def _totals(summaries: list[Summary], runs: list[Run]) -> list[tuple[str, str]]:
    checks = Counter(item.check or "not checked" for item in summaries)
    states = Counter(run.state for run in runs)
    return [
        ("tasks", f"{sum(item.tasks or 0 for item in summaries):,}"),
        ("incomplete", f"{sum(bool(item.missing) for item in summaries):,}"),
        ("checks", ", ".join(f"{number:,} {status}" for status, number in sorted(checks.items()))),
        ("runs", ", ".join(f"{number:,} {state}" for state, number in sorted(states.items())) or "none"),
    ]
