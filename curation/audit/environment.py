"""The audit of one environment: known solutions are played, and each verifier is tried on what they give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from curation.audit.guard import footprint
from curation.audit.records import Disagreement, EnvironmentAudit, TaskState, VerifierAudit
from curation.audit.seed import already_reached
from curation.audit.states import ANOTHER_TIME, Known, Played, other_orders, play
from curation.audit.static import date_lines, id_lines, read_source, source_findings
from curation.audit.subject import Tables, differences, meaning, volatile_columns
from curation.audit.tables import read_tables
from curation.audit.trials import (
    Outcome,
    Solved,
    Trial,
    case_of,
    collateral,
    run,
    solved,
    with_solution,
    without_solution,
)
from curation.audit.verdicts import conduct_findings, decide, form_findings, kind_findings, rates, units
from curation.audit.wording import Mentions
from pipeline.errors import UserError
from pipeline.findings import Finding
from pipeline.model import Environment, Mode, Solution, Verifier
from pipeline.runtime.host import Case, Host, HostedProgram, LoadFailed

CONFIRMED = 3
"""Failed trials of one verifier that are judged again in a process of their own, beside a known solution."""

SOLUTIONS = 3
"""Known solutions of one task that are tried; near misses are made from the first."""

ORDERS = 2
"""Other orders of a solution's calls that are tried."""


def audit_environment(
    environment: Environment,
    host: Host,
    *,
    sources: Mapping[int, str] | None = None,
    recorded: Iterable[Known] = (),
) -> EnvironmentAudit:
    """Audit the verifiers of one environment by running them in sandboxed workers.

    `sources` says where the environment's own solutions come from, by task (otherwise: its origin); `recorded` are
    known solutions from elsewhere. What does not run is a finding.
    """
    try:
        with ExitStack() as opened:
            stage = _Stage.open(environment, host, opened)
            return _audit(stage, sources or {}, list(recorded))
    except LoadFailed as failed:
        return _unrunnable(environment, failed.finding)
    except UserError as error:  # its worker died where nothing else could be done
        finding = Finding("cannot_be_audited", "error", "environment", str(error), remedy="run awm-studio check on it")
        return _unrunnable(environment, finding)


@dataclass(frozen=True)
class _Stage:
    """An environment that runs: its first state, its program (None without code), and the same at another time."""

    environment: Environment
    host: Host
    snapshot: bytes
    program: HostedProgram | None
    later: HostedProgram | None

    @classmethod
    def open(cls, environment: Environment, host: Host, opened: ExitStack) -> _Stage:
        """Start what the audit needs. Raises LoadFailed."""
        if environment.code is None:
            return cls(environment, host, host.build(environment).snapshot, None, None)
        program = opened.enter_context(host.program(environment))
        later = None
        if environment.solutions:
            with suppress(LoadFailed):  # an environment for one time only; its checks say so
                later = opened.enter_context(host.program(environment, now=environment.now + ANOTHER_TIME))
        return cls(environment, host, program.template, program, later)


@dataclass(frozen=True)
class _Task:
    """One task with what is known of its solution: `trials` for every verifier of it, and what went wrong."""

    number: int
    text: str
    solutions: tuple[Solved, ...]
    trials: tuple[Trial, ...]
    problem: Finding | None


def _audit(stage: _Stage, sources: Mapping[int, str], recorded: Sequence[Known]) -> EnvironmentAudit:
    environment = stage.environment
    first = tuple(without_solution(stage.snapshot, environment.now, stage.host)) if environment.verifiers else ()
    verifiers: list[VerifierAudit] = []
    tasks: list[TaskState] = []
    disagreements: list[Disagreement] = []
    findings: list[Finding] = []
    for number, text in enumerate(environment.tasks):
        source = sources.get(number, environment.origin)
        task = _prepare(stage, number, text, first, source, [known for known in recorded if known.task == number])
        if task.problem:
            findings.append(task.problem)
        judged: dict[Mode, Sequence[Outcome]] = {}
        audits = []
        for verifier in (one for one in environment.verifiers if one.task == number):
            audit, judged[verifier.mode] = _verifier(stage, task, verifier)
            audits.append(audit)
        verifiers += audits
        tasks.append(_state(task, audits))
        if counts := _compared(judged):
            disagreements.append(Disagreement(number, counts))
    return EnvironmentAudit(environment.name, tuple(verifiers), tuple(tasks), tuple(disagreements), tuple(findings))


# One task


