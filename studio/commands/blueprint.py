"""`awm-studio blueprint`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from pipeline.words import number_of
from studio.commands.options import json_option, print_json, print_table, say

if TYPE_CHECKING:
    from pipeline.blueprints.trial import Trial


@click.group()
def blueprint_command() -> None:
    """Domain files, from which environments are made by rules."""


@blueprint_command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """The domains that are shipped.

    Examples:

        awm-studio blueprint list
    """
    from pipeline.blueprints.make import domain_names, shipped_domain

    domains = [shipped_domain(name) for name in domain_names()]
    rows = [
        {
            "domain": domain.name,
            "title": domain.title.replace("{place}", "…"),
            "entities": sum(not entity.shared for entity in domain.entities.values()),
            "actions": sum(not action.shared for action in domain.actions.values()),
            "tasks": sum(not form.shared for form in domain.tasks.values()),
        }
        for domain in domains
    ]
    if as_json:
        print_json({"domains": rows})
    else:
        print_table(["domain", "title", "entities", "actions", "task forms"], [row.values() for row in rows])


@blueprint_command.command("check")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--count", type=click.IntRange(1), default=3, show_default=True, help="Environments made and proved.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The seed they are made from.")
@json_option
def check_command(file: Path, count: int, seed: int, as_json: bool) -> None:
    """Read a domain file, make environments from it, and prove each by running it in the sandbox.

    The rows must build, the tools must be those of the spec, every reference solution must be accepted by both
    verifiers of its task, and neither doing nothing nor any known way of getting it wrong may be. What is wrong in
    the file is said with its line and field (exit code 2); what does not hold in an environment made of it is a
    finding (exit code 1). FILE may also be the name of a shipped domain.

    Examples:

        awm-studio blueprint check my_domain.yaml

        awm-studio blueprint check ledger --count 10 --seed 7
    """
    from pipeline.blueprints.trial import read_file, trials
    from pipeline.runtime.host import Host

    domain = read_file(file)
    done: list[Trial] = []
    with Host() as host:
        for trial in trials(domain, host, count=count, seed=seed):
            done.append(trial)
            if not as_json:
                _print_trial(trial)
    if as_json:
        print_json({"domain": domain.name, "environments": [trial.document() for trial in done]})
    elif all(trial.sound for trial in done):
        say(f"{domain.name}: {number_of(len(done), 'environment')} made by rules, all sound")
    if not all(trial.sound for trial in done):
        sys.exit(1)


def _print_trial(trial: Trial) -> None:
    facts = f"{trial.tables} tables, {trial.rows} rows, {trial.tools} tools, {trial.tasks} tasks"
    say(f"{'✓' if trial.sound else '✗'} {trial.name}: {facts}")
    if trial.findings:
        print_table(["where", "what"], [(finding.where, finding.message) for finding in trial.findings])
