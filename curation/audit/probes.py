"""One verifier tried again, probe by probe: what it was shown, what it said, and where in its source it looked.

An audit keeps counts, since states of databases are large. The probes are made the same way again when a person wants
to see them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from curation.audit.kinds import KINDS
from curation.audit.stage import Stage, prepare
from curation.audit.static import SQL
from curation.audit.subject import Diff
from curation.audit.trials import Outcome, Solved, collateral, run, without_solution
from curation.audit.verdicts import rejects_solution, units
from pipeline.errors import UserError
from pipeline.model import Call, Environment, Mode, Verifier
from pipeline.runtime.diff import diff
from pipeline.runtime.host import Host, Verdict


@dataclass(frozen=True)
class Probe:
    """One trial of a verifier. `failed` is whether it counts against the verifier; some only do together."""

    outcome: Outcome
    failed: bool

    @property
    def title(self) -> str:
        """Its kind, in words."""
        return KINDS[self.outcome.trial.kind].title

    @property
    def says(self) -> str:
        """What was tried, in words."""
        return self.outcome.trial.says

    @property
    def right(self) -> bool:
        """What a sound verifier says: complete, or not."""
        return self.outcome.trial.right

    @property
    def verdict(self) -> Verdict:
        """What this one said."""
        return self.outcome.verdict

    @property
    def answer(self) -> str | None:
        """The answer it was given."""
        return self.outcome.trial.case.answer

    def changes(self) -> Mapping[str, Any]:
        """What differs between the two databases it was shown."""
        case = self.outcome.trial.case
        return {} if case.final == case.initial else diff(case.initial, case.final)


@dataclass(frozen=True)
class Probes:
    """All probes of one verifier, in the order they were made.

    `calls` are those of the known solution and `source` says whose it is; both are empty where none is known.
    `rejects_solution` is whether the verifier rejects it: then what means the same says no more.
    """

    verifier: Verifier
    probes: tuple[Probe, ...]
    calls: tuple[Call, ...]
    source: str
    solution: bytes | None
    rejects_solution: bool

    def from_solution(self, probe: Probe) -> Mapping[str, Any]:
        """What was changed in the final state of the known solution to make a probe; nothing where none is known."""
        final = probe.outcome.trial.case.final
        if self.solution is None or final == self.solution:
            return {}
        return diff(self.solution, final)

    def never_read(self, changes: Diff | Mapping[str, Any], probe: Probe) -> list[str]:
        """The tables and columns in which a probe differs and that the verifier did not look at."""
        read: dict[str, set[str]] = {}
        for _, table, column in probe.verdict.reads:
            read.setdefault(table.casefold(), set()).add(column.casefold())
        found = []
        for table, kinds in changes.items():
            columns = read.get(table.casefold())
            if columns is None:
                found.append(table)
                continue
            touched = dict.fromkeys(column for row in kinds["changed"] for column in row["before"])
            found += [f"{table}.{column}" for column in touched if column.casefold() not in columns]
        return found


def probe_verifier(environment: Environment, host: Host, task: int, mode: Mode, *, source: str = "") -> Probes:
    """Try a verifier on everything that the environment's own known solution gives, as an audit does.

    `source` says whose that solution is. Raises UserError where there is no such verifier, LoadFailed where the
    environment does not run.
    """
    verifier = environment.verifier(task, mode)
    if verifier is None:
        raise UserError(f"{environment.name} has no verifier of task {task} in {mode} mode (any more).")
    text = environment.tasks[task] if task < len(environment.tasks) else ""
    with ExitStack() as opened:
        stage = Stage.open(environment, host, opened)
        first = tuple(without_solution(stage.snapshot, environment.now, host))
        prepared = prepare(stage, task, text, first, source or environment.origin, [])
        main = prepared.solutions[0] if prepared.solutions else None
        outcomes = list(_outcomes(host, verifier, prepared.trials, main))
    against = {id(outcome) for unit in units(outcomes) if unit.failed for outcome in unit.outcomes}
    return Probes(
        verifier,
        tuple(Probe(outcome, outcome.stumbled or id(outcome) in against) for outcome in outcomes),
        main.known.calls if main else (),
        main.known.source if main else "",
        main.known.final if main else None,
        rejects_solution(outcomes),
    )


def _outcomes(host: Host, verifier: Verifier, trials: Sequence[Any], main: Solved | None) -> Iterator[Outcome]:
    outcomes = run(host, verifier, trials)
    yield from outcomes
    if main is not None and not any(outcome.stumbled for outcome in outcomes):
        yield from run(host, verifier, list(collateral(main, outcomes, host)))


def statement_line(code: str, sql: str) -> int | None:
    """The line (from 1) of a verifier's source on which the text of a statement begins; None where it is put together.

    Pieces that the source fills in may be anything. Long statements are recorded cut off and matched as far.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    wanted = sql.strip()
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if SQL.match(text) and text.strip().startswith(wanted):
                return node.lineno
            case ast.JoinedStr(values=values) if SQL.match(_constant(values[0])):
                pieces = (re.escape(_constant(value)) if _constant(value) else ".*" for value in values)
                if re.fullmatch("".join(pieces).strip(), wanted, re.S):
                    return node.lineno
    return None


def _constant(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
