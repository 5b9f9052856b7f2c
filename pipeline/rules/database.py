"""Checks of the database: does every statement run, is every table there, do references resolve?"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from pipeline.findings import Finding
from pipeline.model import Environment
from pipeline.rules.blocked import literals, tasks_about, tasks_naming, tasks_reading, with_quotes_doubled
from pipeline.rules.dates import clock_in_rows
from pipeline.runtime.build import Build, FailedStatement
from pipeline.words import cut, number_of

SHOWN = 300
"""Characters of a statement that are shown as evidence."""

_CREATE_TABLE = re.compile(r"\W*CREATE\b.*\bTABLE\b", re.IGNORECASE | re.DOTALL)


def database_findings(environment: Environment, build: Build) -> Iterator[Finding]:
    """What building the database showed, each fact with the tasks it puts at risk."""
    lost = {table.lower() for table in build.missing_tables}
    yield from (missing_table(environment, build, table) for table in build.missing_tables)
    for failed in build.failed:
        if not (failed.kind == "insert" and failed.table.lower() in lost):  # told with the missing table
            yield failed_statement(environment, failed)
    yield from broken_references(environment, build)
    yield from clock_in_rows(environment)


def missing_table(environment: Environment, build: Build, table: str) -> Finding:
    """A table that was declared and is not there: never tolerated, whatever its share of the schema."""
    name = table.lower()
    cause = next((f for f in build.failed if f.kind == "ddl" and f.table.lower() == name), None)
    creating = cause is not None and _CREATE_TABLE.match(cause.sql)
    inserts = [f for f in build.failed if f.kind == "insert" and f.table.lower() == name]
    needed_by = [op.operation_id for op in environment.operations if name in (t.lower() for t in op.tables)]
    evidence = [cause.error + ": " + cut(cause.sql, SHOWN)] if cause else []
    if inserts:
        evidence.append(f"{number_of(len(inserts), 'insert')} into it lost")
    if needed_by:
        evidence.append(f"needed by {', '.join(needed_by)}")
    return Finding(
        "table_missing",
        "error",
        f"schema: {table}",
        f"the table {table} could not be created" if creating else f"no statement creates the table {table}",
        evidence="; ".join(evidence),
        remedy=f"{'correct' if creating else 'add'} its CREATE TABLE statement",
        tasks=tasks_about(environment, table),
    )


def failed_statement(environment: Environment, failed: FailedStatement) -> Finding:
    """A statement that failed by itself: the row or index it stands for is lost."""
    part = "sample" if failed.kind == "insert" else "schema"
    row = "" if failed.row is None else f", row {failed.row}"
    return Finding(
        f"{failed.kind}_failed",
        "error",
        f"{part}: {failed.table}{row} (statement {failed.number})",
        f"{failed.error}; what the statement holds is not in the database",
        evidence=cut(failed.sql, SHOWN),
        remedy=remedy_for(failed),
        tasks=tasks_naming(environment, literals(failed.sql)) if failed.kind == "insert" else (),
    )


def remedy_for(failed: FailedStatement) -> str:
    """What usually puts such a statement right."""
    if "syntax error" in failed.error and (repaired := with_quotes_doubled(failed.sql)) != failed.sql:
        return f"an apostrophe inside a quoted value ends it early; write it twice: {cut(repaired, SHOWN)}"
    if "UNIQUE" in failed.error:
        return "give the row a value no other row has"
    if "no such column" in failed.error or "has no column" in failed.error:
        return "use the columns the table declares"
    return "correct the statement"


def broken_references(environment: Environment, build: Build) -> Iterator[Finding]:
    """Rows that refer to rows which do not exist, one finding for each pair of tables."""
    pairs: defaultdict[tuple[str, str], list[dict]] = defaultdict(list)
    for violation in build.foreign_keys:
        if "error" in violation:
            yield Finding(
                "foreign_key_unusable",
                "error",
                f"schema: {violation['table']}",
                f"the foreign keys of {violation['table']} cannot be checked",
                evidence=violation["error"],
                remedy="refer to a primary key or a unique column that exists",
            )
        else:
            pairs[violation["table"], violation["parent"]].append(violation)
    for (table, parent), rows in pairs.items():
        yield Finding(
            "foreign_key_broken",
            "warn",
            f"sample: {table}",
            f"{number_of(len(rows), 'row')} of {table} without the row of {parent} that is referred to",
            evidence=", ".join(f"rowid {row['rowid']}" for row in rows[:10]),
            remedy=f"add the missing rows of {parent}, or correct the references",
            tasks=tasks_reading(environment, [table]),
        )
