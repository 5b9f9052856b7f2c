"""Rules about an API spec (unique, usable, only what the schema has) and about the application that implements it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pipeline.findings import Finding
from pipeline.model import Environment, Operation

if TYPE_CHECKING:
    from pipeline.runtime.tools import Tool

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What every model provider and MCP client accepts as a tool name (OpenAI and Anthropic function names: letters,
digits, `_`, `-`, at most 64 characters)."""


def spec_findings(operations: Sequence[Operation], tables: Iterable[str]) -> tuple[Finding, ...]:
    """Everything wrong with a spec that can be seen before any code is generated.

    `tables` are the names the schema declares; pass none to leave that rule out (there is no schema to compare).
    """
    return (
        *duplicate_operation_ids(operations),
        *duplicate_routes(operations),
        *unusable_names(operations),
        *odd_names(operations),
        *unknown_tables(operations, tables),
    )


def duplicate_operation_ids(operations: Sequence[Operation]) -> list[Finding]:
    """Two operations with one id: only one of them can be a tool."""
    return [
        Finding(
            "operation_id_twice",
            "error",
            f"spec: {name}",
            f"the operation id {name} is used {count} times, so only one of them can be called",
            evidence=", ".join(f"{op.method} {op.path}" for op in operations if op.operation_id == name),
            remedy="give each operation its own id",
        )
        for name, count in Counter(op.operation_id for op in operations).items()
        if count > 1
    ]


def duplicate_routes(operations: Sequence[Operation]) -> list[Finding]:
    """Two operations on one method and path: a web framework runs the first and documents the last."""
    at: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for op in operations:
        at[op.method.upper(), re.sub(r"\{[^}]*\}", "{}", op.path)].append(op.operation_id)
    return [
        Finding(
            "route_twice",
            "error",
            f"spec: {method} {path}",
            f"{' and '.join(names)} share {method} {path}: served over HTTP, only the first one runs",
            evidence=", ".join(names),
            remedy="give each operation its own path, for example by a suffix",
        )
        for (method, path), names in at.items()
        if len(set(names)) > 1
    ]


def unusable_names(operations: Sequence[Operation]) -> list[Finding]:
    """Operation ids that model providers refuse as tool names."""
    return [
        Finding(
            "tool_name",
            "warn",
            f"spec: {op.operation_id}",
            "model providers refuse this tool name: they take 1 to 64 letters, digits, '_' and '-'",
            evidence=f"{len(op.operation_id)} characters: {op.operation_id}",
            remedy="rename the operation; until then its tool is listed under a shortened name",
        )
        for op in operations
        if not TOOL_NAME.fullmatch(op.operation_id)
    ]


def odd_names(operations: Sequence[Operation]) -> list[Finding]:
    """Operation ids that are no snake_case names: callable, but unlike those agents are trained on."""
    return [
        Finding(
            "operation_id_form",
            "warn",
            f"spec: {op.operation_id}",
            f"the operation id {op.operation_id} is not in snake_case",
            remedy="write it in lower case with underscores",
        )
        for op in operations
        if TOOL_NAME.fullmatch(op.operation_id) and not re.fullmatch(r"[a-z][a-z0-9_]*", op.operation_id)
    ]


def unknown_tables(operations: Sequence[Operation], tables: Iterable[str]) -> list[Finding]:
    """Operations that need tables the schema does not declare."""
    known = {table.lower() for table in tables}
    if not known:
        return []
    return [
        Finding(
            "operation_needs_missing_table",
            "error",
            f"spec: {op.operation_id}",
            f"{op.operation_id} needs {', '.join(lost)}, which the schema does not declare",
            evidence=f"required tables: {', '.join(op.tables)}",
            remedy="add the table to the schema or take it out of the spec",
        )
        for op in operations
        if (lost := [table for table in op.tables if table.lower() not in known])
    ]


def unknown_columns(operations: Sequence[Operation], columns: Mapping[str, Sequence[str]]) -> list[Finding]:
    """Operations that need columns their tables do not have; `columns` are those of each table that exists."""
    there = {table.lower(): {column.lower() for column in found} for table, found in columns.items()}
    findings = []
    for op in operations:
        lost = [
            f"{table}.{field}"
            for table, fields in op.fields.items()
            if table.lower() in there and isinstance(fields, list)
            for field in fields
            if str(field).lower() not in there[table.lower()]
        ]
        if lost:
            findings.append(
                Finding(
                    "operation_needs_missing_column",
                    "error",
                    f"spec: {op.operation_id}",
                    f"{op.operation_id} needs {', '.join(lost)}, which the schema does not declare",
                    remedy="use the columns the tables have",
                )
            )
    return findings


def interface_findings(environment: Environment, tools: Sequence[Tool]) -> Iterator[Finding]:
    """Operations that are in the spec and not in the application, and the other way round."""
    served = {tool.operation_id: tool for tool in tools}
    if not served:
        yield Finding(
            "no_tools",
            "error",
            "code",
            "the application offers no tool, so an agent can do nothing in it",
            remedy="give its routes operation ids and one of the methods GET, POST, PUT, PATCH, DELETE",
            tasks=tuple(range(len(environment.tasks))),
        )
    specified = {operation.operation_id for operation in environment.operations}
    for operation in environment.operations:
        if operation.operation_id not in served:
            yield Finding(
                "operation_missing",
                "error",
                f"code: {operation.operation_id}",
                f"the spec promises {operation.operation_id} and the application does not offer it",
                evidence=f"{operation.method} {operation.path}",
                remedy="add a handler with this operation id",
            )
    if not specified:
        return
    for name, tool in served.items():
        if name not in specified:
            yield Finding(
                "operation_not_in_spec",
                "warn",
                f"code: {name}",
                f"the application offers {name}, which the spec does not know",
                evidence=f"{tool.method} {tool.path}",
                remedy="add it to the spec, or take it out of the application",
            )
