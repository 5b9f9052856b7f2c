"""What a domain file says, as values: entities, actions with their rules and effects, and forms of tasks.

Everything derived (tables, rows, tools, source, tasks, verifiers) is a function of these. `needs` of a part are the
entities ("unit") and fields ("unit.status") without which it makes no sense: a variant that leaves one out leaves
that part out too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from pipeline.blueprints.language.expressions import Attribute, Expression, Kind, Scope
from pipeline.blueprints.language.notation import Notation
from pipeline.blueprints.language.source import Place

NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Noun:
    """An entity's noun within a message."""

    entity: str
    plural: bool
    capital: bool


@dataclass(frozen=True, slots=True)
class Message:
    """A sentence with values and nouns to be filled in."""

    parts: tuple[str | Noun | Expression, ...]
    place: Place

    @property
    def needs(self) -> frozenset[str]:
        """What its values and nouns mention."""
        nouns = {part.entity for part in self.parts if isinstance(part, Noun)}
        return NONE.union(nouns, *(part.needs for part in self.expressions))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The values filled in, in order."""
        return tuple(part for part in self.parts if isinstance(part, Expression))


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """What must hold, and what is said where it does not. `own` rules are about whose a row is (403, else 409)."""

    test: Expression
    message: Message
    own: bool = False

    @property
    def needs(self) -> frozenset[str]:
        """What its test and message mention."""
        return self.test.needs | self.message.needs


@dataclass(frozen=True, slots=True)
class Field:
    """An attribute of an entity. `words` are the names it may have in an environment, `word` the one it has."""

    name: str
    words: tuple[str, ...]
    notation: Notation
    optional: bool
    place: Place
    word: str

    @property
    def reference(self) -> str | None:
        """The entity it refers to, if it does."""
        return self.notation.kind.entity if self.notation.kind.base == "row" else None

    @property
    def column(self) -> str:
        """The column that holds it."""
        return f"{self.word}_id" if self.reference else self.word


@dataclass(frozen=True)
class Entity:
    """A table. `rows` is how many, or how many for each row of the entity that field `per` refers to.

    `rules` hold always, and tools refuse what would break them; `such_that` only describes the rows made at first.
    """

    name: str
    words: tuple[str, ...]
    rows: tuple[int, int]
    per: str | None
    fields: Mapping[str, Field]
    rules: tuple[Rule, ...]
    such_that: tuple[Expression, ...]
    optional: bool
    place: Place
    word: str

    @property
    def shared(self) -> bool:
        """Whether it is one of the records that every domain may have."""
        return self.place.file.startswith("_")

    @property
    def label(self) -> Field | None:
        """The field people name a row by."""
        return next((f for f in self.fields.values() if f.notation.unique), None)

    @property
    def noun(self) -> str:
        """What one row is called in a sentence."""
        return self.word.replace("_", " ")

    @property
    def nouns(self) -> str:
        """What several are called."""
        return plural(self.word).replace("_", " ")

    @property
    def table(self) -> str:
        """Its table."""
        return plural(self.word)

    @property
    def model(self) -> str:
        """Its class in the application."""
        name = "".join(part.capitalize() for part in self.word.split("_"))
        return f"{name}Row" if name in TAKEN_CLASSES else name


@dataclass(frozen=True, slots=True)
class Parameter:
    """What an action takes. A row comes as its id. `word` is its name in an environment."""

    name: str
    notation: Notation
    needs: frozenset[str]
    place: Place
    word: str

    @property
    def entity(self) -> str | None:
        """The entity of a row that is taken."""
        return self.notation.kind.entity if self.notation.kind.base == "row" else None

    @property
    def optional(self) -> bool:
        """Whether it may be left out."""
        return self.notation.kind.nullable

    @property
    def argument(self) -> str:
        """Its name as a tool argument."""
        return f"{self.word}_id" if self.entity else self.word


@dataclass(frozen=True, slots=True)
class Assign:
    """row.field = value."""

    row: Expression
    target: Attribute
    value: Expression
    place: Place

    @property
    def needs(self) -> frozenset[str]:
        """What it mentions."""
        return self.value.needs | {self.target.entity, f"{self.target.entity}.{self.target.field}"}


@dataclass(frozen=True, slots=True)
class Create:
    """entity(field=value, …), bound to a name where later effects speak of it."""

    entity: str
    values: Mapping[str, Expression]
    bind: str | None
    place: Place

    @property
    def needs(self) -> frozenset[str]:
        """The entity; a value of a field that is left out is left out with it."""
        return frozenset({self.entity})


@dataclass(frozen=True, slots=True)
class Delete:
    """delete(row)."""

    row: Expression
    place: Place

    @property
    def needs(self) -> frozenset[str]:
        """What it mentions."""
        return self.row.needs


@dataclass(frozen=True, slots=True)
class ForEach:
    """for item in entity if condition do effect."""

    item: str
    entity: str
    condition: Expression | None
    effect: Effect
    place: Place

    @property
    def needs(self) -> frozenset[str]:
        """What it and its effect mention."""
        return self.effect.needs | {self.entity} | (self.condition.needs if self.condition else NONE)


@dataclass(frozen=True, slots=True)
class When:
    """if condition do effect."""

    condition: Expression
    effect: Effect
    place: Place

    @property
    def needs(self) -> frozenset[str]:
        """What it and its effect mention."""
        return self.condition.needs | self.effect.needs


Effect = Assign | Create | Delete | ForEach | When


@dataclass(frozen=True, slots=True)
class Action:
    """An operation of the domain: what it takes, when it is refused, and what it does or finds.

    `does` is empty for questions, which have `finds` (a list of rows) or `gives` (one value) instead. `asks` are
    wordings of a task that wants just this action, `before` is how often it has been done before the tasks begin, and
    `word` its name in an environment.
    """

    name: str
    says: Message
    asks: tuple[Message, ...]
    takes: tuple[Parameter, ...]
    rules: tuple[Rule, ...]
    does: tuple[Effect, ...]
    finds: Expression | None
    gives: Expression | None
    before: tuple[int, int]
    optional: bool
    place: Place
    word: str

    @property
    def shared(self) -> bool:
        """Whether it is about records that every domain may have."""
        return self.place.file.startswith("_")

    @property
    def created(self) -> Create | None:
        """The row it makes and gives back."""
        return next((effect for effect in self.does if isinstance(effect, Create)), None)


@dataclass(frozen=True, slots=True)
class Given:
    """Something a task's text names: a row (by its label), a drawn value, or a value computed from others."""

    name: str
    entity: str | None
    notation: Notation | None
    formula: Expression | None
    condition: Expression | None
    place: Place

    @property
    def needs(self) -> frozenset[str]:
        """What it mentions."""
        parts = (self.notation, self.formula, self.condition)
        return NONE.union({self.entity} if self.entity else NONE, *(part.needs for part in parts if part))


