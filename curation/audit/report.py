"""The report of an audit, for people: what was tried, what was found, and on what evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from curation.audit.blocks import Block, Figure, Fold, Grid, Heading, Paragraph, Source, to_html, to_markdown
from curation.audit.figures import Share, shares, stacked
from curation.audit.records import EnvironmentAudit, VerifierAudit
from curation.audit.summary import by_category, summary
from curation.audit.verdicts import RULES, WORST
from pipeline.errors import UserError
from pipeline.snapshots import replace_file
from pipeline.words import number_of

TITLE = "Audit of verifiers"
CATEGORY_TITLES = {"mode": "By mode", "task": "By what the task wants", "steps": "By length of the known solution",
                   "domain": "By domain"}  # fmt: skip


def write_report(path: Path, audits: Sequence[EnvironmentAudit]) -> None:
    """Write the report as HTML or, where the file's name ends in `.md`, as Markdown.

    Raises UserError where the file cannot be written.
    """
    blocks = list(report(audits))
    text = to_markdown(blocks) if path.suffix.lower() in (".md", ".markdown") else to_html(TITLE, blocks)
    try:
        replace_file(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}.") from error


def report(audits: Sequence[EnvironmentAudit]) -> Iterator[Block]:
    """The report's blocks."""
    audits = sorted(audits, key=lambda audit: audit.name)
    totals, groups = summary(audits), by_category(audits)
    yield Heading(TITLE, 1)
    yield Paragraph(_opening(totals))
    yield Figure(stacked({mode: group["verdicts"] for mode, group in groups["mode"].items()}, title="Verdicts by mode"))
    yield Grid(("verdict", "#verifiers", "when"), [(v, totals["verdicts"][v], RULES[v]) for v in reversed(WORST)])
    yield Paragraph("The first rule that applies decides, in the order broken, loose, strict, trusted, unproven.")
    yield from _kinds(totals["kinds"])
    for category, title in CATEGORY_TITLES.items():
        yield from _category(title, groups[category])
    yield from _disagreement(totals["disagreement"])
    yield from _tasks(audits, totals)
    yield from _findings(totals["findings"])
    yield from _environments(audits)


def _opening(totals: Mapping[str, Any]) -> str:
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in totals["verdicts"].items())
    verifiers = number_of(totals["verifiers"], "verifier")
    text = f"{verifiers} of {number_of(totals['environments'], 'environment')}: {verdicts}. "
    if totals["only_collateral"]:
        text += (
            "Loose ones that accept nothing worse than changes that nobody asked for, which a guard would take care "
            f"of: {totals['only_collateral']}. "
        )
    if totals["excluded"]:
        text += "Left out of the rates: " + "; ".join(f"{why} ({n})" for why, n in totals["excluded"].items()) + ". "
    return text + "Intervals are Wilson's at 95 %."


def _kinds(kinds: Mapping[str, Mapping[str, Any]]) -> Iterator[Block]:
    for right, title, word in (
        (False, "False accepts: what must not be complete", "accepted"),
        (True, "False rejects: what must be complete", "rejected"),
    ):
        rows = [kind for kind in kinds.values() if kind["right"] == right]
        if not rows:
            continue
        yield Heading(title)
        yield Figure(shares([_share(k["title"], k["failed"], k) for k in rows], axis=f"share {word}"))
        yield Grid(
            ("tried", "#trials", f"#{word}", "#share", "#from", "#to"),
            [(k["title"], k["tried"], k["failed"], k["failed"] / k["tried"], k["low"], k["high"]) for k in rows],
        )


