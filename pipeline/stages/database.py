"""Stage 3: the tables, then the rows that make every task solvable. Both are built before they are believed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipeline.findings import Finding
from pipeline.model import Environment, Part
from pipeline.rules.database import database_findings
from pipeline.rules.rows import rows_findings
from pipeline.rules.schema import schema_findings
from pipeline.stages.json_reply import TEXT, array, content_of, read_document, record
from pipeline.stages.prompts import numbered, render
from pipeline.stages.step import Step, Weight, usual_weight, with_part

if TYPE_CHECKING:
    from pipeline.runtime.host import Host

SCHEMA_SHAPE = record(tables=array(record(name=TEXT, ddl=TEXT, indexes=array(TEXT))))
SAMPLE_SHAPE = record(tables=array(record(table_name=TEXT, reasoning=TEXT, insert_statements=array(TEXT))))


def schema_steps(environment: Environment) -> tuple[Step, ...]:
    """One request for all tables."""
    return (
        Step(
            stage="database",
            part=Part.schema,
            what="JSON document with all tables",
            prompt=render(
                "schema",
                name=environment.title or environment.name,
                description=environment.description,
                tasks=numbered(environment.tasks),
            ),
            schema=SCHEMA_SHAPE,
            read=lambda text: _read(text, SCHEMA_SHAPE),
            check=lambda content, host: check_schema(with_part(environment, Part.schema, content), host),
        ),
    )


def sample_steps(environment: Environment) -> tuple[Step, ...]:
    """One request for all rows."""
    return (
        Step(
            stage="database",
            part=Part.sample,
            what="JSON document with the INSERT statements of all tables",
            prompt=render(
                "sample",
                name=environment.title or environment.name,
                now=f"{environment.now:%Y-%m-%d %H:%M:%S}",
                schema=schema_text(environment),
                tasks=numbered(environment.tasks),
            ),
            schema=SAMPLE_SHAPE,
            read=lambda text: _read(text, SAMPLE_SHAPE),
            check=lambda content, host: check_sample(with_part(environment, Part.sample, content), host),
            weigh=weigh_sample,
        ),
    )


def check_schema(environment: Environment, host: Host) -> Sequence[Finding]:
    """Build the tables without rows."""
    from dataclasses import replace

    bare = replace(environment, sample=())
    build = host.build(bare)
    return [*database_findings(bare, build), *schema_findings(build.snapshot)]


def check_sample(environment: Environment, host: Host) -> Sequence[Finding]:
    """Build tables and rows, and look for what the tasks name."""
    build = host.build(environment)
    return [*database_findings(environment, build), *rows_findings(environment, build)]


def weigh_sample(finding: Finding) -> Weight:
    """A lost row that a task names is refused; another is told once, then on record (too many are refused together).

    What is read from the words of tasks (an entity that is absent, a goal that is reached) is a judgement, so it is
    told once too.
    """
    if finding.code == "insert_failed" and not finding.tasks:
        return Weight.advise
    if finding.code in ("entity_absent", "goal_in_seed", "table_empty"):
        return Weight.advise
    return usual_weight(finding)


def schema_text(environment: Environment) -> str:
    """The tables as SQL, for prompts."""
    return "\n".join(text for table in environment.schema for text in (table.ddl, *table.indexes))


def rows_text(environment: Environment) -> str:
    """The rows as SQL, for prompts."""
    return "\n".join(text for table in environment.sample for text in table.inserts)


def _read(text: str, shape: dict[str, Any]) -> str:
    return content_of(read_document(text, shape))