@dataclass(frozen=True, slots=True)
class Find:
    """Rows that a task describes and the agent has to find.

    `how`: `first` and `last` by the value of `by`, `only` (there is one), `any` (free choice), `all` (a set of two
    or more). `item` is what a row is called in `condition` and `by`.
    """

    name: str
    how: Literal["first", "last", "only", "any", "all"]
    entity: str
    item: str
    by: Expression | None
    condition: Expression | None
    place: Place

    @property
    def needs(self) -> frozenset[str]:
        """What it mentions."""
        return NONE.union({self.entity}, *(part.needs for part in (self.by, self.condition) if part))


@dataclass(frozen=True, slots=True)
class Step:
    """An action that the goal consists of, for one row or for each of a set; `bind` names what it makes."""

    action: str
    arguments: Mapping[str, Expression]
    bind: str | None
    each: tuple[str, str] | None
    place: Place

    @property
    def needs(self) -> frozenset[str]:
        """What its arguments mention."""
        return NONE.union(*(argument.needs for argument in self.arguments.values()))


@dataclass(frozen=True, slots=True)
class TaskForm:
    """A task in terms of meaning.

    The goal is a database in which the effects of `steps` have come about and nothing else; how is left open.
    `answer` is what the final answer must say; `because` the reason it must give for having changed nothing. Where
    the right action depends on a `condition`, this is the form for rows for which it holds, and `otherwise` are the
    steps that would be right if it did not.
    """

    name: str
    says: tuple[Message, ...]
    given: tuple[Given, ...]
    find: tuple[Find, ...]
    condition: Expression | None
    steps: tuple[Step, ...]
    otherwise: tuple[Step, ...]
    answer: tuple[Expression, ...]
    because: Message | None
    place: Place

    @property
    def shared(self) -> bool:
        """Whether it is about records that every domain may have."""
        return self.place.file.startswith("_")

    @property
    def needs(self) -> frozenset[str]:
        """What it mentions, apart from its wordings."""
        optional = tuple(part for part in (self.condition, self.because) if part)
        parts = (*self.given, *self.find, *self.steps, *self.otherwise, *self.answer, *optional)
        return NONE.union(*(part.needs for part in parts))


