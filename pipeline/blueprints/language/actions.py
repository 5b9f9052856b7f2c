"""Reads the actions of a domain file: what each takes, when it is refused, and what it does or finds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pipeline.blueprints.language.domain import Action, Domain, Entity, Parameter
from pipeline.blueprints.language.effects import read_effects
from pipeline.blueprints.language.expressions import Expression, Scope, parse
from pipeline.blueprints.language.notation import Notation, read_notation
from pipeline.blueprints.language.sentences import names, read_message, read_rule, require_name
from pipeline.blueprints.language.source import Scalar, Section, read_range

Words = Mapping[str, tuple[str, ...]]


def read_action(key: str, section: Section, domain: Domain, words: Words) -> Action:
    """One action."""
    section.allow("says", "ask", "takes", "rules", "does", "finds", "gives", "before")
    (name, *others), optional = names(key, section.place)
    if others:
        section.place.fail("an action has one name; its entities' other names are put into it")
    takes: list[Parameter] = []
    scope = domain.scope
    for line in section.lines("takes"):
        require_name(line.saying(line.name))
        notation, needs = read_parameter(line, scope, domain.entities, words)
        takes.append(Parameter(line.name, notation, needs, line.place, line.name))
        scope = scope.with_variables({line.name: notation.kind})
    rules = [read_rule(line, scope) for line in section.texts("rules")]
    does, implied = read_effects(section.texts("does"), scope, domain)
    finds, gives = _question(section, scope)
    if bool(does) + bool(finds) + bool(gives) != 1:
        section.place.fail("an action has one of does (effects), finds (rows) and gives (a value)")
    return Action(
        name=name,
        says=read_message(section.text("says"), domain.scope),
        asks=tuple(read_message(line, scope) for line in section.texts("ask")),
        takes=tuple(takes),
        rules=(*rules, *implied),
        does=does,
        finds=finds,
        gives=gives,
        before=read_range(section.text("before", "0")),
        optional=optional,
        place=section.place,
        word=name,
    )


def _question(section: Section, scope: Scope) -> tuple[Expression | None, Expression | None]:
    finds = gives = None
    for line in section.texts("finds"):
        finds = parse(line.saying(f"[{line.text}]"), scope)
        if finds.kind.choices != ("row",):
            line.place.fail("finds gives rows: write `x for x in entity if …`")
    for line in section.texts("gives"):
        gives = parse(line, scope)
        if gives.kind.base in ("row", "rows", "list"):
            line.place.fail("gives is one value; rows are for finds")
    return finds, gives


def read_parameter(
    line: Scalar, scope: Scope, entities: Mapping[str, Entity], words: Words
) -> tuple[Notation, frozenset[str]]:
    """A parameter's notation and what it needs; `unit.status` means whatever that field is.

    Where nothing is written after a name, it is a row of the entity of that name.
    """
    copied = re.fullmatch(r"(\w+)\.(\w+)(\?)?", line.text)
    if not copied:
        notation = read_notation(line if line.text else line.saying(line.name), scope, name=line.name, words=words)
        return notation, notation.needs
    entity, field_name, question = copied.groups()
    if entity not in entities or field_name not in entities[entity].fields:
        line.place.fail(f"there is no field {entity}.{field_name}")
    notation = entities[entity].fields[field_name].notation
    if notation.form in ("computed", "row"):
        line.place.fail(f"{entity}.{field_name} is not a value that could be given")
    notation = replace(
        notation,
        kind=replace(notation.kind, nullable=bool(question)),
        condition=None,
        after=None,
        share=50 if question else 100,
    )
    return notation, frozenset({entity, f"{entity}.{field_name}"})
