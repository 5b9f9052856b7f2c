"""What the last audit found out about each verifier: its verdict, on what evidence, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline.findings import Finding
from studio.widgets.attempts import SIGNS
from studio.widgets.environment.dossier import Dossier
from studio.widgets.grid import Column
from studio.widgets.lines import Piece
from studio.widgets.listing import Listing, Text
from studio.widgets.states import state

if TYPE_CHECKING:
    from curation.audit.records import VerifierAudit
    from curation.audit.verdicts import Rate


def _failed(rate: Rate) -> Piece:
    return (f"{rate.failed}/{rate.tried}", "fail" if rate.failed else "") if rate.tried else ("", "")


def _interval(rate: Rate) -> Piece:
    """Between which shares the rate lies, so likely as 95 %."""
    if rate.interval is None:
        return "", ""
    low, high = rate.interval
    return f"{100 * low:.0f}–{100 * high:.0f}%", "muted"


class Audit(Listing):
    """Every verifier with its counts; below, the evidence for its verdict. Enter tries it again, probe by probe."""

    COLUMNS = (
        Column("task", "task", lambda one: str(one.task), width=4, right=True),
        Column("mode", "mode", lambda one: one.mode.value, width=4),
        Column("verdict", "verdict", lambda one: state(one.verdict), width=10),
        Column("accepts", "false ✓", lambda one: _failed(one.rate(right=False)), width=7, right=True),
        Column("accepts_ci", "95 %", lambda one: _interval(one.rate(right=False)), width=7, right=True, drop=2),
        Column("rejects", "false ✗", lambda one: _failed(one.rate(right=True)), width=7, right=True),
        Column("rejects_ci", "95 %", lambda one: _interval(one.rate(right=True)), width=7, right=True, drop=3),
        Column("why", "why", lambda one: (one.why, "muted"), width=10, flex=1, drop=1),
    )

    def show_dossier(self, dossier: Dossier) -> None:
        """Show the verifiers of an environment as the last audit judged them."""
        audit = dossier.audit
        if audit is None:
            self.grid.empty = "Not audited yet: a audits its verifiers."
        else:
            self.grid.empty = "It has no verifiers to audit."
        self.show_rows(audit.verifiers if audit else (), of=dossier.env.name)

    def explain(self, row: VerifierAudit) -> Text:
        """Why the verdict, what to do, the counts by kind, the findings, what it looks at."""
        return list(_explained(row))


def _explained(one: VerifierAudit) -> Iterator[list[Piece]]:
    from curation.review import REMEDIES

    yield [state(one.verdict), (f"   {one.why}", "strong")]
    if remedy := REMEDIES.get(one.why):
        yield [("What to do: ", "accent"), (remedy, "")]
    yield [("Enter tries it again and shows every probe.", "muted")]
    if one.wants_guard:
        yield [("f shows a guard that would refuse what nobody asked for.", "muted")]
    yield []
    yield [("Known solutions  ", "muted"), (", ".join(one.solutions) or "none", "" if one.solutions else "warn")]
    reads = "; ".join(f"{table} ({', '.join(columns) or 'rows only'})" for table, columns in one.reads.items())
    yield [("Looks at         ", "muted"), (reads or "nothing", "" if reads else "warn")]
    for finding in one.findings:
        yield []
        yield from finding_lines(finding)
    yield []
    yield from _kinds(one, right=False)
    yield from _kinds(one, right=True)


def finding_lines(finding: Finding) -> Iterator[list[Piece]]:
    """A finding: what, on what evidence, what to do."""
    yield [SIGNS[finding.severity], (finding.code, "name"), (f"  {finding.message}", "")]
    yield from ([("  seen ", "muted"), (line, "")] for line in finding.evidence.splitlines())
    if finding.remedy:
        yield [("  do   ", "accent"), (finding.remedy, "")]


def _kinds(one: VerifierAudit, *, right: bool) -> Iterator[list[Piece]]:
    from curation.audit.kinds import KINDS

    tried = {kind: number for kind, number in one.tried.items() if KINDS[kind].right == right}
    if not tried:
        return
    yield [("Must be complete" if right else "Must not be complete", "strong")]
    for kind, number in tried.items():
        failed = one.failed.get(kind, 0)
        word = "rejected" if right else "accepted"
        counts = f"{number} tried" + (f", {failed} {word}" if failed else "")
        mark = ("✗ ", "fail") if failed else ("✓ ", "ok")
        yield [mark, (f"{KINDS[kind].title:<32}", ""), (counts, "muted")]
