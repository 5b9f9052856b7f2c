"""Tries a domain out: environments are made from it and proved in the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipeline.blueprints.language.domain import Domain
from pipeline.blueprints.language.reading import read_domain
from pipeline.blueprints.make import TASKS, Blueprint, blueprint, domain_names, shipped_domain, shipped_text
from pipeline.blueprints.prove import prove
from pipeline.errors import UserError
from pipeline.findings import Finding
from pipeline.model import Environment, Mode, Verifier
from pipeline.runtime.host import Host, HostedProgram, Instance


@dataclass(frozen=True, slots=True)
class Trial:
    """One environment made from a domain, and what does not hold in it."""

    name: str
    tables: int
    rows: int
    tools: int
    tasks: int
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Whether everything holds."""
        return not self.findings

    def document(self) -> dict[str, Any]:
        """The JSON form."""
        return asdict(self)


def read_file(file: Path) -> Domain:
    """The domain in a file, or the shipped one of that name. Raises UserError with the line of what is wrong."""
    if not file.exists() and str(file) in domain_names():
        return shipped_domain(str(file))
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file} cannot be read: {getattr(error, 'strerror', None) or 'it is not text'}.") from None
    return read_domain(text, str(file), common=shipped_text("_common.yaml"))


def trials(domain: Domain, host: Host, *, count: int, seed: int) -> Iterator[Trial]:
    """Make environments from a domain and prove each."""
    for index in range(count):
        made = blueprint(domain, seed, index)
        with host.program(made.environment) as program:
            findings = [*_too_few(made), *prove(made, HostRunner(made.environment, host, program))]
        environment = made.environment
        yield Trial(
            environment.name,
            len(environment.schema),
            sum(len(table.inserts) for table in environment.sample),
            len(environment.operations),
            len(environment.tasks),
            tuple(findings),
        )


def _too_few(made: Blueprint) -> Iterator[Finding]:
    if len(made.tasks) < TASKS:
        yield Finding(
            "few_tasks",
            "error",
            "tasks",
            f"only {len(made.tasks)} of {TASKS} tasks could be made",
            remedy="add task forms or wordings (ask), or rows that more forms are possible with",
        )


class HostRunner:
    """Runs one environment in the host's sandboxed workers, as `prove` wants it."""

    def __init__(self, environment: Environment, host: Host, program: HostedProgram) -> None:
        self.environment, self.host, self.program = environment, host, program
        self.template = program.template
        self.tools = tuple(tool.name for tool in program.tools)
        build = program.build
        assert build is not None
        facts = (*build.failed, *build.foreign_keys, *build.missing_tables, *program.tables_added, *program.findings)
        self.problems = tuple(str(fact) for fact in facts)

    def instance(self) -> Instance:
        """A new instance in the initial state."""
        return self.program.instance()

    def verify(self, verifier: Verifier, final: bytes, answer: str | None) -> tuple[bool, str]:
        """Whether a verifier takes a final state and answer for the task done, and what it says."""
        verdict = self.host.verify(verifier, self.template, final, answer, now=self.environment.now)
        evidence = verdict.evidence or {}
        accepted = evidence.get("holds") is True if verifier.mode is Mode.sql else verdict.verdict == "complete"
        return accepted, verdict.error or str(evidence or verdict.verdict)