def _category(title: str, groups: Mapping[str, Mapping[str, Any]]) -> Iterator[Block]:
    if not groups:
        return
    yield Heading(title)
    for rate, word in (("false_accepts", "accepted"), ("false_rejects", "rejected")):
        tried = {name: group[rate] for name, group in groups.items() if group[rate]["tried"]}
        if len(tried) > 1:
            axis = f"share {word}, which should not be"
            yield Figure(shares([_share(name, found[word], found) for name, found in tried.items()], axis=axis))
    between = ("#share", "#from", "#to")
    yield Grid(
        ("", "#verifiers", "verdicts", "#false accepts", *between, "#false rejects", *between, "bias"),
        [
            (
                name,
                group["verifiers"],
                ", ".join(f"{count} {verdict}" for verdict, count in group["verdicts"].items()),
                *_fraction(group["false_accepts"], "accepted"),
                *_fraction(group["false_rejects"], "rejected"),
                group["bias"],
            )
            for name, group in groups.items()
        ],
    )


def _disagreement(rows: Sequence[Mapping[str, Any]]) -> Iterator[Block]:
    if rows:
        yield Heading("Code mode, sql mode and the known states")
        yield Paragraph(
            "States whose right verdict is known, judged by both verifiers of a task. Evidence that needs a judge "
            "is not among them."
        )
        names = ("right", "code", "sql", "trials")
        yield Grid(("right", "code mode", "sql mode", "#trials"), [tuple(row[name] for name in names) for row in rows])


def _tasks(audits: Sequence[EnvironmentAudit], totals: Mapping[str, Any]) -> Iterator[Block]:
    yield Heading("Tasks")
    yield Paragraph(", ".join(f"{count} {status}" for status, count in totals["tasks"].items()) + ".")
    blocked = [
        (audit.name, state.task, state.why) for audit in audits for state in audit.tasks if state.status == "blocked"
    ]
    if blocked:
        yield Grid(("environment", "#task", "blocked because"), blocked)


def _findings(findings: Mapping[str, Mapping[str, int]]) -> Iterator[Block]:
    if findings:
        yield Heading("Findings")
        yield Grid(
            ("finding", "#findings", "#verifiers"), [(c, n["findings"], n["verifiers"]) for c, n in findings.items()]
        )


def _environments(audits: Sequence[EnvironmentAudit]) -> Iterator[Block]:
    yield Heading("Verifiers")
    for audit in audits:
        inner: list[Block] = [Paragraph(f"{f.severity} {f.code}: {f.message} {f.evidence}") for f in audit.findings]
        inner += [_verifier(one) for one in audit.verifiers]
        counts = {verdict: sum(one.verdict == verdict for one in audit.verifiers) for verdict in WORST}
        said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count) or "no verifiers"
        yield Fold(f"{audit.name}: {said}", tuple(inner))


def _verifier(one: VerifierAudit) -> Block:
    accepts, rejects = one.rate(right=False), one.rate(right=True)
    inner: list[Block] = [
        Paragraph(
            f"{one.why}. False accepts {accepts.failed} of {accepts.tried}, false rejects {rejects.failed} of "
            f"{rejects.tried}. Known solutions: {', '.join(one.solutions) or 'none'}."
        )
    ]
    if one.findings:
        inner.append(
            Grid(
                ("severity", "finding", "what", "evidence", "remedy"),
                [(f.severity, f.code, f.message, f.evidence, f.remedy) for f in one.findings],
            )
        )
    reads = "; ".join(f"{table} ({', '.join(columns) or 'rows only'})" for table, columns in one.reads.items())
    inner.append(Paragraph(f"Reads: {reads or 'nothing'}."))
    if one.wants_guard and one.may_change is not None:
        inner.append(Paragraph("A guard would allow these changes and no others:"))
        inner.append(
            Source("\n".join(f"{table}: {dict(found)}" for table, found in one.may_change.items()) or "none", "text")
        )
    return Fold(f"task {one.task}, {one.mode} mode: {one.verdict}", tuple(inner))


def _share(label: str, failed: int, rate: Mapping[str, Any]) -> Share:
    return Share(label, failed, rate["tried"], rate["low"], rate["high"])


def _fraction(rate: Mapping[str, Any], word: str) -> tuple[object, ...]:
    """How many of how many, their share, and the ends of its interval; blank where nothing was tried."""
    if not rate["tried"]:
        return None, None, None, None
    return f"{rate[word]} / {rate['tried']}", rate[word] / rate["tried"], rate["low"], rate["high"]
