"""What a task means for the rows at hand: which ones it is about, and what is different once it is done.

A `Meaning` is found by trying the task's goal in the world: the rows it names, the ones it describes, and for every
acceptable choice the outcome. Solutions, verifiers in sql mode and wrong attempts are all made from it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline.blueprints.language.domain import Action, Find, Given, Rule, Step, TaskForm
from pipeline.blueprints.language.expressions import Expression, Variable, expression_of
from pipeline.blueprints.rows.seeding import Seeding, given_all
from pipeline.blueprints.rows.world import Changes, Row, World
from pipeline.blueprints.tasks.wording import filled

FEW, MANY = 2, 4
"""How many rows a goal that goes over a set is about: more would make solutions longer than eight calls."""

LISTED = 6
"""The most items an answer lists."""

CHOICES = 12
"""The most rows a task leaves a free choice among."""

DRAWS = 60
"""Random arguments tried for an action, to sort what it accepts from what it refuses."""


@dataclass(frozen=True)
class Performed:
    """One action of a goal, with the values it is done with."""

    action: Action
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """One acceptable end: what was done, what is different for it, and what the answer says."""

    variables: Mapping[str, Any]
    performed: tuple[Performed, ...]
    changes: Changes
    answer: tuple[Any, ...]


@dataclass(frozen=True)
class Meaning:
    """A task form with its variables bound; several outcomes where it leaves a choice, the first being the reference.

    `reason` is why nothing is to be done, where that is so.
    """

    form: TaskForm
    outcomes: tuple[Outcome, ...]
    reason: str = ""

    @property
    def variables(self) -> Mapping[str, Any]:
        """The variables as the reference has them."""
        return self.outcomes[0].variables


class Impossible(Exception):
    """These rows do not allow this task."""


def bind(form: TaskForm, seeding: Seeding, rng: random.Random) -> Meaning:
    """Choose what a task names, find what it describes, and try what it wants. Raises Impossible."""
    world = seeding.world
    variables: dict[str, Any] = {}
    for item in form.given:
        variables[item.name] = _given(item, variables, seeding, rng)
    choices = [variables]
    for item in form.find:
        choices = _found(item, choices, form, world, rng)
    choices = [bound for bound in choices if _holds(form.condition, bound, world)]
    if not choices:
        raise Impossible
    outcomes = tuple(attempt(form.steps, form.answer, bound, world) for bound in choices)
    _require_worthwhile(form, outcomes)
    reason = filled(world, form.because, outcomes[0].variables) if form.because else ""
    return Meaning(form, outcomes, reason)


def _given(item: Given, variables: Mapping[str, Any], seeding: Seeding, rng: random.Random) -> Any:
    world = seeding.world
    if item.formula:
        value = world.value(item.formula, variables)
        if value is None:
            raise Impossible
        return value
    if item.entity:
        rows = [row for row in world[item.entity] if _holds(item.condition, {**variables, item.name: row}, world)]
        if not rows:
            raise Impossible
        return rng.choice(rows)
    for _ in range(10):
        value = seeding.given(item, variables)
        if value is not None and _holds(item.condition, {**variables, item.name: value}, world):
            return value
    raise Impossible


def _holds(condition: Expression | None, variables: Mapping[str, Any], world: World) -> bool:
    return condition is None or bool(world.value(condition, variables))


def matching(item: Find, variables: Mapping[str, Any], world: World) -> list[Row]:
    """The rows that a find describes, before one is chosen."""
    return [row for row in world[item.entity] if _holds(item.condition, {**variables, item.item: row}, world)]


def _found(
    item: Find, choices: list[dict[str, Any]], form: TaskForm, world: World, rng: random.Random
) -> list[dict[str, Any]]:
    rows = matching(item, choices[0], world)
    if item.how in ("first", "last"):
        assert item.by
        values = [world.value(item.by, {**choices[0], item.item: row}) for row in rows]
        if len(rows) < 2 or None in values:
            raise Impossible
        ranked = sorted(range(len(rows)), key=values.__getitem__, reverse=item.how == "last")
        if values[ranked[0]] == values[ranked[1]]:
            raise Impossible
        return [{**choices[0], item.name: rows[ranked[0]]}]
    if item.how == "only":
        if len(rows) != 1:
            raise Impossible
        return [{**choices[0], item.name: rows[0]}]
    if item.how == "all":
        each = any(step.each and step.each[1] == item.name for step in form.steps)
        if not FEW <= len(rows) <= (MANY if each else LISTED):
            raise Impossible
        return [{**choices[0], item.name: rows}]
    if not FEW <= len(rows) <= CHOICES or len(choices) > 1:
        raise Impossible
    rng.shuffle(rows)
    return [{**choices[0], item.name: row} for row in rows]


def attempt(
    steps: tuple[Step, ...], answer: tuple[Expression, ...], variables: Mapping[str, Any], world: World
) -> Outcome:
    """Do the steps, note what is different, and take it back. Raises Impossible where a rule refuses one."""
    bound = dict(variables)
    performed: list[Performed] = []
    try:
        for step in steps:
            for arguments in _arguments(step, bound, world):
                action = world.domain.actions[step.action]
                if next(world.refusals(action, arguments), None):
                    raise Impossible
                made, broken = world.perform(action, arguments)
                if broken:
                    raise Impossible
                performed.append(Performed(action, arguments))
                if step.bind:
                    bound[step.bind] = made
        said = tuple(world.value(expression, bound) for expression in answer)
        return Outcome(bound, tuple(performed), world.journal.changes(), said)
    finally:
        world.undo()


def _arguments(step: Step, bound: Mapping[str, Any], world: World) -> Iterator[dict[str, Any]]:
    """The arguments of a step, once or for each row of its set; parameters that are left out are None."""
    action = world.domain.actions[step.action]
    rows = bound[step.each[1]] if step.each else [None]
    for row in rows:
        inner = {**bound, step.each[0]: row} if step.each else bound
        given = {name: world.value(expression, inner) for name, expression in step.arguments.items()}
        yield {p.name: given.get(p.name) for p in action.takes}


def _require_worthwhile(form: TaskForm, outcomes: tuple[Outcome, ...]) -> None:
    """Raise Impossible for a goal that is reached already, and for an answer there is nothing to say in."""
    for outcome in outcomes:
        if form.steps and outcome.changes.empty:
            raise Impossible
        for value in outcome.answer:
            if value in (None, 0, []) or (isinstance(value, list) and len(value) > LISTED):
                raise Impossible


# Tasks that want one action


@dataclass(frozen=True)
class Trials:
    """What an action accepted of the arguments that were tried, and what each rule refused, with its reason."""

    accepted: tuple[Mapping[str, Any], ...]
    refused: Mapping[Rule, tuple[tuple[Mapping[str, Any], str], ...]]


def try_out(action: Action, seeding: Seeding) -> Trials:
    """Try an action with random arguments; what several rules refuse is left out, as the reason would be unclear."""
    world = seeding.world
    accepted: list[Mapping[str, Any]] = []
    refused: dict[Rule, list[tuple[Mapping[str, Any], str]]] = {}
    optional = {p.name: None for p in action.takes if p.optional}
    for _ in range(DRAWS):
        arguments = seeding.arguments(action) | optional
        if not given_all(action, arguments):
            continue
        rules = list(world.refusals(action, arguments))
        if len(rules) == 1:
            refused.setdefault(rules[0], []).append((arguments, filled(world, rules[0].message, arguments)))
        elif not rules:
            _, broken = world.perform(action, arguments)
            if broken:
                rule, row = broken
                refused.setdefault(rule, []).append((arguments, filled(world, rule.message, {row.entity: row})))
            elif not world.journal.changes().empty:
                accepted.append(arguments)
            world.undo()
    return Trials(tuple(accepted), {rule: tuple(found) for rule, found in refused.items()})


def single(action: Action) -> TaskForm:
    """The form of a task that wants just one action, in the words of its `ask`."""
    used = {p.name: p for p in action.takes if not p.optional}
    given = tuple(
        Given(name, p.entity, None if p.entity else p.notation, None, None, p.place) for name, p in used.items()
    )
    arguments = {name: expression_of(Variable(name, p.notation.kind)) for name, p in used.items()}
    step = Step(action.name, arguments, None, None, action.place)
    return TaskForm(f"do_{action.name}", action.asks, given, (), None, (step,), (), (), None, action.place)


def refusal(form: TaskForm, rule: Rule) -> TaskForm:
    """The same task where a rule stands against it: nothing is to happen, and the answer says why."""
    return replace(form, name=f"not_{form.name}", steps=(), because=rule.message)
