"""Trials: what a verifier is asked to judge, what a sound one would say, and what this one says."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache

from curation.audit.answers import SAYING_NOTHING, wrong_answers
from curation.audit.kinds import KINDS, Category
from curation.audit.metamorphic import same_answers, same_states
from curation.audit.mutations import NearMiss, extra_changes, near_misses
from curation.audit.states import Known
from curation.audit.subject import Change, Diff, Tables, changes, differences
from curation.audit.tables import read_tables
from curation.audit.wording import Mentions
from pipeline.model import Verifier
from pipeline.runtime.edits import Edit
from pipeline.runtime.host import Case, Host, Verdict
from pipeline.runtime.launcher import WorkerLost

JUDGED_LATER = timedelta(days=400)
"""How much later a verifier is run to see whether it reads the clock: another day, month and year."""


@dataclass(frozen=True)
class Trial:
    """One case of a kind (see `kinds`), in words. Trials of one `unit` count as one, failed where all of them are."""

    kind: str
    says: str
    case: Case
    unit: str = ""

    @property
    def right(self) -> bool:
        """What a sound verifier says: complete, or not."""
        return KINDS[self.kind].right


@dataclass(frozen=True)
class Outcome:
    """What a verifier said; `judged` is what a judge made of evidence that does not say itself whether it holds."""

    trial: Trial
    verdict: Verdict
    judged: bool | None = None

    @property
    def accepted(self) -> bool | None:
        """Whether the verifier takes the case for complete; None where it does not say.

        Verifiers in sql mode say so where their evidence has `holds`, as those of blueprints do; other evidence needs
        a judge (`judged`). Where no query could work, what the verifier returned in spite of that is taken.
        """
        if self.trial.kind == "no_database" and self.verdict.said:
            return self.verdict.said == "complete"
        match self.verdict.verdict:
            case "complete":
                return True
            case "others" | "judge_error":
                return False
        holds = (self.verdict.evidence or {}).get("holds")
        return holds if isinstance(holds, bool) else self.judged

    @property
    def stumbled(self) -> bool:
        """Whether the verifier could not judge what every verifier must be able to: nothing done, or a solution."""
        return self.verdict.verdict == "judge_error" and self.trial.kind in ("untouched", "reference")

    @property
    def failed(self) -> bool:
        """Whether a sound verifier would have said something else."""
        return self.accepted is not None and self.accepted != self.trial.right


@dataclass(frozen=True)
class Solved:
    """A known solution with what it changes."""

    known: Known
    initial: Tables
    final: Tables
    differences: Diff
    changes: Sequence[Change]

    @property
    def category(self) -> Category:
        """`write` where it changes something, `read` where it only answers, `mixed` where it does both."""
        if not self.differences:
            return "read"
        return "mixed" if self.known.asks else "write"


def solved(known: Known, task: str, volatile: frozenset[tuple[str, str]]) -> Solved:
    """Work out what a known solution changes and what of it the task asks for."""
    initial, final = read_tables(known.initial), read_tables(known.final)
    found = differences(known.initial, known.final)
    named = Mentions(f"{task}\n{known.answer}" if known.asks else task)
    about = changes(initial, final, found, named, volatile=volatile, calls=known.calls)
    return Solved(known, initial, final, found, about)


def run(host: Host, verifier: Verifier, trials: Sequence[Trial]) -> list[Outcome]:
    """What a verifier says in each trial, up to the first that it must be able to judge and cannot."""
    outcomes: list[Outcome] = []
    with closing(host.verdicts(verifier, [trial.case for trial in trials])) as verdicts:
        for trial, verdict in zip(trials, verdicts, strict=True):
            outcomes.append(Outcome(trial, verdict))
            if outcomes[-1].stumbled:
                break
    return outcomes


def without_solution(snapshot: bytes, now: datetime, host: Host) -> Iterator[Trial]:
    """Trials that need no known solution: nothing was done, everything is gone, nothing can be read."""
    for how, answer in SAYING_NOTHING.items():
        yield Trial("untouched", f"the untouched database and {how}", Case(snapshot, snapshot, answer, now))
    (bare,) = edited(host, snapshot, [emptying(read_tables(snapshot))], now)
    if bare is not None:
        yield Trial("emptied", "every table is empty in the end", Case(snapshot, bare, None, now))
    nothing = no_tables()
    yield Trial("no_database", "neither database has any table", Case(nothing, nothing, None, now))


def with_solution(one: Solved, task: str, host: Host) -> Iterator[Trial]:
    """Trials made from a known solution: itself, what means the same, and what is nearly right and wrong."""
    yield Trial("reference", f"the known solution ({one.known.source})", case_of(one.known))
    yield from equivalents(one, task, host)
    yield from wrong_ends(one, task, host)


def case_of(known: Known) -> Case:
    """The case of a known solution itself."""
    return Case(known.initial, known.final, known.answer, known.now)


def equivalents(one: Solved, task: str, host: Host) -> Iterator[Trial]:
    """What a known solution can be changed into without changing what it means."""
    case = case_of(one.known)
    if one.known.asks and one.known.answer:
        for how, text in same_answers(one.known.answer):
            yield Trial("answer_form", f"the right answer {how}: {text!r}", replace(case, answer=text))
    yield Trial("clock", f"judged {JUDGED_LATER.days} days later", replace(case, now=case.now + JUDGED_LATER))
    said = Mentions(f"{task}\n{one.known.answer or ''}")
    same = list(same_states(one.initial, one.final, one.changes, said))
    initials = edited(host, case.initial, [state.initial for state in same], case.now)
    finals = edited(host, case.final, [state.final for state in same], case.now)
    for state, initial, final in zip(same, initials, finals, strict=True):
        if initial is not None and final is not None:
            yield Trial(state.kind, state.says, replace(case, initial=initial, final=final))


def wrong_ends(one: Solved, task: str, host: Host) -> Iterator[Trial]:
    """What is nearly a known solution, and wrong."""
    case, said = case_of(one.known), Mentions(task)
    if one.differences:
        untouched = replace(case, final=case.initial)
        yield Trial("untouched_answered", "the untouched database with the right answer", untouched)
    if one.known.asks and one.known.answer:
        if one.differences:  # where nothing changes, these are the untouched database
            for how, text in SAYING_NOTHING.items():
                yield Trial("no_answer", f"the right state and {how}", replace(case, answer=text))
        for wrong in wrong_answers(one.known.answer, said, one.final):
            yield Trial("wrong_answer", f"{wrong.says}: {wrong.text!r}", replace(case, answer=wrong.text), wrong.unit)
    misses = [*near_misses(one.final, one.changes), *extra_changes(one.final, one.changes)]
    yield from _made(misses, case, host)


def _made(misses: Sequence[NearMiss], case: Case, host: Host) -> Iterator[Trial]:
    finals = iter(edited(host, case.final, [way for miss in misses for way in miss.ways], case.now))
    for miss in misses:
        ways = [next(finals) for _ in miss.ways]
        final = next((way for way in ways if way is not None and way != case.final), None)
        if final is not None:
            yield Trial(miss.kind, miss.says, replace(case, final=final), miss.unit)


def collateral(one: Solved, outcomes: Iterable[Outcome], host: Host) -> Iterator[Trial]:
    """Every table that the verifier never read and the solution does not change, emptied."""
    unread = tables_unread(one, outcomes)
    if not unread:
        return
    case = case_of(one.known)
    (final,) = edited(host, case.final, [tuple(Edit(table, {}, None) for table in unread)], case.now)
    if final is not None:
        yield Trial("collateral", f"all rows of {', '.join(unread)} are deleted", replace(case, final=final))


def tables_unread(one: Solved, outcomes: Iterable[Outcome]) -> list[str]:
    """The tables with rows that no trial saw the verifier read, and that the solution leaves alone."""
    read = {table.casefold() for outcome in outcomes for _, table, _ in outcome.verdict.reads}
    return [
        name
        for name, table in one.final.items()
        if table.rows and name.casefold() not in read and name not in one.differences
    ]


def emptying(tables: Tables) -> tuple[Edit, ...]:
    """The edits that delete every row."""
    return tuple(Edit(table, {}, None) for table in tables)


def edited(host: Host, snapshot: bytes, changes: Sequence[Sequence[Edit]], now: datetime) -> list[bytes | None]:
    """As `Host.edit`; what ends its worker cannot be made."""
    if not changes:
        return []
    try:
        return host.edit(snapshot, changes, now=now)
    except WorkerLost:
        return [None] * len(changes)


@cache
def no_tables() -> bytes:
    """A sound database without a table."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version = 1")  # writes the file's header, which an empty database lacks
        return connection.serialize()
