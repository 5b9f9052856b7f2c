"""Reads a domain file into a `Domain`: the grammar of docs/blueprints.md, with every complaint at its line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pipeline.blueprints.language.actions import Words, read_action
from pipeline.blueprints.language.domain import Action, Domain, Entity, Field, TaskForm, kinds
from pipeline.blueprints.language.expressions import Kind, Scope, parse
from pipeline.blueprints.language.notation import read_notation
from pipeline.blueprints.language.sentences import names, read_rule, require_name
from pipeline.blueprints.language.source import Scalar, Section, read, read_range
from pipeline.blueprints.language.task_forms import read_task

KEYS = ("domain", "title", "about", "user", "subject", "words", "entities", "actions", "tasks")
ENTITY_KEYS = ("rows", "per", "rules", "such_that")


def read_domain(text: str, file: str, *, common: str = "") -> Domain:
    """Read a domain file, with the records that every domain may have (`common`, the text of a file) after its own.

    Raises UserError with file, line and field where something is not as docs/blueprints.md says.
    """
    root = read(text, file)
    root.allow(*KEYS)
    name = require_name(root.text("domain"))
    user, subject = root.text("user").text, root.text("subject").text
    sources = [root]
    words = _words(root)
    entities: dict[str, Entity] = {}
    _add_entities(root, entities, words, user)
    _require_people(root, entities, user, subject)
    if common:
        shared = read(_about(common, entities[user], entities[subject]), "_common.yaml")
        sources.append(shared)
        words = {**_words(shared), **words}
        _add_entities(shared, entities, words, user)
    bare = Domain(name, root.text("title").text, root.text("about").text, user, subject, words, entities, {}, {}, file)
    actions: dict[str, Action] = {}
    forms: dict[str, TaskForm] = {}
    for part in sources:
        for key, section in part.section("actions").sections():
            action = read_action(key, section, bare, words)
            actions[action.name] = action
    for part in sources:
        for key, section in part.section("tasks").sections():
            forms |= {form.name: form for form in read_task(key, section, bare, actions, words)}
    return replace(bare, actions=actions, tasks=forms)


def _words(root: Section) -> dict[str, tuple[str, ...]]:
    section = root.section("words")
    return {key: tuple(word.text for word in section.texts(key)) for key in section.items}


def _about(common: str, user: Entity, subject: Entity) -> str:
    """The shared records, about this domain's subject and user."""
    for word, entity in (("SUBJECT", subject), ("USER", user)):
        assert entity.label
        common = common.replace(f"{word}.LABEL", f"{entity.name}.{entity.label.name}").replace(word, entity.name)
    assert user.label
    return common.replace(".LABEL", f".{user.label.name}")


def _add_entities(root: Section, entities: dict[str, Entity], words: Words, user: str) -> None:
    for key, section in root.section("entities").sections():
        entity = _entity(key, section, entities, words, user)
        if entity.name in entities:
            section.place.fail(f"the entity {entity.name} is there twice")
        entities[entity.name] = entity


def _require_people(root: Section, entities: Mapping[str, Entity], user: str, subject: str) -> None:
    for key, name in (("user", user), ("subject", subject)):
        entity = entities.get(name)
        if entity is None:
            root.text(key).place.fail(f"there is no entity {name}")
        if entity.optional or not entity.label:
            root.text(key).place.fail(f"{name} cannot be optional, and needs a code or a name")
        if entity.rows[0] == 0:
            root.text(key).place.fail(f"{name} needs rows from the beginning")
    if entities[user].per:
        root.text("user").place.fail(f"{user} cannot be `per` another entity: its first row is the user")


def _entity(key: str, section: Section, known: Mapping[str, Entity], words: Words, user: str) -> Entity:
    alternatives, optional = names(key, section.place)
    own = alternatives[0]
    rows, per = section.text("rows", "6..8"), None
    if "per" in section.items:
        per_line = section.text("per")
        per, _, counts = per_line.text.partition(" ")
        rows = per_line.saying(counts)
    fields: dict[str, Field] = {}
    for field_key, value in section.items.items():
        if field_key in ENTITY_KEYS:
            continue
        if not isinstance(value, Scalar):
            value.place.fail("a field is one line")
        field_words, field_optional = names(field_key, value.place)
        line = value if value.text else value.saying(field_words[0])
        scope = _scope(own, fields, known, user)
        notation = read_notation(line, scope, name=field_words[0], words=words)
        fields[field_words[0]] = Field(
            field_words[0], field_words, notation, field_optional, value.place, field_words[0]
        )
    if per is not None and (per not in fields or not fields[per].reference):
        section.place.fail(f"per needs a field that refers to an entity, and {per} is none of {own}'s")
    scope = _scope(own, fields, known, user)
    return Entity(
        name=own,
        words=alternatives,
        rows=read_range(rows),
        per=per,
        fields=fields,
        rules=tuple(read_rule(line, scope) for line in section.texts("rules")),
        such_that=tuple(parse(line, scope) for line in section.texts("such_that")),
        optional=optional,
        place=section.place,
        word=own,
    )


def _scope(own: str, fields: Mapping[str, Field], known: Mapping[str, Entity], user: str) -> Scope:
    """What an entity's own expressions may mention: its fields so far, and the entities declared before it."""
    entities = {**kinds(known), own: {"id": Kind("int"), **{f.name: f.notation.kind for f in fields.values()}}}
    variables = {own: Kind("row", own)}
    if user in entities:
        variables["me"] = Kind("row", user)
    return Scope(entities, variables, own)
