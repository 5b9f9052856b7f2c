"""Reads a domain file into a `Domain`: the grammar of docs/blueprints.md, with every complaint at its line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal, cast

from pipeline.blueprints.domain import (
    TAKEN_NAMES,
    Action,
    Assign,
    Create,
    Delete,
    Domain,
    Effect,
    Entity,
    Field,
    Find,
    ForEach,
    Given,
    Message,
    Noun,
    Parameter,
    Rule,
    Step,
    TaskForm,
    When,
    kinds,
    plural,
)
from pipeline.blueprints.expressions import Attribute, Expression, Kind, Scope, mentions, parse, typed
from pipeline.blueprints.notation import Notation, read_notation
from pipeline.blueprints.source import Place, Scalar, Section, read

_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_HOLE = re.compile(r"\{([^}]*)\}|\[(\w+)\]")
_FOR = re.compile(r"for (\w+) in (\w+)(?: if (.+?))? do (.+)", re.DOTALL)
_IF = re.compile(r"if (.+?) do (.+)", re.DOTALL)
_MOVE = re.compile(r"([\w.]+)\.(\w+) -> (.+)")
_FIND = re.compile(r"(first|last|only|any|all) (\w+)(?: by (.+?))?(?: if (.+))?", re.DOTALL)
_ROWS = re.compile(r"(\d+)(?:\.\.(\d+))?")

ENTITY_KEYS = ("rows", "per", "rules", "such_that")


def read_domain(text: str, file: str, *, common: str = "") -> Domain:
    """Read a domain file, with the text of the records that every domain may have (`common`) at its end.

    Raises UserError with file, line and field where something is not as docs/blueprints.md says.
    """
    root = read(text, file)
    root.allow("domain", "title", "about", "user", "subject", "words", "entities", "actions", "tasks")
    name = root.text("domain")
    _require_name(name)
    user, subject = root.text("user").text, root.text("subject").text
    shared = read(common.replace("SUBJECT", subject).replace("USER", user), "_common.yaml") if common else None
    sources = [root] if shared is None else [root, shared]
    words = {key: _words(part, key) for part in sources for key in part.section("words").items}
    entities: dict[str, Entity] = {}
    for part in sources:
        for key, section in part.section("entities").sections():
            entity = _entity(key, section, entities, words, user)
            if entity.name in entities:
                section.place.fail(f"the entity {entity.name} is there twice")
            entities[entity.name] = entity
    for key, value in (("user", user), ("subject", subject)):
        if value not in entities:
            root.text(key).place.fail(f"there is no entity {value}")
    if entities[user].optional or entities[user].per or not entities[user].label:
        root.text("user").place.fail(f"{user} cannot be optional or `per` another, and needs a name")
    if entities[subject].optional or not entities[subject].label:
        root.text("subject").place.fail(f"{subject} cannot be optional, and needs a code or a name")
    bare = Domain(name.text, root.text("title").text, root.text("about").text, user, subject, words, entities, {}, {})
    actions = dict(_action(*item, bare, words) for part in sources for item in part.section("actions").sections())
    tasks = dict(_task(*item, bare, actions, words) for part in sources for item in part.section("tasks").sections())
    return replace(bare, actions=actions, tasks=tasks, file=file)


def _words(root: Section, key: str) -> tuple[str, ...]:
    return tuple(word.text for word in root.section("words").texts(key))


def _require_name(name: Scalar, text: str | None = None) -> None:
    word = name.text if text is None else text
    if not _NAME.fullmatch(word):
        name.place.fail(f"{word!r} is not a name: lower case letters, digits and single underscores")
    if word in TAKEN_NAMES:
        name.place.fail(f"the name {word} is taken (by Python, SQL or the generated application); choose another")


def _names(key: str, place: Place) -> tuple[tuple[str, ...], bool]:
    """The alternative names of a key such as `unit|bag?`, and whether it is optional."""
    words = tuple(key.removesuffix("?").split("|"))
    for word in words:
        _require_name(Scalar(word, place))
    return words, key.endswith("?")


# Entities


def _entity(
    key: str, section: Section, known: Mapping[str, Entity], words: Mapping[str, tuple[str, ...]], user: str
) -> Entity:
    names, optional = _names(key, section.place)
    own = names[0]
    per, rows = None, (section.text("rows", "6..8"))
    if "per" in section.items:
        per_text = section.text("per")
        per, _, counts = per_text.text.partition(" ")
        rows = Scalar(counts, per_text.place)
    fields: dict[str, Field] = {}
    for field_key, value in section.items.items():
        if field_key in ENTITY_KEYS:
            continue
        if not isinstance(value, Scalar):
            value.place.fail("a field is one line")
        field_words, field_optional = _names(field_key, value.place)
        scope = _entity_scope(own, fields, known, user)
        notation = read_notation(value, scope, name=field_words[0], words=words)
        fields[field_words[0]] = Field(
            field_words[0], field_words, notation, field_optional, value.place, field_words[0]
        )
    if per is not None and (per not in fields or not fields[per].reference):
        section.place.fail(f"per needs a field that refers to an entity, and {per} is none of {own}'s")
    scope = _entity_scope(own, fields, known, user)
    rules = tuple(_rule(text, scope) for text in section.texts("rules"))
    such_that = tuple(parse(text, scope) for text in section.texts("such_that"))
    return Entity(own, names, _count(rows), per, fields, rules, such_that, optional, section.place, own)


def _entity_scope(own: str, fields: Mapping[str, Field], known: Mapping[str, Entity], user: str) -> Scope:
    """What an entity's own expressions may mention: its fields so far, and the entities declared before it."""
    entities = {**kinds(known), own: {"id": Kind("int"), **{f.name: f.notation.kind for f in fields.values()}}}
    variables = {own: Kind("row", own)}
    if user in entities:
        variables["me"] = Kind("row", user)
    return Scope(entities, variables, own)


