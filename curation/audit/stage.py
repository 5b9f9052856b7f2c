"""An environment that runs, and each of its tasks with the trials that its known solutions give."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from curation.audit.judge import Judge
from curation.audit.states import ANOTHER_TIME, Known, Played, other_orders, play
from curation.audit.subject import differences, meaning, volatile_columns
from curation.audit.tables import read_tables
from curation.audit.trials import Solved, Trial, case_of, solved, with_solution
from pipeline.findings import Finding
from pipeline.model import Environment, Solution
from pipeline.runtime.host import Case, Host, HostedProgram, LoadFailed

SOLUTIONS = 3
"""Known solutions of one task that are tried; near misses are made from the first."""

ORDERS = 2
"""Other orders of a solution's calls that are tried."""


@dataclass(frozen=True)
class Stage:
    """An environment that runs: its first state, its program (None without code), and the same at another time.

    `judge` is who judges evidence, if anybody does.
    """

    environment: Environment
    host: Host
    snapshot: bytes
    program: HostedProgram | None
    later: HostedProgram | None
    judge: Judge | None = None

    @classmethod
    def open(cls, environment: Environment, host: Host, opened: ExitStack, judge: Judge | None = None) -> Stage:
        """Start what the audit needs. Raises LoadFailed."""
        if environment.code is None:
            return cls(environment, host, host.build(environment).snapshot, None, None, judge)
        program = opened.enter_context(host.program(environment))
        later = None
        if environment.solutions:
            with suppress(LoadFailed):  # an environment for one time only; its checks say so
                later = opened.enter_context(host.program(environment, now=environment.now + ANOTHER_TIME))
        return cls(environment, host, program.template, program, later, judge)


@dataclass(frozen=True)
class PreparedTask:
    """One task with what is known of its solution: `trials` for every verifier of it, and what went wrong."""

    number: int
    text: str
    solutions: tuple[Solved, ...]
    trials: tuple[Trial, ...]
    problem: Finding | None


def prepare(
    stage: Stage, number: int, text: str, first: tuple[Trial, ...], source: str, recorded: Sequence[Known]
) -> PreparedTask:
    """Play the known solution of a task and make trials of it and of the `recorded` ones.

    `first` are the trials that need none; `source` says where the environment's own solution comes from.
    """
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
    return PreparedTask(number, text, tuple(found), tuple(trials), problem)


def _own(stage: Stage, solution: Solution, text: str, source: str, played: Played) -> tuple[Solved, list[Trial]]:
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
