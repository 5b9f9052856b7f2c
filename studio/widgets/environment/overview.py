"""The first tab: what the environment is, what it has, what is wrong with it, who made it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from pipeline.model import Part
from pipeline.words import number_of
from studio.widgets.cells import count
from studio.widgets.environment.dossier import Dossier
from studio.widgets.lines import Piece
from studio.widgets.source import Source
from studio.widgets.states import state

REVIEWS = {
    "accept": "what was found was looked at and is no fault",
    "waive": "a fault was waived",
    "fix": "something is to be put right",
    "drop": "✗ dropped: subsets leave it out",
}
"""The weightiest decision of a person, in words."""


class Overview(Source):
    """A page of text about an environment."""

    def __init__(self) -> None:
        super().__init__(wrap=True)

    def show_dossier(self, dossier: Dossier) -> None:
        """Show it."""
        self.show_lines(list(_lines(dossier)))


def _lines(dossier: Dossier) -> Iterator[list[Piece]]:
    env, summary = dossier.env, dossier.summary
    origin = " ".join(filter(None, (summary.origin, summary.domain)))
    yield [("Origin     ", "muted"), (f"{origin}, now {env.now:%Y-%m-%d %H:%M} UTC", "")]
    yield [("Database   ", "muted"), (f"{count(summary.tables)} tables, {count(summary.rows)} INSERT statements", "")]
    yield [("Interface  ", "muted"), (f"{count(summary.tools)} tools", "")]
    yield [("Tasks      ", "muted"), (f"{count(summary.tasks)}, {len(env.solutions)} with a solution", "")]
    yield [("Verifiers  ", "muted"), (f"{summary.code_verifiers} code, {summary.sql_verifiers} sql", "")]
    yield [("Check      ", "muted"), *_check(dossier)]
    yield [("Audit      ", "muted"), *_audit(dossier)]
    if summary.review:
        yield [("Review     ", "muted"), (REVIEWS[summary.review], "")]
    if env.missing:
        yield [("Missing    ", "muted"), ("✗ " + ", ".join(env.missing), "fail")]
    yield []
    for paragraph in env.description.splitlines() or ["No description."]:
        yield [(paragraph, "" if env.description else "muted")]
    yield []
    yield [("Versions", "strong")]
    yield from _versions(dossier)


def _check(dossier: Dossier) -> list[Piece]:
    status = dossier.summary.check
    if status is None:
        return [("· not checked yet: v checks it", "muted")]
    if status == "stale":
        return [state(status), ("   something was changed since: v checks it again", "muted")]
    severities = Counter(finding.severity for finding in dossier.findings)
    found = ", ".join(f"{number} {severity}" for severity, number in severities.items())
    return [state(status), (f"   {found}" if found else "", "muted")]


def _audit(dossier: Dossier) -> list[Piece]:
    if dossier.audit is None:
        return [("· not audited yet: a audits its verifiers", "muted")]
    if dossier.summary.audit == "stale":
        return [state("stale"), ("   something was changed since: a audits it again", "muted")]
    verdicts = Counter(one.verdict for one in dossier.audit.verifiers)
    counts = ", ".join(f"{number} {verdict}" for verdict, number in verdicts.items())
    return [state(dossier.summary.audit), (f"   {counts}", "muted")]


def _versions(dossier: Dossier) -> Iterator[list[Piece]]:
    """A line a part; verifiers and solutions, of which there are many, share one with their newest version."""
    for part, group in groupby(dossier.versions, key=lambda version: version.part):
        versions = list(group)
        newest = max(versions, key=lambda version: version.created_at)
        name = number_of(len(versions), part.value) if part in (Part.verifier, Part.solution) else part.value
        author = f"{newest.author.kind} {newest.author.name}".strip()
        yield [
            (f"{name:<14}", ""),
            (f"v{newest.number:<3}", "accent" if newest.number > 1 else "muted"),
            (f"{newest.created_at:%Y-%m-%d %H:%M}  {author}", "muted"),
        ]