def _count(source: Scalar) -> tuple[int, int]:
    match = _ROWS.fullmatch(source.text)
    if not match or int(match[1]) > int(match[2] or match[1]):
        source.place.fail(f"{source.text!r} is not a number of rows such as 6 or 6..8")
    return int(match[1]), int(match[2] or match[1])


# Sentences and rules


def message(source: Scalar, scope: Scope) -> Message:
    """A sentence: {EXPR} is a value, [unit] and [units] an entity's noun, [Unit] with a capital."""
    parts: list[str | Noun | Expression] = []
    end = 0
    for hole in _HOLE.finditer(source.text):
        parts.append(source.text[end : hole.start()])
        end = hole.end()
        if hole[1] is not None:
            parts.append(parse(Scalar(hole[1], source.place), scope))
        else:
            parts.append(_noun(hole[2], scope.entities, source.place))
    parts.append(source.text[end:])
    return Message(tuple(part for part in parts if part != ""), source.place)


def _noun(word: str, entities: Iterable[str], place: Place) -> Noun:
    lower = word[0].lower() + word[1:]
    for entity in entities:
        if lower in (entity, plural(entity)):
            return Noun(entity, lower != entity, word != lower)
    place.fail(f"[{word}] is not the noun of an entity")


def _rule(source: Scalar, scope: Scope) -> Rule:
    test_text, found, said = source.text.partition(" else ")
    if not found:
        source.place.fail("a rule is: EXPRESSION else SENTENCE")
    test = parse(Scalar(test_text.strip(), source.place), scope)
    if test.kind.base != "bool":
        source.place.fail(f"{test_text.strip()!r} is not something that holds or does not")
    return Rule(test, message(Scalar(said.strip(), source.place), scope), mentions(test.node, "me"))


# Actions