def _prepare(
    stage: _Stage, number: int, text: str, first: tuple[Trial, ...], source: str, recorded: Sequence[Known]
) -> _Task:
    solution = stage.environment.solution(number)
    found: list[Solved] = []
    trials = list(first)
    problem = None
    if solution is not None and stage.program is not None:
        played = play(stage.program, solution.calls)
        if played.refused:
            problem = _solution_fails(number, source, played)
        else:
            one, more = _own(stage, solution, text, source, played)
            found.append(one)
            trials += more
    found += [solved(known, text, frozenset()) for known in recorded]
    found = found[:SOLUTIONS]
    if found:
        main = found[0]
        if not main.differences and not main.known.asks:  # nothing is to be done, and that is right
            trials = [trial for trial in trials if trial.kind != "untouched"]
        trials += with_solution(main, text, stage.host)
        trials += [Trial("reference", f"the known solution ({o.known.source})", case_of(o.known)) for o in found[1:]]
    return _Task(number, text, tuple(found), tuple(trials), problem)


def _own(stage: _Stage, solution: Solution, text: str, source: str, played: Played) -> tuple[Solved, list[Trial]]:
    """The environment's own solution, played; and played at another time and in other orders."""
    assert stage.program is not None
    asks = solution.answer is not None
    known = Known(
        solution.task,
        source,
        stage.snapshot,
        played.final,
        solution.answer,
        asks,
        stage.environment.now,
        solution.calls,
    )
    trials: list[Trial] = []
    volatile: frozenset[tuple[str, str]] = frozenset()
    found = differences(known.initial, known.final)
    if stage.later is not None:
        again = play(stage.later, solution.calls)
        volatile = volatile_columns(found, differences(stage.later.template, again.final))
        if not again.refused and not (asks and again.replies != played.replies):
            now = known.now + ANOTHER_TIME
            case = Case(stage.later.template, again.final, solution.answer, now)
            trials.append(Trial("time", f"carried out at {now:%Y-%m-%d %H:%M:%S}", case))
    one = solved(known, text, volatile)
    same = meaning(found, one.final, volatile)
    for calls in other_orders(stage.program, solution.calls)[:ORDERS]:
        turned = play(stage.program, calls)
        if turned.refused or turned.final == known.final:
            continue
        final = read_tables(turned.final)
        if meaning(differences(known.initial, turned.final), final, volatile) == same:
            says = " then ".join(call.tool for call in calls)
            trials.append(
                Trial("order", f"the calls in another order: {says}", replace(case_of(known), final=turned.final))
            )
    return one, trials


def _solution_fails(number: int, source: str, played: Played) -> Finding:
    return Finding(
        "solution_fails",
        "error",
        f"solution: task {number}",
        f"the known solution ({source}) of task {number} does not run, so it proves nothing",
        evidence=played.refused,
        remedy="correct the solution, or the tool that refuses it",
        tasks=(number,),
    )


def _state(task: _Task, audits: Sequence[VerifierAudit]) -> TaskState:
    impossible = [f for audit in audits for f in audit.findings if f.code == "impossible_as_verified"]
    if task.problem:
        return TaskState(task.number, "blocked", task.problem.evidence)
    if impossible and len(impossible) == len(audits):
        return TaskState(task.number, "blocked", f"impossible as verified: {impossible[0].evidence}")
    if task.solutions:
        return TaskState(task.number, "solvable", f"a known solution runs ({task.solutions[0].known.source})")
    return TaskState(task.number, "unproven", "no known solution")


def _compared(judged: Mapping[Mode, Sequence[Outcome]]) -> Mapping[str, int]:
    """What both modes said of the same trials."""
    if len(judged) < 2:
        return {}
    by_trial = {outcome.trial: outcome for outcome in judged[Mode.sql] if outcome.accepted is not None}
    counts: Counter[str] = Counter()
    for code in judged[Mode.code]:
        sql = by_trial.get(code.trial)
        if (
            sql is not None
            and code.accepted is not None
            and "judge_error" not in (code.verdict.verdict, sql.verdict.verdict)
        ):
            words = (_word(code.trial.right), _word(code.accepted), _word(sql.accepted))
            counts["/".join(words)] += 1
    return dict(counts)


def _word(accepted: bool | None) -> str:
    return "complete" if accepted else "others"


# One verifier


