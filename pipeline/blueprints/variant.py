"""Which of a domain's entities, fields, actions and names an environment has: chosen by its seed."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from pipeline.blueprints.language.domain import (
    Action,
    Create,
    Domain,
    Effect,
    Entity,
    Field,
    Rule,
    TaskForm,
    plural,
)

Size = Literal["small", "paper"]

TABLES: Mapping[Size, tuple[int, int]] = {"small": (6, 10), "paper": (16, 19)}
"""How many tables an environment has. AWM's have about 18 on average (arXiv 2602.10090)."""

LIKELY = 0.6
"""How likely a small environment has an optional entity, field or action of its own domain."""


@dataclass(frozen=True)
class Style:
    """How an environment's tools are called."""

    listing: str
    reading: str
    root: str


STYLES = (Style("list", "get", "/api"), Style("search", "get", "/api"), Style("find", "show", "/api/v1"))


def vary(domain: Domain, size: Size, rng: random.Random) -> Domain:
    """A variant of a domain: without some of what is optional, and with one name for everything.

    A paper-sized one has all of its own domain, and as many of the shared records as make up its tables.
    """
    chosen = _entities(domain, size, rng)
    optional = [f"{e.name}.{f.name}" for e in domain.entities.values() for f in e.fields.values() if f.optional]
    absent = {name for name in optional if size == "small" and rng.random() >= LIKELY}
    entities = _complete(domain, chosen, absent)
    renamed = _rename(entities, rng)
    have = _available(entities.values())
    actions = {
        name: kept
        for name, action in domain.actions.items()
        if not (action.optional and size == "small" and rng.random() >= LIKELY)
        and (kept := _action(action, have, renamed)) is not None
    }
    tasks = {name: kept for name, form in domain.tasks.items() if (kept := _task(form, have, actions)) is not None}
    return replace(domain, entities=renamed, actions=actions, tasks=tasks)


# Entities


def _entities(domain: Domain, size: Size, rng: random.Random) -> set[str]:
    """The names of the entities to start from; those that need an absent one fall out later."""
    target = rng.randint(*TABLES[size])
    chosen = {name for name, entity in domain.entities.items() if not entity.optional and not entity.shared}
    own = [name for name, entity in domain.entities.items() if entity.optional and not entity.shared]
    shared = [name for name, entity in domain.entities.items() if entity.optional and entity.shared]
    followers = {name for name, entity in domain.entities.items() if not entity.optional and entity.shared}
    rng.shuffle(own), rng.shuffle(shared)
    for name in (*own, *shared):
        count = len(_complete(domain, chosen | followers, set()))
        likely = size == "paper" or rng.random() < LIKELY
        wanted = likely if name in own else size == "paper" or count < TABLES[size][0]
        if wanted and count < target:
            chosen.add(name)
    return chosen | followers


def _complete(domain: Domain, chosen: set[str], absent: set[str]) -> dict[str, Entity]:
    """The chosen entities that have all they refer to, without the fields that lack something."""
    entities = {name: entity for name, entity in domain.entities.items() if name in chosen}
    while True:
        have = _available(entities.values()) - absent
        kept = {name: _fitting(entity, have) for name, entity in entities.items()}
        after = {name: entity for name, entity in kept.items() if entity is not None}
        if after == entities:
            return after
        entities = after


def _available(entities: Iterable[Entity]) -> frozenset[str]:
    entities = list(entities)
    fields = {f"{entity.name}.{name}" for entity in entities for name in (*entity.fields, "id")}
    return frozenset({entity.name for entity in entities} | fields)


def _fitting(entity: Entity, have: frozenset[str]) -> Entity | None:
    """An entity without what is not there; None where it cannot do without."""
    fields: dict[str, Field] = {}
    for name, one in entity.fields.items():
        if f"{entity.name}.{name}" in have and one.notation.needs <= have:
            fields[name] = one
        elif (one.reference and not one.notation.kind.nullable) or entity.per == name:
            return None
    return replace(
        entity,
        fields=fields,
        rules=tuple(rule for rule in entity.rules if rule.needs <= have),
        such_that=tuple(test for test in entity.such_that if test.needs <= have),
    )


def _rename(entities: Mapping[str, Entity], rng: random.Random) -> dict[str, Entity]:
    """One of its names for every entity and field; nothing has the name of something else."""
    taken = set(entities)
    words: dict[str, str] = {}
    for name, entity in entities.items():
        word = rng.choice(entity.words)
        words[name] = name if word in taken else word
        taken.add(words[name])
    renamed: dict[str, Entity] = {}
    for name, entity in entities.items():
        fields: dict[str, Field] = {}
        used = set(entity.fields)
        for key, one in entity.fields.items():
            column = rng.choice(one.words if one.words != (one.reference,) else (words[key],))
            if column in used:
                column = key
            used.add(column)
            fields[key] = replace(one, word=column)
        renamed[name] = replace(entity, word=words[name], fields=fields)
    return renamed


# Actions and tasks


def _action(action: Action, have: frozenset[str], entities: Mapping[str, Entity]) -> Action | None:
    """An action without what is not there, under its name in this environment; None where nothing is left of it."""
    questions = [question for question in (action.finds, action.gives) if question]
    if not all(parameter.needs <= have for parameter in action.takes):
        return None
    if not all(question.needs <= have for question in questions):
        return None
    does: list[Effect] = []
    for effect in action.does:
        if effect.needs <= have:
            does.append(_with_known_values(effect, entities) if isinstance(effect, Create) else effect)
        elif isinstance(effect, Create) and effect.bind:
            return None
    if not does and not questions:
        return None
    takes = tuple(
        replace(p, word=entities[p.entity].word) if p.entity and p.name == p.entity else p for p in action.takes
    )
    return replace(
        action,
        asks=tuple(ask for ask in action.asks if ask.needs <= have),
        rules=_known(action.rules, have),
        takes=takes,
        does=tuple(does),
        word=in_words(action.name, entities),
    )


def _known(rules: Iterable[Rule], have: frozenset[str]) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules if rule.needs <= have)


def _with_known_values(create: Create, entities: Mapping[str, Entity]) -> Create:
    fields = entities[create.entity].fields
    return replace(create, values={name: value for name, value in create.values.items() if name in fields})


def in_words(name: str, entities: Mapping[str, Entity]) -> str:
    """An action's name with the entities in it under the names they have here: `issue_bag` may be `issue_unit`."""
    for entity in entities.values():
        for said, word in ((plural(entity.name), entity.table), (entity.name, entity.word)):
            changed = re.sub(rf"(?:(?<=_)|^){said}(?=_|$)", word, name)
            if changed != name:
                name = changed
                break
    return name


def _task(form: TaskForm, have: frozenset[str], actions: Mapping[str, Action]) -> TaskForm | None:
    says = tuple(say for say in form.says if say.needs <= have)
    if not says or not form.needs <= have or any(step.action not in actions for step in (*form.steps, *form.otherwise)):
        return None
    return replace(form, says=says)
