"""Lists the tools of a FastAPI application as upstream's server, fastapi-mcp 0.4.0 on FastAPI 0.115, lists them.

Upstream derives names, descriptions and input schemas from OpenAPI; so do we, except where OpenAPI loses routes (two
with the same method and path) and where agents could not call a name.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, RouteContext, iter_route_contexts

from pipeline.findings import Finding
from pipeline.runtime.tools import MAX_NAME, Tool

METHODS = ("get", "put", "post", "delete", "patch")
"""The methods upstream makes tools of."""


@dataclass(frozen=True, slots=True)
class ToolRoute:
    """A tool with the route that answers it and the parameters its arguments are split into.

    `shadowed` tells that the router would never reach this route: an earlier one takes all its requests.
    """

    tool: Tool
    route: RouteContext
    path_parameters: tuple[str, ...]
    query_parameters: tuple[str, ...]
    header_parameters: tuple[str, ...]
    shadowed: bool


def list_tools(app: FastAPI, tree: ast.Module) -> tuple[tuple[ToolRoute, ...], tuple[Finding, ...]]:
    """The app's tools in upstream's order, with what is remarkable about them; `tree` is the program's source."""
    operations = _operations(app)
    names, findings = _names([operation["operationId"] for _, _, operation in operations])
    lines = _handler_lines(tree)
    found = []
    for (route, method, operation), name in zip(operations, names, strict=True):
        tool = Tool(
            name=name,
            description=_description(operation, method, route.path_format or ""),
            input_schema=_input_schema(operation),
            method=method.upper(),
            path=route.path_format or "",
            operation_id=operation["operationId"],
            tags=tuple(str(tag) for tag in operation.get("tags", ())),
            line=_line(route, lines),
        )
        findings += _schema_findings(tool)
        winner = _shadowed_by(app, route, tool.method)
        if winner is not None:
            findings.append(_shadowed(tool, winner))
        found.append(ToolRoute(tool, route, *_parameters(operation), shadowed=winner is not None))
    return tuple(found), tuple(findings)


def _operations(app: FastAPI) -> list[tuple[RouteContext, str, dict[str, Any]]]:
    """Every (route, method, OpenAPI operation), references resolved, in the order upstream lists them.

    OpenAPI has room for one operation a (path, method) and keeps the last, as upstream does. The others are taken
    from documents of their own, one for each time a (path, method) was defined before, and stand before the last.
    """
    routes = [route for route in iter_route_contexts(app.routes) if isinstance(route.original_route, APIRoute)]
    first: dict[object, int] = {}  # where a path, and a (path, method), is defined first: OpenAPI keeps that order
    layers: list[dict[tuple[str | None, str], RouteContext]] = []
    for number, route in enumerate(routes):
        first.setdefault(route.path_format, number)
        for method in route.methods or ():
            first.setdefault((route.path_format, method.lower()), number)
    for route in reversed(routes):
        for method in route.methods or ():
            place = (route.path_format, method.lower())
            layer = next((layer for layer in layers if place not in layer), None)
            if layer is None:
                layers.append(layer := {})
            layer[place] = route
    found: list[tuple[RouteContext, str, dict[str, Any]]] = []
    for layer in layers:
        places = sorted(layer, key=lambda place: (first[place[0]], first[place], place[1]))
        members = {id(layer[place]): layer[place] for place in places}
        document = get_openapi(title=app.title, version=app.version, routes=list(members.values()))
        schemas = document.get("components", {}).get("schemas", {})
        for path, item in document["paths"].items():
            for method, operation in item.items():
                route = layer.get((path, method))
                if route is not None and method in METHODS:
                    entry = (route, method, _resolved(operation, schemas))
                    found.insert(_before_same_place(found, entry), entry)
    return found


def _before_same_place(found: Sequence[tuple[RouteContext, str, Any]], entry: tuple[RouteContext, str, Any]) -> int:
    place = (entry[0].path_format, entry[1])
    same = (number for number, (route, method, _) in enumerate(found) if (route.path_format, method) == place)
    return next(same, len(found))