def _action(key: str, section: Section, domain: Domain, words: Mapping[str, tuple[str, ...]]) -> tuple[str, Action]:
    section.allow("says", "ask", "takes", "rules", "does", "finds", "gives")
    (name, *others), optional = _names(key, section.place)
    if others:
        section.place.fail("an action has one name; its entities' other names are put into it")
    takes: list[Parameter] = []
    scope = domain.scope
    for parameter_key, value in section.section("takes").items.items():
        if not isinstance(value, Scalar):
            value.place.fail("a parameter is one line")
        _require_name(value, parameter_key)
        notation, needs = _parameter(parameter_key, value, scope, domain.entities, words)
        takes.append(Parameter(parameter_key, notation, needs, value.place, parameter_key))
        scope = scope.with_variables({parameter_key: notation.kind})
    rules = [_rule(text, scope) for text in section.texts("rules")]
    does: list[Effect] = []
    inner = scope
    for text in section.texts("does"):
        effect, implied = _effect(text, inner, domain)
        does.append(effect)
        rules += implied
        if isinstance(effect, Create) and effect.bind:
            inner = inner.with_variables({effect.bind: Kind("row", effect.entity)})
    questions = section.texts("finds"), section.texts("gives")
    finds = parse(Scalar(f"[{questions[0][0].text}]", questions[0][0].place), scope) if questions[0] else None
    gives = parse(questions[1][0], scope) if questions[1] else None
    if bool(does) + bool(finds) + bool(gives) != 1:
        section.place.fail("an action has one of does (effects), finds (rows) and gives (a value)")
    if finds and finds.kind.choices != ("row",):
        section.place.fail("finds gives rows: write `x for x in entity if …`")
    return name, Action(
        name,
        message(section.text("says"), domain.scope),
        tuple(message(text, scope) for text in section.texts("ask")),
        tuple(takes),
        (*rules, *_implied_rules(does, scope, domain)),
        tuple(does),
        finds,
        gives,
        optional,
        section.place,
        name,
    )


def _parameter(
    name: str, source: Scalar, scope: Scope, entities: Mapping[str, Entity], words: Mapping[str, tuple[str, ...]]
) -> tuple[Notation, frozenset[str]]:
    """A parameter's notation and what it needs; `unit.status` means whatever that field is."""
    copied = re.fullmatch(r"(\w+)\.(\w+)(\?)?", source.text)
    if not copied:
        notation = read_notation(source, scope, name=name, words=words)
        return notation, notation.needs
    entity, field_name, question = copied.groups()
    if entity not in entities or field_name not in entities[entity].fields:
        source.place.fail(f"there is no field {entity}.{field_name}")
    notation = entities[entity].fields[field_name].notation
    if notation.form in ("computed", "row"):
        source.place.fail(f"{entity}.{field_name} is not a value that could be given")
    kind = replace(notation.kind, nullable=bool(question))
    notation = replace(notation, kind=kind, condition=None, after=None, share=50 if question else 100)
    return notation, frozenset({entity, f"{entity}.{field_name}"})


def _effect(source: Scalar, scope: Scope, domain: Domain) -> tuple[Effect, list[Rule]]:
    """An effect, with the rules it implies: a lifecycle allows a move only from some states."""
    place = source.place
    if match := _FOR.fullmatch(source.text):
        item, entity, condition, body = match.groups()
        if entity not in domain.entities:
            place.fail(f"there is no entity {entity}")
        inner = scope.with_variables({item: Kind("row", entity)})
        effect, implied = _effect(Scalar(body, place), inner, domain)
        if isinstance(effect, ForEach) or implied:
            place.fail("inside for … do, assign, create or delete; for and -> are not possible there")
        test = parse(Scalar(condition, place), inner) if condition else None
        return ForEach(item, entity, test, effect, place), []
    if match := _IF.fullmatch(source.text):
        effect, implied = _effect(Scalar(match[2], place), scope, domain)
        if implied:
            place.fail("a move (->) cannot depend on a condition")
        return When(parse(Scalar(match[1], place), scope), effect, place), []
    if match := _MOVE.fullmatch(source.text):
        return _move(match[1], match[2], match[3].strip(), scope, domain, place)
    return _statement(source, scope, domain), []


