"""Reads the task forms of a domain file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal, cast

from pipeline.blueprints.language.actions import Words, read_parameter
from pipeline.blueprints.language.domain import TAKEN_VARIABLES, Action, Domain, Find, Given, Step, TaskForm
from pipeline.blueprints.language.expressions import Expression, Kind, Scope, parse, typed
from pipeline.blueprints.language.expressions import Negation as Not
from pipeline.blueprints.language.sentences import names, read_message, require_name
from pipeline.blueprints.language.source import Scalar, Section

_FIND = re.compile(r"(first|last|only|any|all) (\w+)")
_EACH = re.compile(r"for (\w+) in (\w+) do (.+)", re.DOTALL)

KEYS = ("say", "given", "find", "if", "goal", "answer", "else", "because")

Actions = Mapping[str, Action]


def read_task(key: str, section: Section, domain: Domain, actions: Actions, words: Words) -> Iterator[TaskForm]:
    """The form of a task: two where it says `if`, one for either side, in the same words."""
    section.allow(*KEYS)
    ((name, *_), _) = names(key, section.place)
    scope = domain.scope
    given: list[Given] = []
    for line in section.lines("given"):
        one = _given(line, scope, domain, words)
        given.append(one)
        kind = Kind("row", one.entity) if one.entity else one.formula.kind if one.formula else _kind(one)
        scope = scope.with_variables({one.name: kind})
    said = scope
    find: list[Find] = []
    for line in section.lines("find"):
        found = _find(line, scope, domain)
        find.append(found)
        scope = scope.with_variables({found.name: Kind("rows" if found.how == "all" else "row", found.entity)})
    steps, after = _steps(section.texts("goal"), scope, domain, actions)
    because = section.texts("because")
    says = tuple(read_message(line, said) for line in section.texts("say"))
    form = TaskForm(
        name=name,
        says=says or section.place.fail("say is missing"),
        given=tuple(given),
        find=tuple(find),
        condition=None,
        steps=steps,
        otherwise=(),
        answer=tuple(parse(line, after) for line in section.texts("answer")),
        because=read_message(because[0], scope) if because else None,
        place=section.place,
    )
    condition = section.texts("if")
    yield from _sides(form, parse(condition[0], scope), section, scope, domain, actions) if condition else _one(form)


def _one(form: TaskForm) -> Iterator[TaskForm]:
    if not form.steps and not form.answer and not form.because:
        form.place.fail("a task needs a goal, an answer or, for doing nothing, a because")
    if form.because and (form.steps or form.answer):
        form.place.fail("because is the answer where nothing is done: it goes with `goal: nothing` alone")
    yield form


def _sides(
    form: TaskForm, condition: Expression, section: Section, scope: Scope, domain: Domain, actions: Actions
) -> Iterator[TaskForm]:
    """A task whose right action depends on something, as two forms."""
    if not form.steps:
        form.place.fail("a task with `if` has a goal for where the condition holds")
    others, _ = _steps(section.texts("else"), scope, domain, actions)
    if bool(others) == bool(form.because):
        form.place.fail("where the condition does not hold, there is either an `else` or a `because`")
    denied = typed(Not(condition.node), f"not ({condition.text})")
    yield replace(form, condition=condition, otherwise=others, because=None)
    yield replace(
        form,
        name=f"{form.name}_else",
        condition=denied,
        steps=others,
        otherwise=form.steps,
        answer=() if form.because else form.answer,
    )


def _kind(given: Given) -> Kind:
    assert given.notation
    return given.notation.kind


def _given(line: Scalar, scope: Scope, domain: Domain, words: Words) -> Given:
    name = require_name(line.saying(line.name), TAKEN_VARIABLES)
    if line.text.startswith("="):
        return Given(name, None, None, parse(line.saying(line.text[1:]), scope), None, line.place)
    head, test = line.split("if")
    entity, notation = head.text or name, None
    if entity in domain.entities:
        if domain.entities[entity].label is None:
            line.place.fail(f"a task cannot name a row of {entity}: it has no code or name (use find)")
        kind = Kind("row", entity)
    else:
        notation, _ = read_parameter(head, scope, domain.entities, words)
        kind, entity = notation.kind, None
    inner = scope.with_variables({name: kind})
    return Given(name, entity, notation, None, parse(test, inner) if test else None, line.place)


def _find(line: Scalar, scope: Scope, domain: Domain) -> Find:
    name = require_name(line.saying(line.name), TAKEN_VARIABLES)
    head, test = line.split("if")
    head, by = head.split("by")
    match = _FIND.fullmatch(head.text)
    if not match or match[2] not in domain.entities:
        line.place.fail("find is: first|last ENTITY by EXPR if COND, or only|any|all ENTITY if COND")
    how, entity = match.groups()
    if (how in ("first", "last")) != (by is not None):
        line.place.fail(f"{how} {'needs' if how in ('first', 'last') else 'takes no'} `by EXPR`")
    item = entity if how == "all" else name
    inner = scope.with_variables({item: Kind("row", entity)})
    return Find(
        name,
        cast(Literal["first", "last", "only", "any", "all"], how),
        entity,
        item,
        parse(by, inner) if by else None,
        parse(test, inner) if test else None,
        line.place,
    )


def _steps(lines: tuple[Scalar, ...], scope: Scope, domain: Domain, actions: Actions) -> tuple[tuple[Step, ...], Scope]:
    """The steps of a goal, and the scope with what they make."""
    steps: list[Step] = []
    for line in lines:
        if line.text == "nothing":
            continue
        step = _step(line, scope, domain, actions)
        steps.append(step)
        if step.bind:
            created = actions[step.action].created
            if not created:
                line.place.fail(f"{step.action} makes nothing that {step.bind} could name")
            scope = scope.with_variables({step.bind: Kind("row", created.entity)})
    return tuple(steps), scope


def _step(line: Scalar, scope: Scope, domain: Domain, actions: Actions) -> Step:
    text, place, each = line.text, line.place, None
    if match := _EACH.fullmatch(text):
        rows = scope.variables.get(match[2])
        if rows is None or rows.base != "rows":
            place.fail(f"{match[2]} is not a set of rows that was found")
        each, text = (match[1], match[2]), match[3]
        scope = scope.with_variables({match[1]: Kind("row", rows.entity)})
    try:
        body = ast.parse(text).body
    except SyntaxError as error:
        place.fail(f"{text!r} is not a step: {error.msg}")
    match body:
        case [ast.Expr(ast.Call(ast.Name(name), positional, keywords))]:
            bind = None
        case [ast.Assign([ast.Name(bind)], ast.Call(ast.Name(name), positional, keywords))] if each is None:
            pass
        case _:
            place.fail(f"{text!r} is none of: action(…), name = action(…), for … in … do action(…), nothing")
    if name not in actions or not actions[name].does:
        doing = ", ".join(action.name for action in actions.values() if action.does)
        place.fail(f"there is no action {name} that does something; known are {doing}")
    takes = actions[name].takes
    if len(positional) > len(takes):
        place.fail(f"{name} takes {len(takes)} arguments")
    given = {parameter.name: node for parameter, node in zip(takes, positional, strict=False)}
    given |= {keyword.arg or "": keyword.value for keyword in keywords}
    arguments: dict[str, Expression] = {}
    for parameter in takes:
        if parameter.name in given:
            text = ast.unparse(given.pop(parameter.name))
            arguments[parameter.name] = parse(line.saying(text), scope)
            probe = scope.with_variables({"probe": parameter.notation.kind})
            parse(line.saying(f"probe == ({text})"), probe)  # fails unless it is of a fitting kind
        elif not parameter.optional:
            place.fail(f"{name} needs {parameter.name}")
    if given:
        place.fail(f"{name} takes no {', '.join(given)}")
    return Step(name, arguments, bind, each, place)