def _resolved(part: Any, schemas: Mapping[str, Any], seen: tuple[str, ...] = ()) -> Any:
    """The schema with references replaced by what they refer to.

    A schema that refers to itself is repeated once; then an empty schema, which allows anything, ends it (upstream
    cannot serve such an app at all).
    """
    if isinstance(part, list):
        return [_resolved(item, schemas, seen) for item in part]
    if not isinstance(part, dict):
        return part
    reference = part.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/components/schemas/"):
        name = reference.rpartition("/")[2]
        if seen.count(name) == 2:
            return {key: value for key, value in part.items() if key != "$ref"}
        if name in schemas:
            part = {**{key: value for key, value in part.items() if key != "$ref"}, **schemas[name]}
            seen = (*seen, name)
    return {key: _resolved(value, schemas, seen) for key, value in part.items()}


def _description(operation: Mapping[str, Any], method: str, path: str) -> str:
    text = operation.get("summary") or f"{method.upper()} {path}"
    if operation.get("description"):
        text += f"\n\n{operation['description']}"
    responses = operation.get("responses")
    if not responses:
        return text
    text += "\n\n### Responses:\n"
    success = next((str(code) for code in range(200, 300) if str(code) in responses), None)
    for code in [success] if success else responses:
        response = responses[code]
        text += f"\n**{code}**: {response.get('description', '')}"
        text += " (Success Response)" if success else ""
        for media_type, content in response.get("content", {}).items():
            if "schema" in content:
                text += f"\nContent-Type: {media_type}{_example_text(content)}"
    return text


def _example_text(content: Mapping[str, Any]) -> str:
    if "examples" in content:
        example = next((item["value"] for item in content["examples"].values() if "value" in item), None)
    else:
        example = content.get("example")
    example = example or _example(content["schema"])
    return f"\n\n**Example Response:**\n```json\n{json.dumps(example, indent=2)}\n```" if example else ""


_STRING_EXAMPLES = {
    "date-time": "2023-01-01T00:00:00Z",
    "date": "2023-01-01",
    "email": "user@example.com",
    "uri": "https://example.com",
}
_EXAMPLES = {"integer": 1, "number": 1.0, "boolean": True}


def _example(schema: Any) -> Any:
    """Upstream's example of a schema: unions and anything without a plain type have none (None)."""
    if not schema or not isinstance(schema, dict):
        return None
    kind = schema.get("type")
    if kind == "object":
        members = {name: _example(member) for name, member in schema.get("properties", {}).items()}
        return {name: value for name, value in members.items() if value is not None}
    if kind == "array":
        item = _example(schema["items"]) if "items" in schema else None
        return [] if item is None else [item]
    if kind == "string":
        return _STRING_EXAMPLES.get(schema.get("format"), schema.get("title", "string"))
    return _EXAMPLES.get(kind) if isinstance(kind, str) else None


def _parameters(operation: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    groups: dict[str, list[str]] = {"path": [], "query": [], "header": []}
    for parameter in operation.get("parameters", ()):
        if parameter["in"] in groups:
            groups[parameter["in"]].append(parameter["name"])
    return tuple(groups["path"]), tuple(groups["query"]), tuple(groups["header"])


def _input_schema(operation: Mapping[str, Any]) -> dict[str, Any]:
    """One flat object of path, query and body properties, as upstream flattens them."""
    properties: dict[str, Any] = {}
    required: list[str] = []

    def add(name: str, schema: Mapping[str, Any], description: str, needed: bool, kind: str) -> None:
        merged = {**schema, "title": name}
        if description:
            merged["description"] = description
        merged.setdefault("type", kind)
        properties[name] = merged
        if needed:
            required.append(name)

    for place in ("path", "query"):
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == place:
                schema = parameter.get("schema", {})
                kind = "string" if place == "path" else _union_type(schema)
                needed = parameter.get("required", place == "path")
                add(parameter["name"], schema, parameter.get("description", ""), needed, kind)
    body = next(iter(operation.get("requestBody", {}).get("content", {}).values()), {}).get("schema", {})
    for name, schema in body.get("properties", {}).items():
        add(name, schema, "", name in body.get("required", ()), _union_type(schema))
    flat: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "title": f"{operation['operationId']}Arguments",
    }
    if required:
        flat["required"] = required
    return flat


