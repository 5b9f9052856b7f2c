"""What an environment is compared by: its text from one point of view, with its own name masked.

Brand names hide duplicates: of 100 real seed scenarios no pair reached a cosine of 0.80 with the names in, and 13
pairs reached 0.85 without them. So a scenario's own name is taken out of every text before it is compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

from pipeline.model import Environment, Part, TableSchema


class View(StrEnum):
    """A point of view. `all` is the scenario, its tasks and the names of its tools, the best judge of pairs."""

    scenario = "scenario"
    tasks = "tasks"
    schema = "schema"
    tools = "tools"
    all = "all"


PARTS = (Part.scenario, Part.tasks, Part.schema, Part.spec)
"""The parts that texts are made from (masking reads them all); code, rows and verifiers need not be loaded."""


def view_text(environment: Environment, view: View) -> str:
    """The environment's text in a view, its own name masked; empty if the parts it needs are missing."""
    return mask(_text(environment, view), environment)


def _text(environment: Environment, view: View) -> str:
    match view:
        case View.scenario:
            return environment.description
        case View.tasks:
            return "\n".join(environment.tasks)
        case View.schema:
            return "\n".join(f"{table.name}: {', '.join(column_names(table))}" for table in environment.schema)
        case View.tools:
            return "\n".join(f"{_tool_name(o.operation_id)}: {o.summary}" for o in environment.operations)
        case View.all:
            tools = "\n".join(_tool_name(operation.operation_id) for operation in environment.operations)
            return "\n".join(filter(None, (environment.description, *environment.tasks, tools)))


def _tool_name(operation_id: str) -> str:
    return operation_id.replace("_", " ")


_NOT_A_COLUMN = frozenset({"primary", "foreign", "unique", "check", "constraint", "key"})


def column_names(table: TableSchema) -> list[str]:
    """The column names in a table's DDL, read as text: the DDL is generated and is not run here."""
    body = table.ddl.partition("(")[2]
    names = (match[1] for part in _top_level_parts(body) if (match := re.match(r'\s*["`\[]?(\w+)', part)))
    return [name for name in names if name.lower() not in _NOT_A_COLUMN]


def _top_level_parts(body: str) -> Iterator[str]:
    """The comma-separated parts of a bracket's inside, up to its closing bracket, without comments and texts."""
    depth, part = 0, ""
    for character in re.sub(r"--[^\n]*|'[^']*'", "", body):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            break
        if character == "," and not depth:
            yield part
            part = ""
        else:
            part += character
    yield part


def mask(text: str, environment: Environment) -> str:
    """The text without the environment's own name, in any case and spacing."""
    forms = own_names(environment)
    if not forms:
        return text
    spellings = "|".join(r"[\W_]*".join(map(re.escape, _words(form))) for form in forms)
    return re.sub(rf"(?i)(?<![a-z0-9])(?:{spellings})(?:['’]s)?(?![a-z0-9])", " ", text)


def own_names(environment: Environment) -> list[str]:
    """The forms of an environment's name that say who it is and not what it does, longest first.

    Candidates are the title, the title before its bracket or colon, the catalog name and their single words. One is
    a name if it has a word that is no table or column and that the description and tasks never write in lower case:
    “Etsy” is, the “downloads” of “Etsy Digital Downloads” is not, and the title “Library” is not where books belong
    to a library.
    """
    prose = "\n".join((environment.description, *environment.tasks))
    plain = set(re.findall(r"(?<![\w@./-])[a-z0-9]+(?![\w@/-])", prose))
    plain.update(
        word for table in environment.schema for name in (table.name, *column_names(table)) for word in _words(name)
    )
    title = environment.title or environment.name
    whole = [title, re.split(r"[(:–—|]| - ", title)[0], environment.name]
    candidates = {" ".join(_words(form)) for form in (*whole, *(w for form in whole[1:] for w in _words(form)))}
    names = (form for form in candidates if any(_says_who(word, plain) for word in form.split()))
    return sorted(names, key=lambda form: (-len(form), form))


def _says_who(word: str, plain: set[str]) -> bool:
    return len(word) > 2 and not word.isdigit() and word not in plain


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W_]+", name.lower())
