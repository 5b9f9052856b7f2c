"""Rules about what calls do to the rows: writes have an effect, reads and failures have none, ids must exist."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import groupby
from typing import Any

from pipeline.findings import Finding
from pipeline.rules.called import Called
from pipeline.runtime.edits import quoted
from pipeline.runtime.host import HostedProgram

ENOUGH = 3
"""Accepted calls without an effect before a tool is said to have none."""

ASKING = re.compile(
    r"(?:^|_)(?:search|find|query|list|get|lookup|filter|preview|validate|verify|calculate|compute|estimate|quote|check|"
    r"compare|simulate|suggest|recommend|export|test|ping)(?:_|$)",
    re.I,
)
"""Names of operations that ask for something although they use a method that writes."""

NOBODY = 987_654_321
"""An id that no row has."""


def effect_findings(program: HostedProgram, made: Iterable[Called]) -> Iterator[Finding]:
    """Effects that are missing, and effects that should not be."""
    for _, group in groupby(made, key=lambda called: called.tool.name):
        calls = list(group)
        yield from without_effect(calls)
        yield from unwanted_effect(calls)
        yield from unknown_ids(program, calls)


def without_effect(calls: Sequence[Called]) -> Iterator[Finding]:
    """A tool that is meant to change something accepts calls and changes nothing."""
    tool = calls[0].tool
    accepted = [called for called in calls if called.reply.ok]
    if not tool.writes or ASKING.search(tool.operation_id) or len(accepted) < ENOUGH:
        return
    if not any(called.changed for called in accepted):
        yield Finding(
            "write_without_effect",
            "warn",
            f"code: {tool.name}",
            f"{tool.name} ({tool.method}) accepted {len(accepted)} calls and changed no row",
            evidence=accepted[0].shown,
            remedy="store what it is asked to, commit it, or refuse with a 4xx; what only reads is a GET",
        )


def unwanted_effect(calls: Sequence[Called]) -> Iterator[Finding]:
    """Rows that differ after a call which failed, or which was meant to read."""
    tool = calls[0].tool
    for called in calls:
        if called.changed and called.fault:
            yield Finding(
                "error_after_change",
                "error",
                f"code: {tool.name}",
                f"{tool.name} answers with a server error after it has changed rows, so agents do it again",
                evidence=called.shown,
                remedy="commit when nothing can fail any more, and return what was read before that",
            )
            return
        if called.changed and not tool.writes:
            yield Finding(
                "read_changes_rows",
                "warn",
                f"code: {tool.name}",
                f"{tool.name} is a GET and changes rows",
                evidence=called.shown,
                remedy="let it only read, or make it a POST",
            )
            return


def unknown_ids(program: HostedProgram, calls: Sequence[Called]) -> Iterator[Finding]:
    """A tool that writes accepts the id of a row that does not exist.

    Foreign keys are off at run time, as upstream has them, so only the handler can refuse it.
    """
    good = next((called for called in calls if called.tool.writes and called.changed and called.reply.ok), None)
    if good is None:
        return
    for name in (name for name, value in good.call.arguments.items() if _is_id(name, value)):
        arguments = {**good.call.arguments, name: NOBODY}
        with program.instance() as instance:
            if not instance.call(good.tool.name, arguments).ok:
                continue
            dangling = _referring_to(instance.snapshot(), NOBODY)
        if dangling:
            yield Finding(
                "accepts_unknown_id",
                "warn",
                f"code: {good.tool.name}",
                f"{good.tool.name} accepts {name} {NOBODY}, which no row has, and stores it",
                evidence=f"{dangling} refers to a row that does not exist",
                remedy="look the row up, and refuse with 404 where it is not there",
            )
            return


def _is_id(name: str, value: Any) -> bool:
    return name.endswith("_id") and isinstance(value, int) and not isinstance(value, bool)


def _referring_to(snapshot: bytes, number: int) -> str | None:
    """The table and column with a foreign key of this value that leads nowhere, if there is one."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(snapshot)
        connection.execute("PRAGMA trusted_schema = OFF")
        try:
            broken = connection.execute("PRAGMA foreign_key_check").fetchall()
        except sqlite3.Error:  # keys that cannot be checked at all are another finding
            return None
        for table, rowid, _, key in broken:
            keys = connection.execute("SELECT * FROM pragma_foreign_key_list(?)", (table,)).fetchall()
            column = next(row[3] for row in keys if row[0] == key)
            cell = f"SELECT {quoted(column)} FROM {quoted(table)} WHERE rowid = ?"
            if rowid is not None and connection.execute(cell, (rowid,)).fetchone() == (number,):
                return f"{table}.{column}"
    return None
