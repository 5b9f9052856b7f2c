"""`awm-studio audit`."""

from __future__ import annotations

import sys
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    from collections.abc import Generator, Mapping, Sequence

    from curation.audit.judge import ModelJudge
    from curation.audit.records import EnvironmentAudit
    from curation.audit.trajectories import Trajectories
    from pipeline.llm.profiles import Profile
    from pipeline.runtime.host import Host
    from pipeline.workspace import Workspace

FAULTY = ("loose", "strict", "broken")


@click.command()
@click.argument("names", metavar="[ENV…]", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Audit every environment of the workspace.")
@click.option(
    "--trajectories",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Run folders of AWM; those judged complete are known solutions.",
)
@click.option("--solver", metavar="MODEL", help="First have a model solve the tasks that have no known solution.")
@click.option("--judge", metavar="MODEL", help="Have a model judge the evidence of verifiers in sql mode.")
@click.option("--base-url", metavar="URL", help="The models' OpenAI-compatible server [default: the profile's].")
@click.option(
    "--tries", type=click.IntRange(2, 20), default=3, show_default=True, help="How often the solver tries each task."
)
@click.option(
    "--report",
    "reports",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write a report: Markdown where the name ends in .md, else HTML. May be given twice.",
)
@click.option(
    "--guard",
    is_flag=True,
    help="Put a guard into each verifier that accepts changes nobody asked for (a new version), and audit again.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["fault", "unproven", "never"]),
    default="fault",
    show_default=True,
    help="Exit with 1 when a verifier is loose, strict or broken (fault), or also when one is unproven.",
)
@click.option("--again", is_flag=True, help="Audit also what was audited before with the same content.")
@click.option("--workers", type=click.IntRange(1), help="Environments audited at once [default: from the settings].")
@json_option
@workspace_option
def audit_command(
    *,
    names: tuple[str, ...],
    everything: bool,
    trajectories: Path | None,
    solver: str | None,
    judge: str | None,
    base_url: str | None,
    tries: int,
    reports: tuple[Path, ...],
    guard: bool,
    fail_on: str,
    again: bool,
    workers: int | None,
    as_json: bool,
    workspace: str | None,
) -> None:
    """Find out which verifiers can be trusted.

    Plays the known solution of each task, changes its final state into near misses (which a verifier must reject) and
    into states that mean the same (which it must accept), and asks the task's verifiers about all of them. Known
    solutions come from blueprints, from persons, from trajectories and from a solver model. Results are kept: a
    second run audits only what has changed, and an interrupted one goes on.

    Examples:

        awm-studio audit --all --report audit.html

        awm-studio audit clinic_winslow_1_0 --json

        awm-studio audit --all --trajectories outputs/runs --report audit.md

        awm-studio audit gofundme --solver qwen3-32b --base-url http://localhost:8000/v1

        awm-studio audit --all --judge qwen3-32b
    """
    from curation.audit.report import write_report
    from curation.audit.summary import summary
    from curation.audit.workspace import adopt_guards, audit_workspace
    from pipeline.errors import UserError
    from pipeline.run_record import RunRecord, recorded
    from pipeline.runtime.host import Host
    from pipeline.sqlite_files import require_place

    opened = open_workspace(workspace)
    catalog, settings = opened.catalog, opened.settings
    for place in reports:
        require_place(place)
    if base_url is not None and solver is None and judge is None:
        raise UserError("--base-url is the models' server: name a model with --solver or --judge.")
    profile = chosen_profile(opened, solver, base_url)
    wanted = chosen_environments(catalog, names, everything=everything, verb="audit")
    runs = complete_runs(trajectories) if trajectories else None

    def audit_all(
        host: Host, by: ModelJudge | None, record: RunRecord, chosen: Sequence[str], *, again: bool
    ) -> list[EnvironmentAudit]:
        found = []
        at_once = workers or settings.workers
        with closing(
            audit_workspace(
                catalog,
                chosen,
                host,
                workers=at_once,
                trajectories=runs,
                judge=by,
                again=again,
                stopping=say_stopping,
            )
        ) as audited:
            for result in audited:
                found.append(result)
                record.note(result.name, result.verdict or "no verifiers")
                if not as_json:
                    say(f"[{len(found)}/{len(chosen)}] {result.name}: {result.verdict or 'no verifiers'}")
        return found

    folder = str(trajectories.absolute()) if trajectories else None
    given = {"--trajectories": folder, "--solver": solver, "--judge": judge, "--base-url": base_url}
    asked = {"environments": "all" if everything else wanted, "options": words_of(given)}
    with (
        Host.from_settings(settings) as host,
        judging(opened, judge, base_url) as by,
        recorded(catalog, "audit", asked, total=len(wanted)) as record,
    ):
        if profile is not None:
            solve_first(opened, wanted, host, profile, tries)
        audits = audit_all(host, by, record, wanted, again=again)
        if guard:
            guarded = {audit.name: len(adopt_guards(catalog, audit.name)) for audit in audits}
            changed = [name for name, count in guarded.items() if count]
            verifiers = number_of(sum(guarded.values()), "verifier")
            say(f"guards put into {verifiers} of {number_of(len(changed), 'environment')}")
            audits = [a for a in audits if a.name not in changed] + audit_all(host, by, record, changed, again=False)
        totals = summary(audits)
        record.result = totals["verdicts"]
    audits.sort(key=lambda audit: audit.name)

    for place in reports:
        write_report(place, audits)
        say(f"The report is {place}.")
    if judge is not None:
        say_if_nothing_to_judge(audits)
    say_result(audits, totals, as_json=as_json)
    bad = {"fault": FAULTY, "unproven": (*FAULTY, "unproven"), "never": ()}[fail_on]
    if any(one.verdict in bad for audit in audits for one in audit.verifiers):
        sys.exit(1)


def say_if_nothing_to_judge(audits: Sequence[EnvironmentAudit]) -> None:
    """Say it where a judge was asked for and no verifier leaves the judging to one."""
    from pipeline.model import Mode

    if not any(one.mode == Mode.sql for audit in audits for one in audit.verifiers):
        say("None of these verifiers is in sql mode: there was nothing for the judge to judge.")


def say_result(audits: Sequence[EnvironmentAudit], totals: Mapping[str, Any], *, as_json: bool) -> None:
    """Print audits, as one JSON document or for people."""
    from curation.audit.summary import by_category

    if not as_json:
        print_audits(audits)
        say_verdicts(totals)
        return
    print_json(
        {
            "verifiers": [one.document() for audit in audits for one in audit.verifiers],
            "environments": [audit.document() for audit in audits],
            "by_category": by_category(audits),
            "summary": totals,
        }
    )


def say_verdicts(totals: Mapping[str, Any]) -> None:
    """Say how many verifiers have which verdict."""
    said = ", ".join(f"{count} {verdict}" for verdict, count in totals["verdicts"].items())
    say(f"{number_of(totals['verifiers'], 'verifier')}: {said}")


def words_of(options: Mapping[str, str | None]) -> list[str]:
    """The options that were given, as words of a command line."""
    return [word for option, value in options.items() if value is not None for word in (option, value)]


def complete_runs(folder: Path) -> Trajectories:
    """The trajectories of a folder, after saying how many of them can be used."""
    from curation.audit.trajectories import find_trajectories

    runs = find_trajectories(folder)
    complete = sum(map(len, runs.complete.values()))
    say(f"trajectories: {complete} complete, {runs.not_complete} not complete, {len(runs.problems)} unreadable")
    for problem in runs.problems:
        say(f"left out: {problem}")
    return runs


def chosen_profile(opened: Workspace, model: str | None, base_url: str | None) -> Profile | None:
    """The model of this name, if one is asked for. Raises UserError where there is no such model."""
    from pipeline.llm.profiles import choose

    return None if model is None else choose(opened.settings.profiles, None, model=model, base_url=base_url)


@contextmanager
def judging(opened: Workspace, model: str | None, base_url: str | None) -> Generator[ModelJudge | None]:
    """The judge, if one is asked for; at the end it is said why it could not be asked, if that was so."""
    from curation.audit.judge import ModelJudge
    from pipeline.llm.replies import FILE_NAME

    profile = chosen_profile(opened, model, base_url)
    if profile is None:
        yield None
        return
    with ModelJudge(opened.path / FILE_NAME, profile) as judge:
        yield judge
        if judge.fault is not None:
            say(
                f"The judge was stopped: {judge.fault} Evidence stays without a verdict; the rest of the audit is done."
            )


def solve_first(opened: Workspace, names: Sequence[str], host: Host, profile: Profile, tries: int) -> None:
    """Have the model solve what has no known solution; where it cannot be asked, say so and go on without it."""
    import asyncio

    from curation.audit.solver import solve_environment
    from pipeline.errors import UserError
    from pipeline.llm.client import Client
    from pipeline.llm.faults import ModelFault
    from pipeline.llm.replies import FILE_NAME, Replies

    async def solve_all() -> None:
        replies = Replies(opened.path / FILE_NAME)
        client = Client(replies)
        try:
            for name in names:
                try:
                    found = await solve_environment(opened.catalog, name, host, client, profile, tries=tries)
                except UserError as error:
                    say(f"{name} was not solved: {error}")
                    continue
                if found:
                    agreed = sum(one.calls is not None for one in found)
                    say(f"{name}: {profile.model} agrees with itself on {agreed} of {number_of(len(found), 'task')}")
        except ModelFault as fault:
            say(f"The solver was stopped: {fault} What it solved is kept; the audit goes on without the rest.")
        finally:
            await client.close()
            replies.close()

    asyncio.run(solve_all())


def print_audits(audits: Sequence[EnvironmentAudit]) -> None:
    """Print what is wrong with which verifier, then one row for each environment."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    from studio.commands.options import visible

    console = Console(highlight=False)
    for audit in audits:
        for finding in audit.findings:
            console.print(Text(visible(f"{audit.name}: {finding.severity} {finding.code}  {finding.message}"), "bold"))
            console.print(Padding(Text(visible(finding.evidence)), (0, 0, 0, 4)))
        for one in audit.verifiers:
            if one.verdict not in FAULTY:
                continue
            console.print(Text(f"✗ {audit.name} task {one.task}, {one.mode} mode: {one.verdict}  ({one.why})", "bold"))
            for finding in one.findings:
                if finding.severity != "info":
                    console.print(Padding(Text(visible(f"{finding.code}: {finding.message}")), (0, 0, 0, 4)))
                    console.print(Padding(Text(visible(f"seen: {finding.evidence}"), "dim"), (0, 0, 0, 6)))
                    console.print(Padding(Text(visible(f"do: {finding.remedy}")), (0, 0, 0, 6)))
    rows = []
    for audit in audits:
        accepts = sum(one.rate(right=False).failed for one in audit.verifiers)
        accept_tries = sum(one.rate(right=False).tried for one in audit.verifiers)
        rejects = sum(one.rate(right=True).failed for one in audit.verifiers)
        reject_tries = sum(one.rate(right=True).tried for one in audit.verifiers)
        verdicts = [one.verdict for one in audit.verifiers]
        counts = (verdicts.count(word) or None for word in ("trusted", "unproven", "loose", "strict", "broken"))
        rows.append((audit.name, *counts, f"{accepts}/{accept_tries}", f"{rejects}/{reject_tries}"))
    print_table(
        ["environment", "trusted", "unproven", "loose", "strict", "broken", "false accepts", "false rejects"], rows
    )
