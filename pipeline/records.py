"""What a catalog gives back: versions, summaries, checks, runs and events, as immutable values read from its rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from pipeline.model import DEFAULT_NOW, Author, AuthorKind, Cost, Part


@dataclass(frozen=True, slots=True)
class Version:
    """One content that one part of a scenario has, or had. `number` counts from 1 within (scenario, part, slot)."""

    id: int
    scenario: str
    part: Part
    slot: str
    number: int
    sha: str
    extra_sha: str | None
    author: Author
    created_at: datetime
    parents: tuple[int, ...] = ()
    cost: Cost | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """An environment in one row. Counts of parts it does not have, and what nothing has judged yet, are None.

    `rows` counts INSERT statements; `check` is "pass", "warn", "fail", or "stale" where a part changed after it;
    `audit` is the worst verdict on one of its verifiers, or "stale" likewise; `aside` is "dropped" or "merged" where it
    gives way to a near-duplicate (see `StoredDecision`). `review` is the weightiest decision of a person about its
    findings: "drop", "fix", "waive" or "accept"; findings that were waived or accepted do not count in `check` and
    `audit`, which are "waived" where nothing else is wrong.
    """

    name: str
    title: str
    origin: str
    domain: str | None
    tables: int | None
    rows: int | None
    tools: int | None
    tasks: int | None
    code_verifiers: int
    sql_verifiers: int
    missing: tuple[Part, ...]
    check: str | None
    audit: str | None
    concept: str | None
    now: datetime = DEFAULT_NOW
    aside: str | None = None
    review: str | None = None


@dataclass(frozen=True, slots=True)
class StoredCheck:
    """The last check of an environment; `key` names what it holds for (contents, pinned time, rules)."""

    status: str
    findings_json: str
    key: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StoredAudit:
    """The last audit of an environment's verifiers; `verdict` is the worst of theirs, `key` as of a check."""

    verdict: str | None
    document_json: str
    key: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StoredDecision:
    """What was decided about two near-duplicates (a < b): "keep" both, "merge" them, or "drop" one.

    `leaves` is the one that gives way: a dropped one always, a merged one where the other is there too.
    """

    a: str
    b: str
    decision: str
    leaves: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StoredReview:
    """A person's decision about one item of the review queue; `about` tells what the item was."""

    scenario: str
    item: str
    decision: str
    reason: str
    reviewer: str
    about: dict[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StoredSubset:
    """A subset as a list shows it: its card, without its pairs."""

    name: str
    card: dict[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Run:
    """A synthesis, audit, rollout batch, training or evaluation. `pid` is the process that works on it."""

    id: int
    kind: str
    state: str
    config: Any
    result: Any
    pid: int | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a run; `id` grows, so the last one seen is where to go on reading."""

    id: int
    run: int
    kind: str
    scenario: str | None
    data: Any
    created_at: datetime


def read_summary(row: Any) -> Summary:
    """A row of `scenarios`."""
    return Summary(
        name=row.name,
        title=row.title,
        origin=row.origin,
        domain=row.domain,
        tables=row.tables,
        rows=row.rows,
        tools=row.tools,
        tasks=row.tasks,
        code_verifiers=row.code_verifiers,
        sql_verifiers=row.sql_verifiers,
        missing=tuple(Part(part) for part in row.missing.split(",") if part),
        check=row.check_status,
        audit=row.audit,
        concept=row.concept,
        now=datetime.fromisoformat(row.now),
        aside=row.aside,
        review=row.review,
    )


def read_version(row: Any) -> Version:
    """A row of `versions`."""
    costs = (row.tokens_in, row.tokens_out, row.usd, row.seconds)
    return Version(
        id=row.id,
        scenario=row.scenario,
        part=Part(row.part),
        slot=row.slot,
        number=row.number,
        sha=row.sha,
        extra_sha=row.extra_sha,
        author=Author(AuthorKind(row.author_kind), row.author),
        created_at=datetime.fromisoformat(row.created_at),
        parents=tuple(orjson.loads(row.parents)),
        cost=None if costs == (None,) * 4 else Cost(row.tokens_in or 0, row.tokens_out or 0, row.usd, row.seconds),
    )


def read_check(row: Any) -> StoredCheck:
    """A row of `checks`."""
    return StoredCheck(row.status, row.findings, row.key, datetime.fromisoformat(row.created_at))


def read_audit(row: Any) -> StoredAudit:
    """A row of `audits`."""
    return StoredAudit(row.verdict, row.document, row.key, datetime.fromisoformat(row.created_at))


def read_decision(row: Any) -> StoredDecision:
    """A row of `duplicates`."""
    return StoredDecision(row.a, row.b, row.decision, row.leaves, datetime.fromisoformat(row.created_at))


def read_review(row: Any) -> StoredReview:
    """A row of `reviews`."""
    return StoredReview(
        scenario=row.scenario,
        item=row.item,
        decision=row.decision,
        reason=row.reason,
        reviewer=row.reviewer,
        about=orjson.loads(row.about),
        created_at=datetime.fromisoformat(row.created_at),
    )


def read_subset(row: Any) -> StoredSubset:
    """A row of `subsets`, without its document."""
    return StoredSubset(row.name, orjson.loads(row.card), datetime.fromisoformat(row.created_at))


def read_run(row: Any) -> Run:
    """A row of `runs`."""
    return Run(
        id=row.id,
        kind=row.kind,
        state=row.state,
        config=orjson.loads(row.config),
        result=orjson.loads(row.result) if row.result else None,
        pid=row.pid,
        created_at=datetime.fromisoformat(row.created_at),
        updated_at=datetime.fromisoformat(row.updated_at),
    )


def read_event(row: Any) -> Event:
    """A row of `events`."""
    return Event(
        id=row.id,
        run=row.run,
        kind=row.kind,
        scenario=row.scenario,
        data=orjson.loads(row.data),
        created_at=datetime.fromisoformat(row.created_at),
    )