def _verifier(stage: _Stage, task: _Task, verifier: Verifier) -> tuple[VerifierAudit, Sequence[Outcome]]:
    host = stage.host
    where = f"verifier: task {verifier.task}, {verifier.mode} mode"
    shared = outcomes = run(host, verifier, task.trials)
    main = task.solutions[0] if task.solutions else None
    if main is not None and not any(outcome.stumbled for outcome in shared):
        outcomes = [*shared, *run(host, verifier, list(collateral(main, shared, host)))]
    findings = [
        found
        for find in (conduct_findings, kind_findings, form_findings)
        for found in find(outcomes, where, task.number)
    ]
    findings += _unsteady(host, verifier, outcomes, where)
    said = {
        outcome.trial.kind: outcome.accepted for outcome in outcomes if outcome.trial.kind in ("untouched", "reference")
    }
    if said.get("untouched") is False and not said.get("reference"):
        answer = main.known.answer if main else None
        untouched = Case(stage.snapshot, stage.snapshot, answer, stage.environment.now)
        findings += already_reached(host, verifier, untouched, task.text, where)
    findings = list(_with_lines(findings, verifier, task, main.final if main else read_tables(stage.snapshot)))
    databases = [read_tables(stage.snapshot), *(one.final for one in task.solutions)]
    findings += source_findings(read_source(verifier.code), where, verifier.task, task.text, databases)
    verdict, why = decide(outcomes, findings)
    counted = units(outcomes)
    both = {**rates(counted, right=False), **rates(counted, right=True)}
    audit = VerifierAudit(
        name=stage.environment.name,
        domain=stage.environment.domain,
        task=verifier.task,
        mode=verifier.mode,
        verdict=verdict,
        why=why,
        category=main.category if main else None,
        steps=len(main.known.calls) or None if main else None,
        solutions=tuple(one.known.source for one in task.solutions),
        tried={kind: rate.tried for kind, rate in both.items()},
        failed={kind: rate.failed for kind, rate in both.items() if rate.failed},
        reads=_reads(outcomes),
        may_change=footprint(one.differences for one in task.solutions) if task.solutions else None,
        findings=tuple(sorted(findings, key=lambda finding: ("error", "warn", "info").index(finding.severity))),
    )
    return audit, shared


def _unsteady(host: Host, verifier: Verifier, outcomes: Sequence[Outcome], where: str) -> Iterator[Finding]:
    """A finding where a verifier, asked again in a fresh process, says something else."""
    if any(outcome.stumbled for outcome in outcomes):
        return
    failed = [outcome for outcome in outcomes if outcome.failed][:CONFIRMED]
    known = [outcome for outcome in outcomes if outcome.trial.kind == "reference"][:1]
    for outcome in (*failed, *known):
        (again,) = run(host, verifier, [outcome.trial])
        if again.verdict.verdict != outcome.verdict.verdict or again.accepted != outcome.accepted:
            yield Finding(
                "not_repeatable",
                "error",
                where,
                "asked again about the same databases and answer, the verifier comes to another verdict",
                evidence=f"{outcome.trial.says} → {outcome.verdict.verdict}, then {again.verdict.verdict}",
                remedy="make it a function of the two databases and the answer alone",
                tasks=(verifier.task,),
            )
            return


def _with_lines(findings: Iterable[Finding], verifier: Verifier, task: _Task, tables: Tables) -> Iterator[Finding]:
    """The findings, with the lines of the source that may be to blame."""
    source = read_source(verifier.code)
    for finding in findings:
        lines: list[str] = []
        if finding.code == "hard_coded_id":
            lines = id_lines(source, tables, Mentions(task.text))
        elif finding.code == "date_form":
            lines = date_lines(source)
        elif finding.code == "depends_on_clock":
            lines = [source.line(number) for number in source.clock]
        yield replace(finding, evidence="; ".join((finding.evidence, *lines)))


def _reads(outcomes: Iterable[Outcome]) -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for outcome in outcomes:
        for _, table, column in outcome.verdict.reads:
            if not table.startswith("sqlite_"):
                found.setdefault(table, set()).add(column)
    return {table: tuple(sorted(columns - {""})) for table, columns in sorted(found.items())}


def _unrunnable(environment: Environment, finding: Finding) -> EnvironmentAudit:
    """The audit of an environment that cannot be built or loaded: nothing is proved, for that reason."""
    why = f"the environment does not run: {finding.message}"
    return EnvironmentAudit(
        environment.name,
        tuple(
            VerifierAudit(
                environment.name,
                environment.domain,
                v.task,
                v.mode,
                "unproven",
                why,
                None,
                None,
                (),
                {},
                {},
                {},
                None,
                (),
            )
            for v in environment.verifiers
        ),
        tuple(TaskState(number, "blocked", why) for number in range(len(environment.tasks))),
        findings=(finding,),
    )
