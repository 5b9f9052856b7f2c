"""All checks of one environment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

from pydantic import TypeAdapter

from pipeline.findings import Finding
from pipeline.model import Environment, Part
from pipeline.rules.called import call_tools
from pipeline.rules.calls import called_findings
from pipeline.rules.database import database_findings
from pipeline.rules.interface import interface_findings, spec_findings, unknown_columns
from pipeline.rules.repeats import Loading, repeat_findings
from pipeline.rules.rows import rows_findings
from pipeline.rules.schema import columns_of, schema_findings
from pipeline.rules.tasks import one_task
from pipeline.rules.tool_schemas import tool_schema_findings
from pipeline.rules.values import value_findings
from pipeline.rules.verifiers import verifier_findings
from pipeline.runtime.build import Build
from pipeline.runtime.host import Host, HostedProgram, LoadFailed

Status = Literal["pass", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What the checks found. `rows` and `tools` are None where they could not be counted."""

    name: str
    status: Status
    tables: int
    rows: int | None
    tools: int | None
    findings: tuple[Finding, ...]

    def document(self) -> dict[str, Any]:
        """The JSON form, as `awm-studio check --json` prints it and the catalog keeps it."""
        return asdict(self)

    @classmethod
    def from_json(cls, text: str) -> CheckResult:
        """The result whose document was kept as this JSON text."""
        return TypeAdapter(cls).validate_json(text)


def check_environment(environment: Environment, host: Host, *, seed: int = 0) -> CheckResult:
    """Check one environment by building, loading, calling and verifying it in sandboxed workers.

    `seed` chooses the arguments tools are called with; the same seed gives the same findings.
    """
    findings: list[Finding] = list(missing_parts(environment))
    findings += spec_findings(environment.operations, [table.name for table in environment.schema])
    findings += value_findings(environment.schema, environment.code or "")
    for number, task in enumerate(environment.tasks):
        findings += one_task(number, task)
    rows = tools = None
    try:
        if environment.schema:
            build = host.build(environment)
            rows = sum(build.tables.values())
            findings += built_findings(environment, build)
            initial = build.snapshot
            load = partial(host.program, environment, snapshot=build.snapshot, cache=False)
            if environment.code is not None:
                try:
                    with load() as program:
                        tools, initial = len(program.tools), program.template
                        findings += program_findings(environment, program, load, seed)
                except LoadFailed as failed:
                    findings.append(failed.finding)
            findings += verifier_findings(environment, host, initial)
    except LoadFailed as failed:
        findings.append(failed.finding)
    return CheckResult(
        environment.name, status(findings), len(environment.schema), rows, tools, tuple(in_order(findings))
    )


def built_findings(environment: Environment, build: Build) -> Iterator[Finding]:
    """What the built database shows by itself and against the tasks and the spec."""
    yield from database_findings(environment, build)
    yield from schema_findings(build.snapshot)
    yield from rows_findings(environment, build)
    yield from unknown_columns(environment.operations, columns_of(build.snapshot))


def program_findings(environment: Environment, program: HostedProgram, load: Loading, seed: int) -> Iterator[Finding]:
    """What the loaded program shows by itself, against the spec, and when it is called and called again."""
    yield from program.findings
    yield from interface_findings(environment, program.tools)
    yield from tool_schema_findings(program.tools)
    made = list(call_tools(program, seed=seed))
    yield from called_findings(environment, program, made)
    yield from repeat_findings(program, made, load)


def missing_parts(environment: Environment) -> Iterator[Finding]:
    """One finding for each part the environment lacks; without schema or code nothing can run."""
    for part in environment.missing:
        essential = part in (Part.schema, Part.code)
        yield Finding(
            "part_missing",
            "error" if essential else "warn",
            part.value,
            f"there is no {part.value} part",
            remedy="import or synthesize it",
            tasks=tuple(range(len(environment.tasks))) if essential else (),
        )


def with_findings(result: CheckResult, more: Iterable[Finding]) -> CheckResult:
    """A result with findings from elsewhere among its own."""
    findings = tuple(in_order((*result.findings, *more)))
    return replace(result, status=status(findings), findings=findings)


def status(findings: Iterable[Finding]) -> Status:
    """`fail` with an error among the findings, `warn` with a warning, else `pass`."""
    severities = {finding.severity for finding in findings}
    return "fail" if "error" in severities else "warn" if "warn" in severities else "pass"


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """The worst first, otherwise in the order they were found."""
    return sorted(findings, key=lambda finding: ("error", "warn", "info").index(finding.severity))
