"""A verifier that compares moments by their spelling, changed so that it compares the moments.

Where the source compares with a date and time of its own, both sides go through a small function that gives every
moment one spelling; in SQL, through SQLite's `datetime`. What it compares otherwise stays as it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from curation.fixes.proposal import Contents, Fix, PartEdit
from curation.fixes.source_edits import SourceEdit, SourceText
from pipeline.findings import Finding
from pipeline.model import Part

FUNCTION = "_moment"
MARK = "# Moments are compared by what they mean: T or a space, fractions of 0, Z and +00:00 are all the same."
_HELPER = f'''

{MARK}
def {FUNCTION}(value):
    """Moments in one spelling, YYYY-MM-DD HH:MM:SS in UTC; those in lists, rows and dicts too."""
    from datetime import datetime, timezone

    if isinstance(value, dict):
        return {{key: {FUNCTION}(item) for key, item in value.items()}}
    if isinstance(value, list):
        return [{FUNCTION}(item) for item in value]
    if isinstance(value, tuple):
        return tuple({FUNCTION}(item) for item in value)
    if not isinstance(value, str) or ":" not in value:
        return value
    try:
        moment = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
    except ValueError:
        return value
    if moment.tzinfo is not None:
        moment = moment.astimezone(timezone.utc).replace(tzinfo=None)
    return moment.isoformat(" ")
'''
_MOMENT = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
_IS_MOMENT = re.compile(_MOMENT)
_COLUMN = r"(?P<column>[\w.\"`]+)(?P<between>\s*(?:=|==|!=|<>|<=|>=|<|>)\s*)"
_IN_SQL = re.compile(rf"(?<![\w.(]){_COLUMN}'(?P<moment>{_MOMENT})'")
_BEFORE_PARAMETER = re.compile(rf"(?<![\w.(]){_COLUMN}$")
_SQL = re.compile(r"\s*(?:SELECT|WITH)\b", re.I)
_PASSES_ON = frozenset({"items", "values", "get", "copy", "strip"})
"""Methods whose result holds what their object holds."""


def one_spelling(finding: Finding, contents: Contents) -> Iterator[Fix]:
    """Make the verifier that a finding is about compare moments instead of their spelling."""
    found = re.search(r"task (\d+), (\w+) mode", finding.where)
    slot = f"{found[1]}/{found[2]}" if found else ""
    before = contents.get((Part.verifier, slot))
    after = normalised(before) if before is not None else None
    if before is not None and after is not None:
        says = "compare moments by what they mean, where the verifier has a date and time of its own"
        yield Fix(finding.code, finding.where, says, (PartEdit(Part.verifier, slot, before, after),))


def normalised(code: str) -> str | None:
    """The source with its comparisons of moments changed; None where there is nothing (more) to change."""
    try:
        source = SourceText(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if re.search(rf"\b{FUNCTION}\b", code):
        return None
    holding = _Holding(source.tree)
    inner = {id(node) for text in ast.walk(source.tree) if isinstance(text, ast.JoinedStr) for node in ast.walk(text)}
    nodes = [node for node in ast.walk(source.tree) if id(node) not in inner]
    compared = [edit for node in nodes if isinstance(node, ast.Compare) for edit in _comparison(source, node, holding)]
    queried = [*_statements(source, nodes, holding)]
    if not compared and not queried:
        return None
    return source.edited([*compared, *queried]).rstrip("\n") + "\n" + (_HELPER if compared else f"\n\n{MARK}\n")


class _Holding:
    """Which expressions hold a moment that the source itself gives: one written there, or a name for it."""

    def __init__(self, tree: ast.Module) -> None:
        self.names: set[str] = set()
        found = True
        while found:
            found = False
            for target, value in _assignments(tree):
                names = {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
                if not names <= self.names and self.holds(value):
                    self.names |= names
                    found = True

    def holds(self, node: ast.AST) -> bool:
        """Whether an expression is, or has in it, such a moment."""
        match node:
            case ast.Constant(value=str(text)):
                return _IS_MOMENT.fullmatch(text.strip()) is not None
            case ast.Name(id=name):
                return name in self.names
            case ast.Call(func=ast.Attribute(value=value, attr=method)):
                return method in _PASSES_ON and self.holds(value)
            case ast.Call() | ast.Lambda() | ast.Compare():
                return False
        return any(self.holds(child) for child in ast.iter_child_nodes(node))


def _assignments(tree: ast.Module) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value):
                yield from ((target, value) for target in targets if isinstance(target, (ast.Name, ast.Tuple)))
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                yield target, value
            case ast.NamedExpr(target=target, value=value):
                yield target, value
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                yield target, value


def _comparison(source: SourceText, node: ast.Compare, holding: _Holding) -> Iterator[SourceEdit]:
    sides = [node.left, *node.comparators]
    if any(isinstance(operator, (ast.Is, ast.IsNot)) for operator in node.ops) or not any(map(holding.holds, sides)):
        return
    for side in sides:
        yield from source.wrap(side, FUNCTION)


def _statements(source: SourceText, nodes: list[ast.AST], holding: _Holding) -> Iterator[SourceEdit]:
    """The queries with moments in them, or given to them as parameters."""
    texts = {id(node): node for node in nodes if isinstance(node, ast.Constant) and _is_sql(node)}
    named = _named_statements(nodes)
    parameters: dict[int, set[int]] = {}
    for call in (node for node in nodes if isinstance(node, ast.Call)):
        for place, argument in enumerate(call.args[:-1]):
            text = named.get(argument.id) if isinstance(argument, ast.Name) else argument
            given = call.args[place + 1]
            if text is not None and id(text) in texts and isinstance(given, (ast.Tuple, ast.List)):
                wanted = {number for number, item in enumerate(given.elts) if holding.holds(item)}
                parameters.setdefault(id(text), set()).update(wanted)
    for key, text in texts.items():
        before = source.segment(text)
        after = _with_parameters(before, parameters.get(key, set()))
        after = _IN_SQL.sub(r"datetime(\g<column>)\g<between>datetime('\g<moment>')", after)
        if after != before:
            yield source.replace(text, after)


def _named_statements(nodes: list[ast.AST]) -> dict[str, ast.Constant]:
    """The queries that have a name, which nothing else has."""
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
    return {
        name: values[0]
        for name, values in found.items()
        if len(values) == 1 and isinstance(values[0], ast.Constant) and _is_sql(values[0])
    }


def _is_sql(node: ast.Constant) -> bool:
    return isinstance(node.value, str) and _SQL.match(node.value) is not None


def _with_parameters(text: str, wanted: set[int]) -> str:
    pieces = text.split("?")
    for number in wanted:
        if number + 1 < len(pieces):
            pieces[number] = _BEFORE_PARAMETER.sub(r"datetime(\g<column>)\g<between>datetime(", pieces[number])
            if pieces[number].endswith("datetime("):
                pieces[number + 1] = f"){pieces[number + 1]}"
    return "?".join(pieces)
