"""Two environments side by side: what they share and where they differ."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass

from pipeline.model import Environment


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing compared: what it is in either environment in a few words, and in full. "" means it is not there."""

    group: str
    name: str
    left: str
    right: str
    left_text: str = ""
    right_text: str = ""
    language: str = ""

    @property
    def same(self) -> bool:
        """Whether both have it and it is equal."""
        return (self.left, self.left_text) == (self.right, self.right_text)

    def difference(self) -> tuple[str, str]:
        """The full text where both are equal, else a unified diff; and its language."""
        if self.same:
            return self.left_text or self.left, self.language
        before = (self.left_text or self.left).splitlines()
        after = (self.right_text or self.right).splitlines()
        return "\n".join(difflib.unified_diff(before, after, "left", "right", lineterm="", n=3)), "diff"


def compare(left: Environment, right: Environment) -> list[Fact]:
    """What there is to compare, in the order of the stages."""
    facts = [
        Fact("scenario", "description", _size(left.description), _size(right.description), left.description,
             right.description),
        Fact("scenario", "pinned time", f"{left.now:%Y-%m-%d %H:%M}", f"{right.now:%Y-%m-%d %H:%M}"),
    ]  # fmt: skip
    facts += _each("task", _tasks(left), _tasks(right), _size)
    facts += _each("table", _tables(left), _tables(right), _size, language="sql")
    facts += _each("rows", _rows(left), _rows(right), _size, language="sql")
    facts += _each("tool", _tools(left), _tools(right), _size, language="json")
    if left.code or right.code:
        facts += _each("code", _code(left), _code(right), _size, language="python")
    facts += _each("verifier", _verifiers(left), _verifiers(right), _size, language="python")
    return facts


def _each(
    group: str, left: Mapping[str, str], right: Mapping[str, str], brief: Callable[[str], str], *, language: str = ""
) -> Iterator[Fact]:
    """A fact for every name either side has, those of the left first."""
    for name in dict.fromkeys([*left, *right]):
        ours, theirs = left.get(name, ""), right.get(name, "")
        yield Fact(group, name, brief(ours), brief(theirs), ours, theirs, language)


def _size(text: str) -> str:
    lines = text.count("\n") + 1
    if not text:
        return ""
    return text if lines == 1 and len(text) <= 60 else f"{lines} lines" if lines > 1 else f"{len(text)} characters"


def _tasks(env: Environment) -> dict[str, str]:
    return {str(number): text for number, text in enumerate(env.tasks)}


def _tables(env: Environment) -> dict[str, str]:
    return {table.name: "\n".join([table.ddl, *table.indexes]) for table in env.schema}


def _rows(env: Environment) -> dict[str, str]:
    return {rows.table: "\n".join(rows.inserts) for rows in env.sample}


def _tools(env: Environment) -> dict[str, str]:
    return {tool.operation_id: json.dumps(asdict(tool), indent=2, ensure_ascii=False) for tool in env.operations}


def _code(env: Environment) -> dict[str, str]:
    return {"application": env.code} if env.code else {}


def _verifiers(env: Environment) -> dict[str, str]:
    return {f"{verifier.task} {verifier.mode.value}": verifier.code for verifier in env.verifiers}
