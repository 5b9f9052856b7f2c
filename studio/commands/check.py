"""`awm-studio check`."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from pipeline.words import number_of
from studio.commands.options import (
    chosen_environments,
    json_option,
    open_workspace,
    print_json,
    print_table,
    say,
    say_stopping,
    workspace_option,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curation.checks.environment import CheckResult
    from curation.checks.trajectories import RecordedFacts


@click.command()
@click.argument("names", metavar="[ENV…]", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Check every environment of the workspace.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warn", "never"]),
    default="error",
    show_default=True,
    help="Exit with 1 when a finding is at least this severe.",
)
@click.option(
    "--trajectories",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Also judge tasks by what agents met: run folders of AWM, or of awm-studio rollout.",
)
@click.option("--again", is_flag=True, help="Check also what was checked before with the same content.")
@click.option("--workers", type=click.IntRange(1), help="Environments checked at once [default: from the settings].")
@json_option
@workspace_option
def check_command(
    *,
    names: tuple[str, ...],
    everything: bool,
    fail_on: str,
    trajectories: Path | None,
    again: bool,
    workers: int | None,
    as_json: bool,
    workspace: str | None,
) -> None:
    """Find out whether environments run and what is wrong with them.

    Builds the database, loads the code, compares it with the spec, calls every tool once with arguments made from
    its schema and real rows, and runs every verifier on the untouched database. Results are kept: a second run
    checks only what has changed, and an interrupted one goes on.

    Environments that are named are shown with every finding, its evidence and its remedy; with --all there are counts.

    With --trajectories, tasks are kept, put up for review or rejected by what agents met in recorded runs: repeated
    server errors, failing calls (the agent's own mistakes left out), nothing but empty replies, no answer in time.

    Examples:

        awm-studio check --all

        awm-studio check gofundme --json

        awm-studio check --all --fail-on warn

        awm-studio check --all --trajectories outputs/runs
    """
    from curation.checks.trajectories import recorded_facts
    from curation.checks.workspace import check_workspace, keep_recorded, summary
    from pipeline.run_record import recorded
    from pipeline.runtime.host import Host

    opened = open_workspace(workspace)
    catalog, settings = opened.catalog, opened.settings
    wanted = chosen_environments(catalog, names, everything=everything, verb="check")

    tasks = {name: catalog.summary(name).tasks or 0 for name in wanted}
    facts = recorded_facts(trajectories, tasks) if trajectories else None
    results = []
    options = ["--trajectories", str(trajectories.absolute())] if trajectories else []
    asked = {"environments": "all" if everything else wanted, "options": options}
    at_once = workers or settings.workers
    with (
        Host.from_settings(settings) as host,
        recorded(catalog, "check", asked, total=len(wanted)) as record,
        closing(check_workspace(catalog, wanted, host, workers=at_once, again=again, stopping=say_stopping)) as checked,
    ):
        for found in checked:
            said = facts.findings.get(found.name) if facts else None
            result = found if said is None else keep_recorded(catalog, found, said)
            results.append(result)
            record.note(result.name, result.status)
            if not as_json:
                say(f"[{len(results)}/{len(wanted)}] {result.name}: {result.status}")
        totals = summary(results)
        record.result = totals["status"]
    results.sort(key=lambda result: result.name)

    if as_json:
        found = {"trajectories": facts.document()} if facts else {}
        print_json({"environments": [result.document() for result in results], "summary": totals, **found})
    else:
        if everything:
            print_kinds(results)
        else:
            for result in results:
                print_findings(result, everything=len(results) == 1)
        print_table(
            ["environment", "status", "tables", "rows", "tools", "errors", "warnings"],
            [
                (r.name, r.status, r.tables, r.rows, r.tools, severity_count(r, "error"), severity_count(r, "warn"))
                for r in results
            ],
        )
        say(
            f"{number_of(totals['environments'], 'environment')}: "
            + ", ".join(f"{n} {word}" for word, n in totals["status"].items())
            + f"; {number_of(totals['tasks_at_risk'], 'task')} at risk"
        )
        if facts:
            print_recorded(facts)
    bad = {"error": ("error",), "warn": ("error", "warn"), "never": ()}[fail_on]
    if any(finding.severity in bad for result in results for finding in result.findings):
        sys.exit(1)


def print_kinds(results: Sequence[CheckResult]) -> None:
    """Print how often what was found, the gravest first, remarks left out."""
    from collections import Counter

    found = Counter((f.severity, f.code) for result in results for f in result.findings if f.severity != "info")
    where = Counter(kind for result in results for kind in {(f.severity, f.code) for f in result.findings})
    if found:
        kinds = sorted(found.items(), key=lambda kind: (kind[0][0] != "error", -kind[1], kind[0][1]))
        rows = [(severity, code, count, where[severity, code]) for (severity, code), count in kinds]
        print_table(["", "found", "findings", "environments"], rows)
        say("awm-studio check ENV shows each finding with its evidence and remedy; --json has all of them.")


def print_findings(result: CheckResult, *, everything: bool) -> None:
    """Print a result's findings, worst first, each on a few lines that fit a narrow terminal."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    shown = [finding for finding in result.findings if everything or finding.severity != "info"]
    if not shown:
        return
    console = Console(highlight=False)
    console.print(Text(f"{result.name}: {result.status}", "bold"))
    for finding in shown:
        mark, style = {"error": ("✗", "red"), "warn": ("!", "yellow"), "info": ("·", "dim")}[finding.severity]
        console.print(Text.assemble("  ", (f"{mark} {finding.severity} {finding.code}", style), f"  {finding.where}"))
        tasks = ", ".join(map(str, finding.tasks))
        for label, said in (
            ("", finding.message),
            ("seen: ", finding.evidence),
            ("do: ", finding.remedy),
            ("tasks at risk: ", tasks),
        ):
            if said:
                console.print(Padding(Text(label + said), (0, 0, 0, 6)))
    console.print()


def print_recorded(facts: RecordedFacts) -> None:
    """Print what recorded runs say of each task, and what could not be read."""
    for finding in facts.half_written:
        say(f"left out: {finding.where}: {finding.message}")
    for name, count in sorted(facts.elsewhere.items()):
        say(f"left out: {number_of(count, 'run')} of {name}, which is not among the environments that were checked")
    print_table(
        [
            "environment",
            "task",
            "decision",
            "runs",
            "troubled",
            "calls",
            "agent's errors",
            "5xx",
            "timeouts",
            "error rate",
        ],
        [
            (
                task.name,
                task.task,
                task.decision,
                task.runs,
                task.troubled,
                task.calls,
                task.refused,
                task.server_errors,
                task.timeouts,
                None
                if task.rate is None or task.interval is None
                else f"{task.rate:.1%} ({task.interval[0]:.1%}-{task.interval[1]:.1%})",
            )
            for task in facts.tasks
        ],
        title="Recorded runs",
    )
    decisions = facts.document()["decisions"]
    say(
        f"{number_of(len(facts.tasks), 'task')}: "
        + ", ".join(f"{count} to {word}" for word, count in decisions.items())
    )


def severity_count(result: CheckResult, severity: str) -> int:
    """How many findings of a result have this severity."""
    return sum(finding.severity == severity for finding in result.findings)