def _union_type(schema: Mapping[str, Any]) -> str:
    """The type upstream writes beside `anyOf`: one of its members' types.

    Upstream takes any of them (the first of a set of strings, which depends on its process's hash seed); here it is
    always the same.
    """
    kinds = [member["type"] for member in schema.get("anyOf", ()) if member.get("type")]
    if "number" in kinds:  # rather than "integer", which would forbid half of what the union allows
        return "number"
    return next((kind for kind in kinds if kind != "null"), "string")


def _names(operation_ids: Sequence[str]) -> tuple[list[str], list[Finding]]:
    """A callable name for each operation, all different, the same in every process.

    Of operations with the same id the last keeps it: it is the one upstream calls.
    """
    taken = {name for name in operation_ids if _callable_name(name) == name}
    names: dict[int, str] = {}
    findings = []
    for number in reversed(range(len(operation_ids))):
        operation = operation_ids[number]
        duplicate = operation in operation_ids[number + 1 :]
        name = operation
        if duplicate or _callable_name(operation) != operation:
            name = _free_name(operation, taken)
            taken.add(name)
            findings.append(_renamed(operation, name, duplicate=duplicate))
        names[number] = name
    return [names[number] for number in range(len(operation_ids))], findings[::-1]


def _callable_name(operation: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", operation)[:MAX_NAME] or "operation"


def _free_name(operation: str, taken: set[str]) -> str:
    wanted = re.sub(r"[^a-zA-Z0-9_-]", "_", operation) or "operation"
    if len(wanted) > MAX_NAME:
        digest = hashlib.sha256(operation.encode()).hexdigest()[:8]
        wanted = f"{wanted[: MAX_NAME - 9]}_{digest}"
    name, number = wanted, 1
    while name in taken:
        number += 1
        suffix = f"_{number}"
        name = f"{wanted[: MAX_NAME - len(suffix)]}{suffix}"
    return name


def _renamed(operation: str, name: str, *, duplicate: bool) -> Finding:
    if duplicate:
        return Finding(
            code="duplicate_operation",
            severity="error",
            where=f"code: {name}",
            message=f"the operation id {operation} is used more than once; this one is called {name}",
            evidence=operation,
            remedy="give every operation an id of its own, in the spec and in the code",
        )
    return Finding(
        code="tool_name",
        severity="warn",
        where=f"code: {name}",
        message=f"the operation id {operation} cannot be a tool's name; it is called {name}",
        evidence=operation,
        remedy=f"use at most {MAX_NAME} letters, digits, _ and -",
    )


def _schema_findings(tool: Tool) -> list[Finding]:
    validator = jsonschema.validators.validator_for(tool.input_schema)
    try:
        validator.check_schema(tool.input_schema)
    except jsonschema.SchemaError as error:
        return [
            Finding(
                code="tool_schema",
                severity="warn",
                where=f"code: {tool.name}",
                message="the input schema is not valid JSON Schema: an upstream server refuses every call of this tool",
                evidence=f"code:{tool.line}: {error.message} in {error.json_path}",
                remedy="correct the parameter's declaration; `examples` is a list",
            )
        ]
    return []


def _shadowed_by(app: FastAPI, route: RouteContext, method: str) -> RouteContext | None:
    """The earlier route that takes every request meant for this one, if there is one."""
    for other in iter_route_contexts(app.routes):
        if other.original_route is route.original_route and other.path_format == route.path_format:
            return None
        pattern = getattr(other, "path_regex", None)
        if pattern is not None and method in (other.methods or ()) and pattern.match(route.path_format or ""):
            return other
    return None


def _shadowed(tool: Tool, winner: RouteContext) -> Finding:
    return Finding(
        code="shadowed_route",
        severity="error",
        where=f"code: {tool.name}",
        message=f"a server never reaches {tool.method} {tool.path}: {winner.path} is defined before it",
        evidence=f"code:{tool.line}: {tool.operation_id}, taken by {winner.name}",
        remedy="give the operations different paths or methods, or define the more specific path first",
    )


def _handler_lines(tree: ast.Module) -> dict[int, int]:
    """The line of `def`, by the line on which its first decorator (what Python calls its first line) stands."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {min([node.lineno, *(item.lineno for item in node.decorator_list)]): node.lineno for node in functions}


def _line(route: RouteContext, lines: Mapping[int, int]) -> int:
    code = getattr(route.endpoint, "__code__", None)
    return lines.get(code.co_firstlineno, code.co_firstlineno) if code else 0