def _move(
    row_text: str, field_name: str, state: str, scope: Scope, domain: Domain, place: Place
) -> tuple[Assign, list[Rule]]:
    target = _target(f"{row_text}.{field_name}", scope, domain, place)
    notation = domain.entities[target.entity].fields[field_name].notation
    sources = notation.sources(state)
    if not sources:
        place.fail(f"nothing may become {state!r}: the lifecycle of {target.entity} has no step to it")
    label = domain.entities[target.entity].label
    named = f" {{{row_text}.{label.name}}}" if label else ""
    allowed = " or ".join(sources)
    rule = _rule(
        Scalar(
            f"{row_text}.{field_name} in {(*sources,)!r} else "
            f"[{target.entity[0].upper()}{target.entity[1:]}]{named} is {{{row_text}.{field_name}}}; "
            f"it must be {allowed} to become {state}",
            place,
        ),
        scope,
    )
    return Assign(typed(target.base, row_text), target, parse(Scalar(repr(state), place), scope), place), [rule]


def _target(text: str, scope: Scope, domain: Domain, place: Place) -> Attribute:
    node = parse(Scalar(text, place), scope).node
    if not isinstance(node, Attribute):
        place.fail(f"{text} is not a field that could be set")
    field = domain.entities[node.entity].fields.get(node.field)
    if field is None or (field.notation.form == "computed" and not field.notation.deferred):
        place.fail(f"{text} is computed and cannot be set")
    return node


def _statement(source: Scalar, scope: Scope, domain: Domain) -> Effect:
    place = source.place
    try:
        body = ast.parse(source.text).body
    except SyntaxError as error:
        place.fail(f"{source.text!r} is not an effect: {error.msg}")
    match body:
        case [ast.Assign([ast.Attribute() as target], value)]:
            field = _target(ast.unparse(target), scope, domain, place)
            return _assign(field, ast.unparse(value), scope, place)
        case [ast.AugAssign(ast.Attribute() as target, ast.Add() | ast.Sub() as op, value)]:
            field = _target(ast.unparse(target), scope, domain, place)
            sign = "+" if isinstance(op, ast.Add) else "-"
            text = f"{ast.unparse(target)} {sign} ({ast.unparse(value)})"
            return _assign(field, text, scope, place)
        case [ast.Expr(ast.Call(ast.Name("delete"), [row], []))]:
            gone = parse(Scalar(ast.unparse(row), place), scope)
            if gone.kind.base != "row":
                place.fail(f"{ast.unparse(row)} is not a row that could be deleted")
            return Delete(gone, place)
        case [ast.Expr(ast.Call(ast.Name(entity), [], keywords))]:
            return _create(entity, keywords, None, scope, domain, place)
        case [ast.Assign([ast.Name(bind)], ast.Call(ast.Name(entity), [], keywords))]:
            return _create(entity, keywords, bind, scope, domain, place)
    place.fail(f"{source.text!r} is none of: row.field = value, += and -=, entity(field=value), delete(row)")


def _assign(target: Attribute, text: str, scope: Scope, place: Place) -> Assign:
    return Assign(typed(target.base, ""), target, _assigned(text, target, scope, place), place)


def _assigned(text: str, target: Attribute, scope: Scope, place: Place) -> Expression:
    value = parse(Scalar(text, place), scope)
    parse(Scalar(f"probe == ({text})", place), scope.with_variables({"probe": target.kind}))  # of a fitting kind
    if value.kind.nullable and not target.kind.nullable:
        place.fail(f"{text} may be absent, and {target.entity}.{target.field} may not")
    return value


