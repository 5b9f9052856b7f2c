"""Two operations of one method and path: the one that a server never reaches gets a path of its own."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from curation.fixes.proposal import Contents, Fix, PartEdit
from curation.fixes.source_edits import SourceText
from pipeline.findings import Finding
from pipeline.model import Part
from pipeline.parts import dumps

_PARAMETER = re.compile(r"\\\{[^}]*\}")
METHODS = frozenset({"get", "put", "post", "delete", "patch"})


def own_path(finding: Finding, contents: Contents) -> Iterator[Fix]:
    """Give each operation that another one hides its own path, in the application and in the spec."""
    if finding.code == "shadowed_route":
        all_hidden = [finding.where.partition(":")[2].strip()]
    else:
        all_hidden = finding.evidence.split(", ")[1:]
    for hidden in all_hidden:
        edits = _moved(hidden, contents)
        if edits:
            yield Fix(finding.code, finding.where, f"give {hidden} a path of its own", edits)


def _moved(operation: str, contents: Contents) -> tuple[PartEdit, ...]:
    spec = json.loads(contents.get((Part.spec, ""), "{}"))
    endpoint = next((one for one in _endpoints(spec) if one.get("operation_id") == operation), None)
    others = {str(one["operation_id"]): str(one["path"]) for one in _endpoints(spec) if one is not endpoint}
    ending = _ending(operation, str(endpoint["path"]) if endpoint else "", others)
    edits = []
    if endpoint is not None:
        endpoint["path"] = f"{str(endpoint['path']).rstrip('/')}/{ending}"
        edits.append(PartEdit(Part.spec, "", contents[Part.spec, ""], dumps(spec)))
    code = contents.get((Part.code, ""))
    if code is not None:
        moved = _moved_in(code, operation, ending)
        if moved is None:
            return ()  # a spec that says something else than the application is no remedy
        edits.append(PartEdit(Part.code, "", code, moved))
    return tuple(edits)


def _ending(operation: str, path: str, others: Mapping[str, str]) -> str:
    """What is added to the path: the words in which the operation differs from those that have the same path.

    `others` are the paths of the other operations.
    """
    sharing = {word for other, there in others.items() if there == path for word in other.split("_")}
    short = "-".join(word for word in operation.split("_") if word not in sharing)
    full = operation.replace("_", "-")
    moved = f"{path.rstrip('/')}/{short}"
    taken = any(re.fullmatch(_PARAMETER.sub("[^/]+", re.escape(there)), moved) for there in others.values())
    return short if short and not taken else full


def _endpoints(spec: Any) -> Iterator[dict[str, Any]]:
    """The operations that say their id and their path; what a generator wrote otherwise is left alone."""
    for group in spec.get("api_groups") or ():
        for one in (isinstance(group, dict) and group.get("endpoints")) or ():
            if isinstance(one, dict) and isinstance(one.get("operation_id"), str) and isinstance(one.get("path"), str):
                yield one


def _moved_in(code: str, operation: str, ending: str) -> str | None:
    """The application with the operation's route at its new path; None where its decorator is not found."""
    try:
        source = SourceText(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for function in ast.walk(source.tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for decorator in function.decorator_list:
                path = _path_of(decorator, function.name, operation)
                if path is not None:
                    moved = json.dumps(f"{path.value.rstrip('/')}/{ending}", ensure_ascii=False)
                    return source.edited([source.replace(path, moved)])
    return None


def _path_of(decorator: ast.expr, function: str, operation: str) -> Any:
    """The text of the path that a route decorator gives this operation."""
    if not isinstance(decorator, ast.Call) or not isinstance(decorator.func, ast.Attribute):
        return None
    if decorator.func.attr not in METHODS:
        return None
    given = {keyword.arg: keyword.value for keyword in decorator.keywords}
    name = given.get("operation_id")
    named = name.value if isinstance(name, ast.Constant) else function
    path = decorator.args[0] if decorator.args else given.get("path")
    is_it = named == operation and isinstance(path, ast.Constant) and isinstance(path.value, str)
    return path if is_it else None