@dataclass(frozen=True)
class Domain:
    """A domain file, or the variant of it that one environment is made from."""

    name: str
    title: str
    about: str
    user: str
    subject: str
    words: Mapping[str, tuple[str, ...]]
    entities: Mapping[str, Entity]
    actions: Mapping[str, Action]
    tasks: Mapping[str, TaskForm]
    file: str = field(default="", compare=False)

    @cached_property
    def scope(self) -> Scope:
        """What expressions may mention, with `me`, the user the agent acts for (row 1)."""
        return Scope(kinds(self.entities), {"me": Kind("row", self.user)})

    @cached_property
    def variables(self) -> frozenset[str]:
        """Every name that its actions bind, apart from those that are called like the entity of their row."""
        names: set[str] = set()
        for action in self.actions.values():
            names |= {p.name for p in action.takes if p.name != p.entity}
            for effect in action.does:
                names |= {effect.bind or ""} if isinstance(effect, Create) else set()
                names |= {effect.item} if isinstance(effect, ForEach) else set()
        return frozenset(names)


def kinds(entities: Mapping[str, Entity]) -> dict[str, dict[str, Kind]]:
    """The kind of every field of every entity."""
    return {
        name: {"id": Kind("int"), **{f.name: f.notation.kind for f in entity.fields.values()}}
        for name, entity in entities.items()
    }


def plural(word: str) -> str:
    """The plural of an English noun, by the regular rules."""
    if re.search(r"(s|x|z|ch|sh)$", word):
        return f"{word}es"
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return f"{word}s"


_CLASSES = """
Base BaseModel Body Boolean Column ConfigDict Date DateTime FastAPI Field Float ForeignKey HTTPException Integer List
Literal Optional Path Query Session SessionLocal String
"""
TAKEN_CLASSES = frozenset(_CLASSES.split())
"""Names the generated application imports or defines; a model of that name gets the ending Row."""

_APPLICATION = """
app average body count created_row datetime date days_between delete detail engine found id limit list lower me
next_code offset os plus_days query relationship require row rows search session timedelta total
abs all any avg len max min round sum
"""
_PYTHON = """
and as assert async await break class continue def del elif else except false finally for from global if import in is
lambda none nonlocal not or pass raise return true try while with yield
"""
_SQL = """
add alter begin between by case check collate commit constraint create cross current default distinct drop each end
escape exists filter foreign full group having index inner insert into isnull join key left like match natural no
notnull null of on order outer over plan pragma primary references release rename replace right rollback select set
table temp then to transaction trigger union unique update using vacuum values view virtual when where window
"""
TAKEN_NAMES = frozenset((_APPLICATION + _PYTHON + _SQL).split())
"""Names that entities, fields and parameters cannot have."""

TAKEN_VARIABLES = frozenset((_PYTHON + _SQL).split()) | {"me", "nothing"}
"""Names that what a task gives or finds cannot have."""
