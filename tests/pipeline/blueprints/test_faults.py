"""A verifier with an injected fault does what its label says, and the sound one does not."""

from __future__ import annotations

import datetime
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pipeline.blueprints.faults import FAULTS, Injected, blueprint_of, inject
from pipeline.blueprints.language.domain import Entity
from pipeline.blueprints.make import Blueprint, blueprint, domain_names, environment, shipped_domain
from pipeline.blueprints.prove import play
from pipeline.blueprints.rows.world import Row
from pipeline.blueprints.tasks.planning import Task
from pipeline.errors import UserError
from pipeline.model import Mode, Verifier
from pipeline.runtime.host import Host
from tests.pipeline.blueprints.local_runner import LocalRunner
from tests.pipeline.blueprints.snapshots import edited, query, rekeyed

WITNESSES = 2
"""Faulty verifiers of each kind that are looked at."""


@dataclass
class Case:
    """A faulty verifier beside the sound one, and the right end of their task."""

    made: Blueprint
    runner: LocalRunner
    number: int
    fault: Injected

    @property
    def task(self) -> Task:
        return self.made.tasks[self.number]

    @property
    def sound(self) -> Verifier:
        verifier = self.made.environment.verifier(self.number, Mode.code)
        assert verifier
        return verifier

    @property
    def right(self) -> bytes:
        return play(self.task.calls, self.runner)[0]

    def entity(self, row: Row) -> Entity:
        return self.made.domain.entities[row.entity]

    def faulty_accepts(self, final: bytes, answer: str | None) -> bool:
        return self.runner.verify(self.fault.verifier, final, answer)[0]

    def sound_accepts(self, final: bytes, answer: str | None) -> bool:
        return self.runner.verify(self.sound, final, answer)[0]

    def wrongly_accepts(self, final: bytes, answer: str | None) -> bool:
        return self.faulty_accepts(final, answer) and not self.sound_accepts(final, answer)

    def wrongly_rejects(self, final: bytes, answer: str | None) -> bool:
        return self.sound_accepts(final, answer) and not self.faulty_accepts(final, answer)


def cases(kind: str, folder: Path) -> Iterator[Case]:
    """Verifiers with a fault of a kind, one an environment."""
    found = 0
    for name in domain_names():
        made = blueprint(shipped_domain(name), 7, 0)
        for number in range(len(made.tasks)):
            if fault := inject(made.environment, kind, number):
                yield Case(made, LocalRunner(made.environment, folder), number, fault)
                found += 1
                break
        if found == WITNESSES:
            return
    assert found, f"no task of seed 7 has a place for {kind}"


def changed_column(case: Case) -> tuple[Row, str, str]:
    row, fields = next(iter(case.task.meaning.outcomes[0].changes.changed.items()))
    entity = case.entity(row)
    return row, entity.table, entity.fields[next(iter(fields))].column


def accepts_untouched(case: Case) -> bool:
    return case.wrongly_accepts(case.runner.template, None)


def any_row(case: Case) -> bool:
    return case.wrongly_accepts(case.runner.template, case.task.answer)


def ignores_clause(case: Case) -> bool:
    row, table, column = changed_column(case)
    was = query(case.runner.template, f"SELECT {column} FROM {table} WHERE id = {row.id}")[0][0]
    undone = edited(case.right, f"UPDATE {table} SET {column} = {was!r} WHERE id = {row.id}".replace("None", "NULL"))
    return case.wrongly_accepts(undone, case.task.answer)


def ignores_collateral(case: Case) -> bool:
    changes = case.task.meaning.outcomes[0].changes
    touched = {row.entity for row in (*changes.changed, *changes.made, *changes.lost)}
    other = next(entity for name, entity in case.made.domain.entities.items() if name not in touched)
    return case.wrongly_accepts(edited(case.right, f"DELETE FROM {other.table}"), case.task.answer)


def ignores_answer(case: Case) -> bool:
    return case.wrongly_accepts(case.right, None)


def checks_fewer(case: Case) -> bool:
    return case.wrongly_accepts(play(doing(case)[:1], case.runner)[0], case.task.answer)


def doing(case: Case) -> tuple:
    return case.task.calls[-len(case.task.meaning.outcomes[0].performed) :]


def counts_only(case: Case) -> bool:
    row = next(iter(case.task.meaning.outcomes[0].changes.made))
    entity = case.entity(row)
    column = next(
        one.column
        for one in entity.fields.values()
        if one.notation.form not in ("code", "stamp") and one.notation.kind.base != "row"
    )
    newest = f"SELECT MAX(id) FROM {entity.table}"
    kind = next(one.notation.kind for one in entity.fields.values() if one.column == column)
    other = (
        repr(
            next(
                c
                for c in kind.choices
                if c != query(case.right, f"SELECT {column} FROM {entity.table} WHERE id = ({newest})")[0][0]
            )
        )
        if kind.choices
        else f"{column} || '9'"
    )
    return case.wrongly_accepts(
        edited(case.right, f"UPDATE {entity.table} SET {column} = {other} WHERE id = ({newest})"), case.task.answer
    )


