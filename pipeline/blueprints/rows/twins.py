"""Rows that differ from the one a task is about in one thing that matters, so that finding it takes reading."""

from __future__ import annotations

import random
from typing import Any

from pipeline.blueprints.language.domain import Find, TaskForm
from pipeline.blueprints.language.expressions import Attribute, Node, Variable, conjuncts, expression_of, walk
from pipeline.blueprints.rows.seeding import OutOfNames, Seeding
from pipeline.blueprints.rows.world import Row
from pipeline.blueprints.tasks.meaning import Impossible, Meaning, bind

TWINS = 2
"""How many twins the row that a task finds gets at most."""

DRAWS = 12
"""Values drawn for the one thing that differs, until it does."""


def add_twins(form: TaskForm, seeding: Seeding, rng: random.Random) -> None:
    """Give the row that a task finds twins which miss one of its conditions each, where the rules allow them."""
    finds = [item for item in form.find if item.condition]
    if not finds:
        return
    try:
        meaning = bind(form, seeding, rng)
    except Impossible:
        return
    for item in finds:
        found = meaning.variables[item.name]
        row = found[0] if isinstance(found, list) else found
        parts = list(conjuncts(item.condition.node if item.condition else None))
        rng.shuffle(parts)
        made = 0
        for part in parts:
            if made < TWINS and _twin(item, row, part, meaning, seeding, rng):
                made += 1


def _twin(item: Find, row: Row, part: Node, meaning: Meaning, seeding: Seeding, rng: random.Random) -> bool:
    """Add a row like `row` that fails one part of the condition and meets the others."""
    world = seeding.world
    entity = world.domain.entities[item.entity]
    plain = {name for name, one in entity.fields.items() if not one.notation.unique and not one.notation.formula}
    names = sorted(plain & _fields(part, item.item))
    if not names:
        return False
    same = {name: getattr(row, name) for name in plain}
    others = [other for other in conjuncts(item.condition.node if item.condition else None) if other is not part]
    for _ in range(DRAWS):
        name = rng.choice(names)
        notation = entity.fields[name].notation
        value = seeding.value(name, notation, {item.entity: row})
        if value == same[name]:
            continue
        try:
            twin = seeding.row(entity, {**same, name: value})
        except OutOfNames:
            world.undo()
            return False
        bound: dict[str, Any] = {**meaning.variables, item.item: twin}
        if (
            twin is not None
            and not world.value(expression_of(part), bound)
            and all(world.value(expression_of(other), bound) for other in others)
        ):
            seeding.children(twin)
            if seeding.finish():
                world.keep()
                return True
        world.undo()
    return False


def _fields(node: Node, item: str) -> set[str]:
    """The fields of a row variable that a node reads directly."""
    return {
        part.field
        for part in walk(node)
        if isinstance(part, Attribute) and isinstance(part.base, Variable) and part.base.name == item
    }
