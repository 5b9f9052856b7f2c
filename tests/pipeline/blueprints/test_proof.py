"""Every environment does what it says: solutions are accepted, doing nothing and getting it wrong are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.blueprints.make import Blueprint, blueprint, domain_names, shipped_domain
from pipeline.blueprints.prove import play, prove
from pipeline.blueprints.tasks.solutions import Solver, tool_calls
from pipeline.blueprints.trial import HostRunner
from pipeline.model import Mode, Verifier
from pipeline.runtime.host import Host
from tests.pipeline.blueprints.local_runner import LocalRunner
from tests.pipeline.blueprints.snapshots import edited, query, rekeyed


@pytest.mark.parametrize("name", domain_names())
def test_every_domain_is_sound(name: str, tmp_path: Path):
    made = blueprint(shipped_domain(name), 7, 0)
    assert prove(made, LocalRunner(made.environment, tmp_path)) == []


@pytest.mark.parametrize("name", domain_names())
def test_reference_solutions_of_another_seed_are_accepted_too(name: str, tmp_path: Path):
    made = blueprint(shipped_domain(name), 8, 1)
    assert prove(made, LocalRunner(made.environment, tmp_path), wrong_ways=False) == []


@pytest.mark.parametrize("name", ["ledger", "museum_loans"])
def test_paper_sized_ones_are_sound(name: str, tmp_path: Path):
    made = blueprint(shipped_domain(name), 7, 0, "paper")
    assert prove(made, LocalRunner(made.environment, tmp_path)) == []


def test_the_sandboxed_workers_see_the_same():
    made = blueprint(shipped_domain("court_docket"), 7, 0)
    with Host() as host, host.program(made.environment) as program:
        assert prove(made, HostRunner(made.environment, host, program)) == []


@pytest.fixture
def ledger(tmp_path: Path) -> tuple[Blueprint, LocalRunner]:
    made = blueprint(shipped_domain("ledger"), 7, 0)
    return made, LocalRunner(made.environment, tmp_path)


def accepted(runner: LocalRunner, made: Blueprint, task: int, final: bytes, answer: str | None) -> list[bool]:
    verifiers = [made.environment.verifier(task, mode) for mode in Mode]
    return [runner.verify(verifier, final, answer)[0] for verifier in verifiers if verifier]


def test_a_proof_finds_a_verifier_that_accepts_anything(ledger: tuple[Blueprint, LocalRunner]):
    made, runner = ledger
    blind = Verifier(0, Mode.code, "def verify_task_completion(a, b, c=None):\n    return {'result': 'complete'}\n")
    verifiers = (blind, *made.environment.verifiers[1:])
    worse = replace(made, environment=replace(made.environment, verifiers=verifiers))
    found = prove(worse, runner)
    assert found
    assert {finding.tasks for finding in found} == {(0,)}
    assert any("accepts untouched" in finding.message for finding in found)


def test_the_books_balance_after_every_solution(ledger: tuple[Blueprint, LocalRunner], tmp_path: Path):
    made, runner = ledger
    lines = made.domain.entities["line"].table
    for task in made.tasks:
        final, _ = play(task.calls, runner)
        assert (
            query(
                final, f"SELECT ROUND(SUM(amount), 2) FROM {lines} GROUP BY entry_id HAVING ROUND(SUM(amount), 2) <> 0"
            )
            == []
        )


def test_other_orders_and_ways_are_accepted(tmp_path: Path):
    made = blueprint(shipped_domain("ledger"), 7, 0)
    runner = LocalRunner(made.environment, tmp_path)
    number, task = next((n, t) for n, t in enumerate(made.tasks) if t.meaning.form.name == "split_cost")
    backwards = (*task.calls[:-2], *reversed(task.calls[-2:]))
    final, refused = play(backwards, runner)
    assert not refused
    assert accepted(runner, made, number, final, task.answer) == [True, True]


def test_any_free_choice_is_accepted(tmp_path: Path):
    made = blueprint(shipped_domain("blood_bank"), 7, 1)
    runner = LocalRunner(made.environment, tmp_path)
    number, task = next((n, t) for n, t in enumerate(made.tasks) if t.meaning.form.name == "fill_with_any")
    assert len(task.meaning.outcomes) > 1
    solver = Solver(made.world, made.offered)
    for outcome in task.meaning.outcomes:
        final, _ = play(tool_calls(solver, outcome), runner)
        assert accepted(runner, made, number, final, str(outcome.answer[0])) == [True, True]


@pytest.mark.parametrize(
    "change",
    [str.upper, lambda text: f"  {text}\n", lambda text: f"The answer is: {text}.", lambda text: f'I did it. "{text}"'],
    ids=["capitals", "white space", "a sentence", "quotes"],
)
def test_the_wording_of_an_answer_is_free(ledger: tuple[Blueprint, LocalRunner], change: Callable[[str], str]):
    made, runner = ledger
    for number, task in enumerate(made.tasks):
        if task.answer is not None:
            final, _ = play(task.calls, runner)
            assert accepted(runner, made, number, final, change(task.answer)) == [True, True], task.text


LOOK_ALIKES = [("farm", 32), ("farm", 542), ("nature_reserve_permits", 373), ("print_shop", 695)]
"""Environments in which a task changes one of two rows that only what it changes tells apart."""


@pytest.mark.parametrize(("name", "index"), [("ledger", 0), ("clinic", 0), ("theatre", 0), *LOOK_ALIKES])
def test_other_ids_do_not_matter(name: str, index: int, tmp_path: Path):
    made = blueprint(shipped_domain(name), 7, index)
    runner = LocalRunner(made.environment, tmp_path)
    for number, task in enumerate(made.tasks):
        final, _ = play(task.calls, runner)
        runner.template, original = rekeyed(runner.template, made), runner.template
        assert accepted(runner, made, number, rekeyed(final, made), task.answer) == [True, True], task.text
        runner.template = original


def test_the_wrong_one_of_two_look_alikes_is_not_accepted(tmp_path: Path):
    made = blueprint(shipped_domain("farm"), 7, 32)
    runner = LocalRunner(made.environment, tmp_path)
    final, _ = play(made.tasks[4].calls, runner)
    states = "SELECT id, status FROM plantings WHERE id IN (2, 6) ORDER BY id"
    assert query(runner.template, states) == [(2, "growing"), (6, "lost")]
    assert query(final, states) == [(2, "brought_in"), (6, "lost")]
    swapped = edited(
        final,
        "UPDATE plantings SET status = 'growing' WHERE id = 2",
        "UPDATE plantings SET status = 'brought_in' WHERE id = 6",
    )
    elsewhere = edited(final, "UPDATE harvests SET planting_id = 6 WHERE planting_id = 2")
    assert accepted(runner, made, 4, final, None) == [True, True]
    assert accepted(runner, made, 4, swapped, None) == [False, False]
    assert accepted(runner, made, 4, elsewhere, None) == [False, False]


@pytest.mark.parametrize("name", ["clinic", "farm", "warehouse"])
def test_damage_anywhere_is_seen(name: str, tmp_path: Path):
    made = blueprint(shipped_domain(name), 7, 0)
    runner = LocalRunner(made.environment, tmp_path)
    for number, task in enumerate(made.tasks[:4]):
        final, _ = play(task.calls, runner)
        touched = {
            row.entity for row in (*task.meaning.outcomes[0].changes.changed, *task.meaning.outcomes[0].changes.made)
        }
        for entity in made.domain.entities.values():
            if entity.name not in touched:
                damaged = edited(final, f"DELETE FROM {entity.table} WHERE id = (SELECT MAX(id) FROM {entity.table})")
                assert accepted(runner, made, number, damaged, task.answer) == [False, False]
