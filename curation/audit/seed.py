"""Is the goal of a task already reached before anyone acts?

A verifier that wants something new to be there cannot be satisfied where the rows it wants are there from the start:
it calls the untouched database complete as soon as the initial one is taken away. Then the rows whose absence does
that are looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from curation.audit.mutations import copies
from curation.audit.subject import Tables
from curation.audit.tables import Row, Table, read_tables
from curation.audit.trials import edited, emptying
from curation.audit.wording import Mentions
from pipeline.findings import Finding
from pipeline.model import Verifier
from pipeline.runtime.edits import Edit
from pipeline.runtime.host import Case, Host, Verdict

ROWS_SHOWN = 3

_TableRow = tuple[Table, Row]


def already_reached(host: Host, verifier: Verifier, untouched: Case, task: str, where: str) -> Iterator[Finding]:
    """A finding where the verifier cannot be satisfied because of rows that are there from the start.

    For verifiers that reject the untouched database and accept no known solution.
    """
    asked = _Question(host, verifier, untouched)
    tables = read_tables(untouched.initial)
    (bare,) = edited(host, untouched.initial, [emptying(tables)], untouched.now)
    if bare is None or not asked.complete(initial=[bare])[0]:
        return
    rows = _decisive_rows(asked, tables, task)
    again = [way for table, row in rows for way in copies(tables, table, row)]
    seconds = edited(host, untouched.final, [*again, [edit for way in again for edit in way]], untouched.now)
    if any(asked.complete(final=[final for final in seconds if final is not None])):
        return  # one more of these satisfies it, so that they are there forbids nothing
    shown = "; ".join(f"{table.name}: {dict(row)}" for table, row in rows[:ROWS_SHOWN])
    yield Finding(
        "impossible_as_verified",
        "error",
        where,
        "the goal is reached before anyone acts, and the verifier accepts it only where it was not",
        evidence=shown or "the verdict is complete when the initial database is emptied",
        remedy="leave the row out of the initial rows, or change the task",
        tasks=(verifier.task,),
    )


@dataclass(frozen=True)
class _Question:
    """Whether the verifier calls the untouched database complete where one of the two databases is another one."""

    host: Host
    verifier: Verifier
    untouched: Case

    def complete(self, *, initial: Iterable[bytes] = (), final: Iterable[bytes] = ()) -> list[bool]:
        """One answer for each initial database, then one for each final one."""
        cases = [replace(self.untouched, initial=other) for other in initial]
        cases += [replace(self.untouched, final=other) for other in final]
        return [_complete(verdict) for verdict in self.host.verdicts(self.verifier, cases)]

    def complete_without(self, rows: Iterable[_TableRow]) -> bool:
        """The answer where these rows are missing from the initial database."""
        edits = [Edit(table.name, table.key_of(row), None) for table, row in rows]
        (initial,) = edited(self.host, self.untouched.initial, [edits], self.untouched.now)
        return initial is not None and self.complete(initial=[initial])[0]


def _decisive_rows(asked: _Question, tables: Tables, task: str) -> list[_TableRow]:
    """Rows whose absence from the initial database makes the untouched one complete, and of which none can be spared.

    Found as in delta debugging (A. Zeller and R. Hildebrandt, IEEE Trans. Softw. Eng. 28, 2002): ever smaller groups
    of rows are put back as long as the verdict stays. First those that others refer to, then those that have least to
    do with the task: what is left is then the wanted row, not one that it belongs to.
    """
    mentions = Mentions(task)
    referred = {
        (other, row[column])
        for table in tables.values()
        for column, other in table.references.items()
        for row in table.rows
        if isinstance(row[column], int)
    }

    def wanted(item: _TableRow) -> tuple[bool, int]:
        table, row = item
        number = row[table.number_key] if table.number_key else None
        return (table.name, number) not in referred, sum(map(mentions.has, row.values()))

    rows = sorted(((table, row) for table in tables.values() for row in table.rows), key=wanted)
    if not asked.complete_without(rows):
        return []
    size = len(rows) // 2
    while size:
        start = 0
        while start < len(rows):
            rest = rows[:start] + rows[start + size :]
            if asked.complete_without(rest):
                rows = rest
            else:
                start += size
        size //= 2
    return rows[::-1]


def _complete(verdict: Verdict) -> bool:
    return verdict.verdict == "complete" or (verdict.evidence or {}).get("holds") is True
