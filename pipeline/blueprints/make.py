"""Makes environments from domains: a function of (domain, seed, index, size) and nothing else."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from pipeline.blueprints.application import database
from pipeline.blueprints.application.interface import Endpoint, endpoints, operations
from pipeline.blueprints.application.program import application
from pipeline.blueprints.language.domain import Domain
from pipeline.blueprints.language.reading import read_domain
from pipeline.blueprints.language.source import read
from pipeline.blueprints.rows.seeding import Seeding
from pipeline.blueprints.rows.twins import add_twins
from pipeline.blueprints.rows.world import World
from pipeline.blueprints.tasks.planning import Planner, Task
from pipeline.blueprints.tasks.solutions import Solver
from pipeline.blueprints.variant import STYLES, Size, vary
from pipeline.blueprints.verifiers.code_mode import code_verifier
from pipeline.blueprints.verifiers.sql_mode import sql_verifier
from pipeline.errors import UserError
from pipeline.model import DEFAULT_NOW, AuthorKind, Environment, Mode, Solution, Verifier

TASKS = 10
"""Tasks an environment has, as in AWM."""

WORLD_TRIES = 30
"""Worlds drawn until the rules over all rows hold and there are tasks enough."""


@dataclass(frozen=True)
class Blueprint:
    """What one environment is made from, with its tasks' meanings: what the environment itself no longer says."""

    domain: Domain
    world: World
    offered: tuple[Endpoint, ...]
    tasks: tuple[Task, ...]
    environment: Environment


def shipped_text(name: str) -> str:
    """The text of a file in data/domains."""
    return (resources.files("data") / "domains" / name).read_text(encoding="utf-8")


@cache
def shared_words() -> Mapping[str, tuple[str, ...]]:
    """The words every domain draws from."""
    section = read(shipped_text("_words.yaml"), "_words.yaml")
    return {key: tuple(word.text.replace("_", " ") for word in section.texts(key)) for key in section.items}


@cache
def domain_names() -> tuple[str, ...]:
    """The domains that are shipped, by name."""
    files = (resources.files("data") / "domains").iterdir()
    names = (file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml"))
    return tuple(sorted(name for name in names if not name.startswith("_")))


@cache
def shipped_domain(name: str) -> Domain:
    """A domain that is shipped."""
    return read_domain(shipped_text(f"{name}.yaml"), f"{name}.yaml", common=shipped_text("_common.yaml"))


def blueprint(domain: Domain, seed: int, index: int, size: Size = "small", *, tasks: int = TASKS) -> Blueprint:
    """The blueprint of one environment. The same arguments give the same bytes, in any process."""
    stem = f"{domain.name}/{seed}/{index}/{size}"
    rng = random.Random(stem)  # noqa: S311 (reproducible, not secret)
    place = rng.choice(shared_words()["towns"])
    best: Blueprint | None = None
    for attempt in range(WORLD_TRIES):
        rng = random.Random(f"{stem}/{attempt}")  # noqa: S311
        variant = vary(domain, size, rng)
        words = {**shared_words(), **domain.words}
        seeding = Seeding(variant, words, rng)
        if not seeding.fill():
            continue
        seeding.world.keep()
        for form in variant.tasks.values():
            add_twins(form, seeding, rng)
        offered = endpoints(variant, rng.choice(STYLES), size, rng)
        planned = Planner(seeding, Solver(seeding.world, offered), rng).plan(tasks)
        if best is None or len(planned) > len(best.tasks):
            name = "_".join((domain.name, place.lower().replace(" ", "_"), *(["paper"] if size == "paper" else [])))
            made = _assemble(variant, seeding.world, offered, tuple(planned), f"{name}_{seed}_{index}", place)
            best = made
        if len(planned) == tasks:
            break
    if best is None:
        raise UserError(
            f"{domain.file}: {WORLD_TRIES} times, some entity got no rows, or rules that are computed over all rows "
            f"were broken (seed {seed}, index {index}); make rows likelier to keep the rules"
        )
    return best


def _assemble(
    domain: Domain, world: World, offered: tuple[Endpoint, ...], tasks: tuple[Task, ...], name: str, place: str
) -> Blueprint:
    title = domain.title.replace("{place}", place)
    environment = Environment(
        name=name,
        title=title,
        description=described(domain, title),
        origin=AuthorKind.blueprint.value,
        domain=domain.name,
        now=DEFAULT_NOW,
        tasks=tuple(task.text for task in tasks),
        schema=database.schema(domain),
        sample=database.sample(world),
        operations=operations(domain, offered),
        code=application(domain, offered, name=name, title=title),
        verifiers=tuple(
            Verifier(number, mode, write(task, world))
            for number, task in enumerate(tasks)
            for mode, write in ((Mode.code, code_verifier), (Mode.sql, sql_verifier))
        ),
        solutions=tuple(Solution(number, task.calls, task.answer) for number, task in enumerate(tasks)),
    )
    return Blueprint(domain, world, offered, tasks, environment)


def described(domain: Domain, title: str) -> str:
    """The scenario in words: what it is about, and what records it keeps."""
    nouns = [entity.nouns for entity in domain.entities.values()]
    return f"{title}. {domain.about} It keeps records of {', '.join(nouns[:-1])} and {nouns[-1]}."


def environment(domain: str | Domain, seed: int, index: int, size: Size = "small") -> Environment:
    """One environment of a shipped (or given) domain."""
    return blueprint(shipped_domain(domain) if isinstance(domain, str) else domain, seed, index, size).environment