def off_by_one(case: Case) -> bool:
    return case.wrongly_accepts(case.right, str(case.task.meaning.outcomes[0].answer[0] + 1))


def loose_number(case: Case) -> bool:
    return case.wrongly_accepts(case.right, f"9{case.task.meaning.outcomes[0].answer[0]:g}9")


def swallows_errors(case: Case) -> bool:
    table = next(iter(case.made.domain.entities.values())).table
    broken = edited(case.right, f"DROP TABLE {table}")
    with pytest.raises(Exception, match="no such table"):
        case.sound_accepts(broken, case.task.answer)
    return case.faulty_accepts(broken, case.task.answer)


def wrong_row(case: Case) -> bool:
    return case.wrongly_rejects(case.right, case.task.answer)


def hard_coded_id(case: Case) -> bool:
    assert case.faulty_accepts(case.right, case.task.answer)
    final = rekeyed(case.right, case.made)
    case.runner.template = rekeyed(case.runner.template, case.made)
    assert case.sound_accepts(final, case.task.answer)
    try:
        return not case.faulty_accepts(final, case.task.answer)
    except sqlite3.IntegrityError:  # what it does to rows that are not there may not even be possible
        return True


def strict_wording(case: Case) -> bool:
    assert case.faulty_accepts(case.right, case.task.answer)
    return case.wrongly_rejects(case.right, f"  {case.task.answer} ")


def reads_clock(case: Case) -> bool:
    later = datetime.datetime(2026, 7, 1, tzinfo=datetime.UTC)
    arguments = (case.runner.template, case.right, case.task.answer)
    with Host() as host:
        now, then = (
            host.verify(case.fault.verifier, *arguments, now=day).verdict for day in (case.made.environment.now, later)
        )
        sound = host.verify(case.sound, *arguments, now=later).verdict
    return (now, then, sound) == ("complete", "others", "complete")


def wants_order(case: Case) -> bool:
    assert case.faulty_accepts(case.right, case.task.answer)
    order = doing(case)
    final, refused = play((*case.task.calls[: -len(order)], *reversed(order)), case.runner)
    assert not refused
    return case.wrongly_rejects(final, case.task.answer)


def wants_free(case: Case) -> bool:
    return case.wrongly_rejects(case.right, case.task.answer)


def wants_extra(case: Case) -> bool:
    return case.wrongly_rejects(case.right, case.task.answer)


def crashes(case: Case) -> bool:
    with pytest.raises(Exception, match="no such column"):
        case.faulty_accepts(case.right, case.task.answer)
    return case.sound_accepts(case.right, case.task.answer)


SHOWN_BY: dict[str, Callable[[Case], bool]] = {
    function.__name__: function
    for function in (
        accepts_untouched, any_row, ignores_clause, ignores_collateral, ignores_answer, checks_fewer, counts_only,
        off_by_one, loose_number, swallows_errors, wrong_row, hard_coded_id, strict_wording, reads_clock, wants_order,
        wants_free, wants_extra, crashes,
    )
}  # fmt: skip


def test_there_are_at_least_ten_kinds_and_each_is_shown():
    assert len(FAULTS) >= 10
    assert SHOWN_BY.keys() == FAULTS.keys()
    assert {fault.leaning for fault in FAULTS.values()} == {"loose", "strict", "broken"}


@pytest.mark.parametrize("kind", list(FAULTS))
def test_a_faulty_verifier_does_what_its_label_says(kind: str, tmp_path: Path):
    for case in cases(kind, tmp_path):
        assert case.fault.leaning == FAULTS[kind].leaning
        assert case.fault.verifier.code != case.sound.code
        assert SHOWN_BY[kind](case), case.task.text


@pytest.mark.parametrize("kind", [kind for kind, fault in FAULTS.items() if fault.leaning == "loose"])
def test_a_loose_verifier_still_accepts_what_is_right(kind: str, tmp_path: Path):
    case = next(cases(kind, tmp_path))
    assert case.faulty_accepts(case.right, case.task.answer)


def test_the_meaning_of_an_environment_is_found_again_from_its_name():
    made = environment("clinic", 3, 5, "paper")
    assert blueprint_of(made).environment == made


def test_a_fault_needs_an_environment_made_by_rules_a_known_kind_and_a_task():
    made = environment("clinic", 3, 5)
    for wrong in (replace(made, domain=None), replace(made, name="clinic"), replace(made, tasks=("Edited.",))):
        with pytest.raises(UserError):
            inject(wrong, "any_row", 0)
    with pytest.raises(UserError, match="There is no fault"):
        inject(made, "rude", 0)
    with pytest.raises(UserError, match="has no task 10"):
        inject(made, "any_row", 10)
