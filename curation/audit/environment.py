"""The audit of one environment: known solutions are played, and each verifier is tried on what they give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack

from curation.audit.judge import Judge
from curation.audit.records import Disagreement, EnvironmentAudit, TaskState, VerifierAudit
from curation.audit.stage import PreparedTask, Stage, prepare
from curation.audit.states import Known
from curation.audit.trials import Outcome, without_solution
from curation.audit.verifier import audit_verifier
from pipeline.errors import UserError
from pipeline.findings import Finding
from pipeline.model import Environment, Mode
from pipeline.runtime.host import Host, LoadFailed


def audit_environment(
    environment: Environment,
    host: Host,
    *,
    sources: Mapping[int, str] | None = None,
    recorded: Iterable[Known] = (),
    judge: Judge | None = None,
) -> EnvironmentAudit:
    """Audit the verifiers of one environment by running them in sandboxed workers.

    `sources` says where the environment's own solutions come from, by task (otherwise: its origin); `recorded` are
    known solutions from elsewhere. `judge` judges evidence that does not say whether it holds; without one, that stays
    open. What does not run is a finding.
    """
    try:
        with ExitStack() as opened:
            stage = Stage.open(environment, host, opened, judge)
            return _audit(stage, sources or {}, list(recorded))
    except LoadFailed as failed:
        return unrunnable(environment, failed.finding)
    except UserError as error:  # its worker died where nothing else could be done
        finding = Finding("cannot_be_audited", "error", "environment", str(error), remedy="run awm-studio check on it")
        return unrunnable(environment, finding)


def _audit(stage: Stage, sources: Mapping[int, str], recorded: Sequence[Known]) -> EnvironmentAudit:
    environment = stage.environment
    first = tuple(without_solution(stage.snapshot, environment.now, stage.host)) if environment.verifiers else ()
    verifiers: list[VerifierAudit] = []
    tasks: list[TaskState] = []
    disagreements: list[Disagreement] = []
    findings: list[Finding] = []
    for number in sorted({*range(len(environment.tasks)), *(one.task for one in environment.verifiers)}):
        text = environment.tasks[number] if number < len(environment.tasks) else ""
        source = sources.get(number, environment.origin)
        task = prepare(stage, number, text, first, source, [known for known in recorded if known.task == number])
        if task.problem:
            findings.append(task.problem)
        judged: dict[Mode, Sequence[Outcome]] = {}
        audits = []
        for verifier in (one for one in environment.verifiers if one.task == number):
            audit, judged[verifier.mode] = audit_verifier(stage, task, verifier)
            audits.append(audit)
        verifiers += audits
        tasks.append(_state(task, audits))
        if counts := _compared(judged):
            disagreements.append(Disagreement(number, counts))
    return EnvironmentAudit(environment.name, tuple(verifiers), tuple(tasks), tuple(disagreements), tuple(findings))


def _state(task: PreparedTask, audits: Sequence[VerifierAudit]) -> TaskState:
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


def unrunnable(environment: Environment, finding: Finding) -> EnvironmentAudit:
    """The audit of an environment that cannot be built or loaded: nothing is proved, for that reason."""
    why = f"the environment does not run: {finding.message}"
    return EnvironmentAudit(
        environment.name,
        tuple(
            VerifierAudit(
                name=environment.name,
                domain=environment.domain,
                task=verifier.task,
                mode=verifier.mode,
                verdict="unproven",
                why=why,
                category=None,
                steps=None,
                solutions=(),
                tried={},
                failed={},
                reads={},
                may_change=None,
                findings=(),
            )
            for verifier in environment.verifiers
        ),
        tuple(TaskState(number, "blocked", why) for number in range(len(environment.tasks))),
        findings=(finding,),
    )