def _create(
    entity: str, keywords: list[ast.keyword], bind: str | None, scope: Scope, domain: Domain, place: Place
) -> Create:
    if entity not in domain.entities:
        place.fail(f"there is no entity {entity} to make a row of")
    fields = domain.entities[entity].fields
    values: dict[str, Expression] = {}
    for keyword in keywords:
        name = keyword.arg or ""
        if name not in fields or fields[name].notation.form in ("stamp", "code"):
            place.fail(f"{entity} has no field {name} that could be given")
        target = Attribute(parse(Scalar("probe", place), Scope({}, {"probe": Kind("row", entity)})).node, name,
                           fields[name].notation.kind)  # fmt: skip
        values[name] = _assigned(ast.unparse(keyword.value), target, scope, place)
    for name, field in fields.items():
        if name not in values and not (field.notation.kind.nullable or field.notation.form in _FILLED):
            place.fail(f"a new {entity} needs {name}")
    return Create(entity, values, bind, place)


_FILLED = frozenset({"code", "stamp", "state", "computed", "bool"})
"""Forms that a new row gets a value of by itself: the next code, now, the first state, the formula, no."""


def _implied_rules(does: Iterable[Effect], scope: Scope, domain: Domain) -> list[Rule]:
    """What must hold for effects to be possible: a new name is new, and nothing refers to what is deleted."""
    rules: list[Rule] = []
    does = list(does)
    gone = {e.entity for e in does if isinstance(e, ForEach) and isinstance(e.effect, Delete)}
    for effect in does:
        if isinstance(effect, Create):
            for name, value in effect.values.items():
                if domain.entities[effect.entity].fields[name].notation.unique:
                    text = (
                        f"not any(other.{name} == {value.text} for other in {effect.entity}) else "
                        f"There already is a [{effect.entity}] called {{{value.text}}}"
                    )
                    rules.append(_rule(Scalar(text, effect.place), scope))
        elif isinstance(effect, Delete):
            owner = effect.row.kind.entity
            label = domain.entities[owner].label
            named = f" {{{effect.row.text}.{label.name}}}" if label else ""
            for entity in domain.entities.values():
                for field in entity.fields.values():
                    if field.reference == owner and entity.name not in gone:
                        text = (
                            f"not any(x.{field.name} == {effect.row.text} for x in {entity.name}) else "
                            f"[{owner[0].upper()}{owner[1:]}]{named} still has [{plural(entity.name)}]"
                        )
                        rules.append(_rule(Scalar(text, effect.place), scope))
    return rules


# Tasks


def _task(
    key: str, section: Section, domain: Domain, actions: Mapping[str, Action], words: Mapping[str, tuple[str, ...]]
) -> tuple[str, TaskForm]:
    section.allow("say", "given", "find", "goal", "answer", "because")
    (name, *_), optional = _names(key, section.place)
    scope = domain.scope
    given: list[Given] = []
    for variable, value in section.section("given").items.items():
        assert isinstance(value, Scalar) or value.place.fail("one line is needed")
        _require_name(value, variable)
        one = _given(variable, value, scope, domain, words)
        given.append(one)
        kind = Kind("row", one.entity) if one.entity else (one.formula or cast(Notation, one.notation)).kind
        scope = scope.with_variables({variable: kind})
    find: list[Find] = []
    said = scope
    for variable, value in section.section("find").items.items():
        assert isinstance(value, Scalar) or value.place.fail("one line is needed")
        _require_name(value, variable)
        found = _find(variable, value, scope, domain)
        find.append(found)
        scope = scope.with_variables({variable: Kind("rows" if found.how == "all" else "row", found.entity)})
    steps: list[Step] = []
    for text in section.texts("goal"):
        if text.text != "nothing":
            step = _step(text, scope, domain, actions)
            steps.append(step)
            if step.bind:
                created = actions[step.action].created
                assert created or text.place.fail(f"{step.action} makes nothing that {step.bind} could name")
                scope = scope.with_variables({step.bind: Kind("row", created.entity)})
    answer = tuple(parse(text, scope) for text in section.texts("answer"))
    because = section.texts("because")
    if not steps and not answer and not because:
        section.place.fail("a task needs a goal, an answer or, for doing nothing, a because")
    if because and steps:
        section.place.fail("because is the reason for doing nothing: the goal must be `nothing`")
    says = tuple(message(text, said) for text in section.texts("say"))
    if not says:
        section.place.fail("say is missing")
    return name, TaskForm(
        name,
        says,
        tuple(given),
        tuple(find),
        tuple(steps),
        answer,
        message(because[0], scope) if because else None,
        optional,
        section.place,
    )


