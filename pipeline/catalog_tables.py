"""The catalog's tables, as `pipeline.catalog` reads and writes them.

The migrations in `pipeline/migrations` make these tables; a test compares the two. Times are ISO 8601 text in UTC,
structured values JSON text, so that any database SQLAlchemy speaks to will do.
"""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

SCHEMA_VERSION = "0005"
"""The newest migration; a catalog that names another one was made by another version of this program."""

metadata = MetaData()

scenarios = Table(
    "scenarios",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("title", Text, nullable=False),
    Column("origin", String(40), nullable=False),
    Column("domain", Text),
    Column("now", String(40), nullable=False),
    Column("tables", Integer),
    Column("rows", Integer),
    Column("tools", Integer),
    Column("tasks", Integer),
    Column("code_verifiers", Integer, nullable=False),
    Column("sql_verifiers", Integer, nullable=False),
    Column("missing", Text, nullable=False),
    Column("check_status", String(20)),
    Column("audit", String(20)),
    Column("concept", Text),
    Column("aside", String(20)),
    Column("review", String(20)),
)

blobs = Table(
    "blobs",
    metadata,
    Column("sha", String(64), primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

versions = Table(
    "versions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("scenario", String(200), ForeignKey("scenarios.name"), nullable=False),
    Column("part", String(20), nullable=False),
    Column("slot", String(40), nullable=False),
    Column("number", Integer, nullable=False),
    Column("current", Boolean, nullable=False),
    Column("sha", String(64), ForeignKey("blobs.sha"), nullable=False),
    Column("extra_sha", String(64), ForeignKey("blobs.sha")),
    Column("author_kind", String(20), nullable=False),
    Column("author", Text, nullable=False),
    Column("created_at", String(40), nullable=False),
    Column("parents", Text, nullable=False),
    Column("tokens_in", Integer),
    Column("tokens_out", Integer),
    Column("usd", Float),
    Column("seconds", Float),
    UniqueConstraint("scenario", "part", "slot", "number", name="one_version_a_number"),
)

checks = Table(
    "checks",
    metadata,
    Column("scenario", String(200), ForeignKey("scenarios.name"), primary_key=True),
    Column("key", Text, nullable=False),
    Column("status", String(20), nullable=False),
    Column("findings", Text, nullable=False),
    Column("created_at", String(40), nullable=False),
)

audits = Table(
    "audits",
    metadata,
    Column("scenario", String(200), ForeignKey("scenarios.name"), primary_key=True),
    Column("key", Text, nullable=False),
    Column("verdict", String(20)),
    Column("document", Text, nullable=False),
    Column("created_at", String(40), nullable=False),
)
"""Audits of verifiers; `verdict` is the worst of an environment's, NULL where it has none."""

reviews = Table(
    "reviews",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("scenario", String(200), ForeignKey("scenarios.name"), nullable=False),
    Column("item", String(64), nullable=False),
    Column("decision", String(20), nullable=False),
    Column("reason", Text, nullable=False),
    Column("reviewer", Text, nullable=False),
    Column("about", Text, nullable=False),
    Column("created_at", String(40), nullable=False),
    Index("reviews_of_a_scenario", "scenario", "id"),
)
"""What people decided about findings, one row a decision; the newest about an item holds."""

runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("kind", String(40), nullable=False),
    Column("state", String(20), nullable=False),
    Column("config", Text, nullable=False),
    Column("result", Text),
    Column("pid", Integer),
    Column("created_at", String(40), nullable=False),
    Column("updated_at", String(40), nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("run", Integer, ForeignKey("runs.id"), nullable=False),
    Column("kind", String(40), nullable=False),
    Column("scenario", String(200)),
    Column("data", Text, nullable=False),
    Column("created_at", String(40), nullable=False),
    Index("events_of_a_run", "run", "id"),
)

duplicates = Table(
    "duplicates",
    metadata,
    Column("a", String(200), ForeignKey("scenarios.name"), primary_key=True),
    Column("b", String(200), ForeignKey("scenarios.name"), primary_key=True),
    Column("decision", String(20), nullable=False),
    Column("leaves", String(200)),
    Column("created_at", String(40), nullable=False),
)
"""What people decided about pairs of near-duplicates (a < b); `leaves` is the one that gives way, if any."""

subsets = Table(
    "subsets",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("card", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("created_at", String(40), nullable=False),
)
