"""Where environments are kept: versions of their parts, who made them, and what is known about them.

One catalog is one SQLite file in WAL mode (or any database that SQLAlchemy speaks to). Contents are addressed by
their sha256 and stored once, compressed; a version says that a scenario's part had that content from then on.
Several processes may have one catalog open: readers never wait, writers wait for one another up to a time limit.
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import Connection, and_, delete, func, insert, or_, select, update

from pipeline.catalog_tables import (
    audits,
    blobs,
    checks,
    duplicates,
    events,
    reviews,
    runs,
    scenarios,
    subsets,
    versions,
)
from pipeline.changes import Change, add_row, clock, put_version, unpack, update_scenario
from pipeline.errors import UserError
from pipeline.model import Author, Cost, Environment, Part, normalise
from pipeline.parts import dumps, read_view
from pipeline.records import (
    Event,
    Run,
    StoredAudit,
    StoredCheck,
    StoredDecision,
    StoredReview,
    StoredSubset,
    Summary,
    Version,
    read_audit,
    read_check,
    read_decision,
    read_event,
    read_review,
    read_run,
    read_subset,
    read_summary,
    read_version,
)
from pipeline.storage import open_storage, writing


class Catalog:
    """An open catalog. A context manager; threads may share it."""

    def __init__(self, url_or_path: str | Path, *, busy_timeout_s: float = 30) -> None:
        """Open a catalog: see `open`."""
        self._engine = open_storage(url_or_path, busy_timeout_s=busy_timeout_s)
        self._bulk = threading.local()

    @classmethod
    def open(cls, url_or_path: str | Path, *, busy_timeout_s: float = 30) -> Catalog:
        """Open the catalog at a path or SQLAlchemy URL, create it where there is none, migrate it where it is older.

        `busy_timeout_s` is how long to wait for another process's write. Raises UserError where it is not a
        catalog, was made by a newer version, or cannot be read or written.
        """
        return cls(url_or_path, busy_timeout_s=busy_timeout_s)

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()

    def __enter__(self) -> Catalog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Environments

    def names(self) -> list[str]:
        """All scenarios' normalised names, sorted."""
        with self._reading() as connection:
            return list(connection.scalars(select(scenarios.c.name).order_by(scenarios.c.name)))

    def resolve(self, name: str) -> str:
        """The normalised name of the environment that a person means by a name or title.

        Raises UserError for an unknown one, and names close matches.
        """
        with self._reading() as connection:
            return self._require(connection, name).name

    def summaries(self) -> list[Summary]:
        """All environments in one row each, by name."""
        with self._reading() as connection:
            return [read_summary(row) for row in connection.execute(select(scenarios).order_by(scenarios.c.name))]

    def summary(self, name: str) -> Summary:
        """One environment in one row. Raises UserError as `resolve` does."""
        with self._reading() as connection:
            return read_summary(self._require(connection, name))

    def environment(self, name: str, *, parts: Iterable[Part] = tuple(Part)) -> Environment:
        """The current versions of an environment's parts as one typed value. Raises UserError as `resolve` does.

        Only `parts` are read, the others look missing: code, rows and verifiers are most of an environment.
        """
        with self._reading() as connection:
            row = self._require(connection, name)
            contents = {
                (Part(part), slot): unpack(data)
                for part, slot, data in connection.execute(
                    select(versions.c.part, versions.c.slot, blobs.c.data)
                    .join(blobs, blobs.c.sha == versions.c.sha)
                    .where(versions.c.scenario == row.name, versions.c.current, versions.c.part.in_(parts))
                )
            }
        return Environment(
            name=row.name,
            title=row.title,
            origin=row.origin,
            domain=row.domain,
            now=datetime.fromisoformat(row.now),
            **read_view(contents),
        )

    def environments(
        self, names: Iterable[str] | None = None, *, parts: Iterable[Part] = tuple(Part)
    ) -> Iterator[Environment]:
        """The named environments, or all of them by name, read one at a time; `parts` as for `environment`."""
        for name in self.names() if names is None else names:
            yield self.environment(name, parts=parts)

    def put(
        self,
        name: str,
        part: Part | str,
        content: str,
        *,
        slot: str = "",
        author: Author,
        title: str | None = None,
        origin: str | None = None,
        domain: str | None = None,
        now: datetime | None = None,
        parents: Iterable[int] = (),
        cost: Cost | None = None,
        extra: Mapping[str, Any] | None = None,
        revive: bool = True,
    ) -> Version:
        """Give a scenario's part a new content, and create the scenario where it is new.

        `extra` is what the source had beside the content, as a JSON object. Content and extra equal to the current
        ones make no new version: the current one is returned. With `revive=False` neither do ones that were
        current earlier (so that importing a folder again does not undo an edit). `title`, `origin`, `domain` and
        `now` describe the scenario; those that are None stay as they are. `parents` are ids of the versions this
        one was made from.

        Raises UserError where the name is not a normalised one or the content is not what the part needs.
        """
        change = Change(name, Part(part), slot, content, extra or {}, author, tuple(parents), cost)
        about = {"title": title, "origin": origin, "domain": domain, "now": _iso(now)}
        with self._writing() as connection:
            return put_version(connection, change, about, revive=revive)

    def describe(
        self,
        name: str,
        *,
        title: str | None = None,
        origin: str | None = None,
        domain: str | None = None,
        now: datetime | None = None,
        audit: str | None = None,
        concept: str | None = None,
    ) -> None:
        """Set what is known about a scenario as a whole; what is None stays. Raises UserError for an unknown name."""
        given = {
            "title": title,
            "origin": origin,
            "domain": domain,
            "now": _iso(now),
            "audit": audit,
            "concept": concept,
        }
        with self._writing() as connection:
            scenario = self._require(connection, name)
            update_scenario(connection, scenario, {key: value for key, value in given.items() if value is not None})

    @contextmanager
    def bulk(self) -> Generator[None]:
        """Make all this thread's puts within the block one transaction, which is much quicker; all or none is kept."""
        with writing(self._engine) as connection:
            self._bulk.connection = connection
            try:
                yield
            finally:
                self._bulk.connection = None

    # Versions

    def versions(self, name: str, part: Part | str, slot: str = "") -> list[Version]:
        """All versions of a part, oldest first."""
        where = and_(versions.c.scenario == name, versions.c.part == Part(part), versions.c.slot == slot)
        with self._reading() as connection:
            return [read_version(row) for row in connection.execute(select(versions).where(where).order_by("number"))]

    def current(self, name: str) -> list[Version]:
        """The current version of each part of an environment, in part order. Raises UserError for an unknown name."""
        with self._reading() as connection:
            self._require(connection, name)
            rows = connection.execute(select(versions).where(versions.c.scenario == name, versions.c.current))
            order = list(Part)
            return sorted(map(read_version, rows), key=lambda v: (order.index(v.part), _slot_order(v.slot)))

    def content(self, sha: str) -> str:
        """The text stored under a digest. Raises KeyError where there is none."""
        with self._reading() as connection:
            data = connection.scalar(select(blobs.c.data).where(blobs.c.sha == sha))
        if data is None:
            raise KeyError(sha)
        return unpack(data)

    def extra(self, version: Version) -> dict[str, Any]:
        """What the version's source had beside its content."""
        return orjson.loads(self.content(version.extra_sha)) if version.extra_sha else {}

    def newest_version(self) -> int:
        """The id of the newest version of anything, 0 where there is none: it grows with every change."""
        with self._reading() as connection:
            return connection.scalar(select(func.max(versions.c.id))) or 0

    def changed_since(self, version: int, parts: Iterable[Part] = tuple(Part)) -> set[str]:
        """The environments of which one of these parts has a version newer than the one with this id."""
        newer = and_(versions.c.id > version, versions.c.part.in_(parts))
        with self._reading() as connection:
            return set(connection.scalars(select(versions.c.scenario).where(newer).distinct()))

    # Checks

    def set_check(self, name: str, status: str, findings_json: str, key: str) -> None:
        """Keep the result of a check: "pass", "warn" or "fail", what was found as JSON, and what it holds for."""
        values = {"status": status, "findings": findings_json, "key": key, "created_at": clock()}
        with self._writing() as connection:
            self._require(connection, name)
            if not connection.execute(update(checks).where(checks.c.scenario == name).values(values)).rowcount:
                connection.execute(insert(checks).values(scenario=name, **values))
            connection.execute(update(scenarios).where(scenarios.c.name == name).values(check_status=status))

    def check(self, name: str, key: str | None = None) -> StoredCheck | None:
        """The last check of an environment, or None; with a key, None also where it was kept under another one."""
        with self._reading() as connection:
            row = connection.execute(select(checks).where(checks.c.scenario == name)).one_or_none()
        return None if row is None or key not in (None, row.key) else read_check(row)

    # Audits

    def set_audit(self, name: str, verdict: str | None, document_json: str, key: str) -> None:
        """Keep an audit: the worst verdict on a verifier (None: it has none), all of it as JSON, what it holds for."""
        values = {"verdict": verdict, "document": document_json, "key": key, "created_at": clock()}
        with self._writing() as connection:
            self._require(connection, name)
            if not connection.execute(update(audits).where(audits.c.scenario == name).values(values)).rowcount:
                connection.execute(insert(audits).values(scenario=name, **values))
            connection.execute(update(scenarios).where(scenarios.c.name == name).values(audit=verdict))

    def audit(self, name: str, key: str | None = None) -> StoredAudit | None:
        """The last audit of an environment, or None; with a key, None also where it was kept under another one."""
        with self._reading() as connection:
            row = connection.execute(select(audits).where(audits.c.scenario == name)).one_or_none()
        return None if row is None or key not in (None, row.key) else read_audit(row)

    # Reviews

    def add_review(
        self, name: str, item: str, decision: str, *, reason: str, reviewer: str, about: Mapping[str, Any]
    ) -> None:
        """Keep a decision about an item of the review queue, beside those before it. `about` is JSON."""
        values = {"item": item, "decision": decision, "reason": reason, "reviewer": reviewer, "about": dumps(about)}
        with self._writing() as connection:
            self._require(connection, name)
            connection.execute(insert(reviews).values(scenario=name, created_at=clock(), **values))

    def reviews(self, name: str | None = None) -> list[StoredReview]:
        """All decisions, or those about one environment, oldest first."""
        query = select(reviews).order_by(reviews.c.id)
        with self._reading() as connection:
            rows = connection.execute(query if name is None else query.where(reviews.c.scenario == name))
            return [read_review(row) for row in rows]

    def set_standing(self, name: str, *, check: str | None, audit: str | None, review: str | None) -> None:
        """Set what lists show of an environment's check, audit and review. Raises UserError for an unknown name."""
        with self._writing() as connection:
            scenario = self._require(connection, name)
            update_scenario(connection, scenario, {"check_status": check, "audit": audit, "review": review})

    # Near-duplicates

    def set_decision(self, a: str, b: str, decision: str | None, leaves: str | None = None) -> None:
        """Keep what was decided about two near-duplicates (see `StoredDecision`), in place of what was before.

        A decision of None forgets it. Raises UserError for an unknown name.
        """
        low, high = sorted((a, b))
        pair = and_(duplicates.c.a == low, duplicates.c.b == high)
        values = {"a": low, "b": high, "decision": decision, "leaves": leaves, "created_at": clock()}
        with self._writing() as connection:
            both = [self._require(connection, name) for name in (low, high)]
            connection.execute(delete(duplicates).where(pair))
            if decision is not None:
                connection.execute(insert(duplicates).values(values))
            for scenario in both:
                found = set(
                    connection.scalars(select(duplicates.c.decision).where(duplicates.c.leaves == scenario.name))
                )
                aside = "dropped" if "drop" in found else "merged" if "merge" in found else None
                connection.execute(update(scenarios).where(scenarios.c.name == scenario.name).values(aside=aside))

    def decisions(self, name: str | None = None) -> list[StoredDecision]:
        """What was decided about near-duplicates, by their names; with a name only those about it."""
        query = select(duplicates).order_by(duplicates.c.a, duplicates.c.b)
        if name is not None:
            query = query.where(or_(duplicates.c.a == name, duplicates.c.b == name))
        with self._reading() as connection:
            return [read_decision(row) for row in connection.execute(query)]

    # Subsets

    def set_subset(self, name: str, document: Mapping[str, Any], card: Mapping[str, Any]) -> None:
        """Keep a subset under a name, in place of one of that name; document and card are JSON objects."""
        values = {"card": dumps(card), "document": dumps(document), "created_at": clock()}
        with self._writing() as connection:
            if not connection.execute(update(subsets).where(subsets.c.name == name).values(values)).rowcount:
                connection.execute(insert(subsets).values(name=name, **values))

    def subset(self, name: str) -> dict[str, Any]:
        """The document of a subset. Raises UserError where there is none of that name."""
        with self._reading() as connection:
            document = connection.scalar(select(subsets.c.document).where(subsets.c.name == name))
        if document is None:
            there = ", ".join(found.name for found in self.subsets()) or "none yet; awm-studio subset makes one"
            raise UserError(f"There is no subset {name!r}. There are: {there}.")
        return orjson.loads(document)

    def subsets(self) -> list[StoredSubset]:
        """All subsets with their cards, by name."""
        columns = select(subsets.c.name, subsets.c.card, subsets.c.created_at).order_by(subsets.c.name)
        with self._reading() as connection:
            return [read_subset(row) for row in connection.execute(columns)]

    def remove_subset(self, name: str) -> None:
        """Forget a subset; one that is not there is forgotten already."""
        with self._writing() as connection:
            connection.execute(delete(subsets).where(subsets.c.name == name))

    # Runs and their events

    def add_run(self, kind: str, config: Any) -> int:
        """Record a new run in state "queued"; `config` is JSON. Returns its id.

        Raises UserError where a number in it has more than 64 bits.
        """
        try:
            document = dumps(config)
        except TypeError as error:
            raise UserError(f"What was asked for cannot be recorded: {error}. Choose smaller numbers.") from error
        values = {
            "kind": kind,
            "state": "queued",
            "config": document,
            "created_at": clock(),
            "updated_at": clock(),
        }
        with self._writing() as connection:
            return add_row(connection, insert(runs), values)

    def update_run(self, run: int, **fields: Any) -> None:
        """Set a run's `state`, `pid`, `config` or `result` (JSON). Raises UserError where there is no such run."""
        if unknown := fields.keys() - {"state", "pid", "config", "result"}:
            raise TypeError(f"a run has no {', '.join(sorted(unknown))}")
        values = {key: dumps(value) if key in ("config", "result") else value for key, value in fields.items()}
        with self._writing() as connection:
            found = connection.execute(update(runs).where(runs.c.id == run).values(updated_at=clock(), **values))
            if not found.rowcount:
                raise UserError(f"There is no run {run}; awm-studio run list shows those there are.")

    def runs(self) -> list[Run]:
        """All runs, newest first."""
        with self._reading() as connection:
            rows = connection.execute(select(runs).order_by(runs.c.id.desc()))
            return [read_run(row) for row in rows]

    def add_event(self, run: int, kind: str, data: Any, scenario: str | None = None) -> int:
        """Append an event to a run; `data` is JSON. Returns its id."""
        values = {"run": run, "kind": kind, "data": dumps(data), "scenario": scenario, "created_at": clock()}
        with self._writing() as connection:
            return add_row(connection, insert(events), values)

    def events(self, after: int = 0, limit: int = 1000, *, run: int | None = None) -> list[Event]:
        """The events with ids above `after`, oldest first, of one run or of all."""
        query = select(events).where(events.c.id > after).order_by(events.c.id).limit(limit)
        with self._reading() as connection:
            rows = connection.execute(query if run is None else query.where(events.c.run == run))
            return [read_event(row) for row in rows]

    def last_events(self, limit: int = 1, *, run: int | None = None) -> list[Event]:
        """The newest `limit` events, oldest first, of one run or of all."""
        query = select(events).order_by(events.c.id.desc()).limit(limit)
        with self._reading() as connection:
            newest = connection.execute(query if run is None else query.where(events.c.run == run)).all()
        return [read_event(row) for row in reversed(newest)]

    # Inside a transaction

    @contextmanager
    def _reading(self) -> Generator[Connection]:
        bulk = getattr(self._bulk, "connection", None)
        if bulk is not None:
            yield bulk
            return
        with self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Generator[Connection]:
        bulk = getattr(self._bulk, "connection", None)
        if bulk is not None:
            yield bulk
            return
        with writing(self._engine) as connection:
            yield connection

    def _unknown(self, name: str) -> UserError:
        names = self.names()
        if not names:
            return UserError(
                f"There is no environment {name!r}: this workspace is empty. Import or synthesize some first."
            )
        close = difflib.get_close_matches(normalise(name), names, n=3, cutoff=0.5)
        hint = f" Did you mean {' or '.join(close)}?" if close else " awm-studio list shows those there are."
        return UserError(f"There is no environment {name!r}.{hint}")

    def _require(self, connection: Connection, name: str) -> Any:
        row = connection.execute(select(scenarios).where(scenarios.c.name == normalise(name))).one_or_none()
        if row is None:
            raise self._unknown(name)
        return row


def _iso(now: datetime | None) -> str | None:
    if now is None:
        return None
    return (now if now.tzinfo else now.replace(tzinfo=UTC)).isoformat()


def _slot_order(slot: str) -> tuple[int, str]:
    task, _, mode = slot.partition("/")
    return (int(task) if task else -1, mode)