def _given(name: str, source: Scalar, scope: Scope, domain: Domain, words: Mapping[str, tuple[str, ...]]) -> Given:
    text, place = source.text, source.place
    if text.startswith("="):
        return Given(name, None, None, parse(Scalar(text[1:].strip(), place), scope), None, place)
    head, found, test = text.partition(" if ")
    entity = head.strip() or name
    if entity in domain.entities:
        if domain.entities[entity].label is None:
            place.fail(f"a task cannot name a row of {entity}: it has no code or name (use find)")
        kind, notation, own = Kind("row", entity), None, entity
    else:
        notation, _ = _parameter(name, Scalar(head.strip(), place), scope, domain.entities, words)
        kind, own = notation.kind, None
    inner = scope.with_variables({name: kind})
    return Given(name, own, notation, None, parse(Scalar(test, place), inner) if found else None, place)


def _find(name: str, source: Scalar, scope: Scope, domain: Domain) -> Find:
    match = _FIND.fullmatch(source.text)
    if not match or match[2] not in domain.entities:
        source.place.fail("find is: first|last ENTITY by EXPR if COND, or only|any|all ENTITY if COND")
    how, entity, by, condition = match.groups()
    if (how in ("first", "last")) != bool(by):
        source.place.fail(f"{how} {'needs' if how in ('first', 'last') else 'takes no'} `by EXPR`")
    item = entity if how == "all" else name
    inner = scope.with_variables({item: Kind("row", entity)})
    return Find(
        name,
        cast(Literal["first", "last", "only", "any", "all"], how),
        entity,
        item,
        parse(Scalar(by, source.place), inner) if by else None,
        parse(Scalar(condition, source.place), inner) if condition else None,
        source.place,
    )


def _step(source: Scalar, scope: Scope, domain: Domain, actions: Mapping[str, Action]) -> Step:
    text, place, each = source.text, source.place, None
    if match := re.fullmatch(r"for (\w+) in (\w+) do (.+)", text, re.DOTALL):
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
        case [ast.Assign([ast.Name(bind)], ast.Call(ast.Name(name), positional, keywords))]:
            pass
        case _:
            place.fail(f"{text!r} is none of: action(…), name = action(…), nothing")
    if name not in actions or not actions[name].does:
        doing = ", ".join(action.name for action in actions.values() if action.does)
        place.fail(f"there is no action {name} that does something; known are {doing}")
    takes = actions[name].takes
    if len(positional) > len(takes):
        place.fail(f"{name} takes {len(takes)} arguments")
    texts = {parameter.name: node for parameter, node in zip(takes, positional, strict=False)}
    texts |= {keyword.arg or "": keyword.value for keyword in keywords}
    arguments: dict[str, Expression] = {}
    for parameter in takes:
        if parameter.name in texts:
            arguments[parameter.name] = parse(Scalar(ast.unparse(texts.pop(parameter.name)), place), scope)
            probe = scope.with_variables({"probe": parameter.notation.kind})
            parse(Scalar(f"probe == ({arguments[parameter.name].text})", place), probe)
        elif not parameter.optional:
            place.fail(f"{name} needs {parameter.name}")
    if texts:
        place.fail(f"{name} takes no {', '.join(texts)}")
    return Step(name, arguments, bind, each, place)
