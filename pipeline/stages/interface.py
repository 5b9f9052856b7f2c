"""Stage 4: the API spec, then the application, which is loaded and called before it is believed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import orjson

from pipeline.findings import Finding
from pipeline.llm.text import Unreadable, unfence
from pipeline.model import Environment, Part
from pipeline.rules.calls import call_findings
from pipeline.rules.interface import interface_findings, spec_findings, unknown_columns
from pipeline.rules.schema import columns_of
from pipeline.stages.database import schema_text
from pipeline.stages.json_reply import TEXT, array, content_of, read_document
from pipeline.stages.prompts import numbered, render
from pipeline.stages.step import Step, Weight, usual_weight, with_part

if TYPE_CHECKING:
    from pipeline.runtime.host import Host

ANY_OBJECT = {"type": "object"}
ENDPOINT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "pattern": "^/"},
        "method": {"type": "string", "enum": ["GET", "POST", "PUT", "PATCH", "DELETE"]},
        "summary": TEXT,
        "description": TEXT,
        "operation_id": {"type": "string", "minLength": 1},
        "tags": array(TEXT),
        "request_params": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": {"type": TEXT, "param_type": {"enum": ["path", "query", "body", "header"]}},
                "required": ["type", "param_type"],
            },
        },
        "response": ANY_OBJECT,
        "required_tables": array(TEXT),
        "required_fields": {"type": "object", "additionalProperties": array(TEXT)},
    },
    "required": ["path", "method", "operation_id", "description", "request_params", "response", "required_tables"],
}
SPEC_SHAPE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "api_groups": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {"group_name": TEXT, "endpoints": array(ENDPOINT)},
                "required": ["group_name", "endpoints"],
            },
        }
    },
    "required": ["api_groups"],
}


def spec_steps(environment: Environment) -> tuple[Step, ...]:
    """One request for the whole spec."""
    return (
        Step(
            stage="interface",
            part=Part.spec,
            what="JSON document with all operations",
            prompt=render(
                "spec",
                name=environment.title or environment.name,
                description=environment.description,
                schema=schema_text(environment),
                tasks=numbered(environment.tasks),
            ),
            schema=SPEC_SHAPE,
            read=lambda text: content_of(read_document(text, SPEC_SHAPE)),
            check=lambda content, host: check_spec(with_part(environment, Part.spec, content), host),
        ),
    )


def code_steps(environment: Environment) -> tuple[Step, ...]:
    """One request for the whole file."""
    return (
        Step(
            stage="interface",
            part=Part.code,
            what="file",
            prompt=render(
                "code",
                name=environment.title or environment.name,
                schema=schema_text(environment),
                spec=operations_text(environment),
            ),
            read=read_code,
            check=lambda content, host: check_code(with_part(environment, Part.code, content), host),
            weigh=weigh_code,
        ),
    )


def read_code(text: str) -> str:
    """The Python file in a reply. Raises Unreadable where it is no FastAPI application."""
    source = unfence(text)
    if "FastAPI(" not in source:
        raise Unreadable("The reply contains no FastAPI application. Reply with the complete file in one code block.")
    return source + "\n"


def check_spec(environment: Environment, host: Host) -> Sequence[Finding]:
    """Compare the spec with itself and with the tables as they are built."""
    columns = columns_of(host.build(environment).snapshot)
    return [
        *spec_findings(environment.operations, columns),
        *unknown_columns(environment.operations, columns),
    ]


def check_code(environment: Environment, host: Host) -> Sequence[Finding]:
    """Load the file on the built database, compare it with the spec, and call every operation once."""
    from pipeline.runtime.host import LoadFailed

    build = host.build(environment)
    try:
        with host.program(environment, snapshot=build.snapshot) as program:
            return [
                *program.findings,
                *interface_findings(environment, program.tools),
                *call_findings(environment, program),
            ]
    except LoadFailed as failed:
        return [failed.finding]


def weigh_code(finding: Finding) -> Weight:
    """A tool that fails is corrected while there are attempts left, then kept on record with the tasks it blocks."""
    if finding.code in ("tool_server_error", "response_invalid", "error_after_change", "tool_timeout", "tool_crash"):
        return Weight.correct
    if finding.severity == "warn":
        return Weight.advise
    return usual_weight(finding)


def operations_text(environment: Environment) -> str:
    """The operations as JSON, for prompts."""
    return orjson.dumps(
        [
            {
                "operation_id": op.operation_id,
                "method": op.method,
                "path": op.path,
                "group": op.group,
                "summary": op.summary,
                "description": op.description,
                "request_params": op.parameters,
                "response": op.response,
                "tables": op.fields or op.tables,
            }
            for op in environment.operations
        ],
        option=orjson.OPT_INDENT_2,
    ).decode()


def signatures_text(environment: Environment) -> str:
    """The operations in one line each, for prompts that only need to know what can be done."""
    return "\n".join(
        f"{op.operation_id}({', '.join(op.parameters)}): {op.summary or op.description}"
        for op in environment.operations
    )
