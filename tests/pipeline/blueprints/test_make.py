"""Environments are a function of (domain, seed, index, size): the same bytes everywhere, others for another seed."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import asdict

import orjson
import pytest

from pipeline.blueprints.make import blueprint, domain_names, environment, shipped_domain
from pipeline.blueprints.synthesis import contents
from pipeline.model import Environment, Mode, normalise
from pipeline.rules.interface import spec_findings
from pipeline.rules.tasks import task_findings

ALL = domain_names()

FINGERPRINT = """
import hashlib
from pipeline.blueprints.make import domain_names, environment
from pipeline.blueprints.synthesis import contents
digest = hashlib.sha256()
for number, name in enumerate(domain_names()):
    for part in contents(environment(name, 7, 2, "small" if number % 5 else "paper")):
        digest.update(repr(part).encode())
print(digest.hexdigest())
"""


def fingerprint(made: Environment) -> str:
    return hashlib.sha256(orjson.dumps(asdict(made), option=orjson.OPT_NON_STR_KEYS)).hexdigest()


def test_two_processes_make_the_same_bytes_of_every_domain_whatever_the_order_of_their_hashes():
    said = {
        subprocess.run(
            [sys.executable, "-c", FINGERPRINT],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "12345")
    }
    assert len(said) == 1


def test_another_seed_or_index_makes_another_environment():
    made = [environment("ledger", seed, index) for seed in (0, 1, 2) for index in (0, 1, 2)]
    assert len({one.name for one in made}) == len(made)
    assert len({one.tasks for one in made}) == len(made)
    assert len({one.sample for one in made}) == len(made)


def test_variants_of_a_domain_differ_in_tables_names_tools_and_words():
    made = [environment("blood_bank", 7, index) for index in range(12)]
    tables = {frozenset(table.name for table in one.schema) for one in made}
    tools = {frozenset(operation.operation_id for operation in one.operations) for one in made}
    assert len(tables) >= 8
    assert len(tools) >= 8
    assert {"bags", "units"} <= {table.name for one in made for table in one.schema}
    openings = {task.split()[0] for one in made for task in one.tasks}
    assert {"Please", "Could", "Discard"} <= openings


@pytest.mark.parametrize("name", ALL)
def test_every_environment_is_whole(name: str):
    made = environment(name, 7, 0)
    assert made.missing == ()
    assert made.name == normalise(made.name)
    assert made.name.startswith(f"{name}_")
    assert (made.origin, made.domain) == ("blueprint", name)
    assert len(made.tasks) == len(set(made.tasks)) == len(made.solutions) == 10
    assert {(v.task, v.mode) for v in made.verifiers} == {(n, mode) for n in range(10) for mode in Mode}
    assert f'blueprint domain "{name}" of awm-studio; no model wrote it' in (made.code or "")
    assert all(1 <= len(solution.calls) <= 8 for solution in made.solutions)


@pytest.mark.parametrize("name", ALL)
def test_every_environment_keeps_the_rules_for_specs_and_tasks(name: str):
    for index in range(3):
        made = environment(name, 11, index)
        assert spec_findings(made.operations, [table.name for table in made.schema]) == ()
        assert task_findings(made.tasks, count=10) == ()


@pytest.mark.parametrize("name", ALL)
def test_small_ones_are_small(name: str):
    for index in range(3):
        made = environment(name, 5, index)
        assert 6 <= len(made.schema) <= 10
        assert 12 <= len(made.operations) <= 20


def test_paper_sized_ones_are_near_the_means_of_the_field():
    made = [environment(name, 7, 0, "paper") for name in ALL]

    def mean(values: list[int]) -> float:
        return sum(values) / len(values)

    assert 17 <= mean([len(one.schema) for one in made]) <= 19
    assert 115 <= mean([sum(len(t.inserts) for t in one.sample) for one in made]) <= 145
    assert 33 <= mean([len(one.operations) for one in made]) <= 37


def test_every_kind_of_task_is_there_in_every_domain():
    for name in ALL:
        kinds = {task.kind for index in range(3) for task in blueprint(shipped_domain(name), 7, index).tasks}
        assert kinds >= {"ask", "several", "refuse", "direct"}, name
    everywhere = [task for name in ALL for task in blueprint(shipped_domain(name), 7, 0).tasks]
    share = {
        kind: sum(t.kind == kind for t in everywhere) / len(everywhere)
        for kind in ("ask", "choose", "several", "refuse")
    }
    assert all(part >= 0.12 for part in share.values()), share


def test_what_a_task_finds_has_twins_that_differ_in_one_thing():
    made = blueprint(shipped_domain("blood_bank"), 7, 1)
    task = next(t for t in made.tasks if t.meaning.form.name in ("issue_oldest", "fill_with_any"))
    bag = task.meaning.variables["bag"]
    fields = ("donor", "fridge", "given_on", "status")

    def differences(other: object) -> int:
        return sum(getattr(other, name) != getattr(bag, name) for name in fields)

    assert min(differences(other) for other in made.world["bag"] if other is not bag) == 1


def test_contents_come_in_the_order_of_the_stages():
    parts = [part.value for part, _, _ in contents(environment("clinic", 7, 0))]
    assert list(dict.fromkeys(parts)) == [
        "scenario",
        "tasks",
        "schema",
        "sample",
        "spec",
        "code",
        "verifier",
        "solution",
    ]
