"""The first catalog: scenarios, versions of their parts, blobs, checks, runs and events."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create every table."""
    op.create_table(
        "scenarios",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("origin", sa.String(40), nullable=False),
        sa.Column("domain", sa.Text),
        sa.Column("now", sa.String(40), nullable=False),
        sa.Column("tables", sa.Integer),
        sa.Column("rows", sa.Integer),
        sa.Column("tools", sa.Integer),
        sa.Column("tasks", sa.Integer),
        sa.Column("code_verifiers", sa.Integer, nullable=False),
        sa.Column("sql_verifiers", sa.Integer, nullable=False),
        sa.Column("missing", sa.Text, nullable=False),
        sa.Column("check_status", sa.String(20)),
        sa.Column("audit", sa.String(20)),
        sa.Column("concept", sa.Text),
    )
    op.create_table(
        "blobs",
        sa.Column("sha", sa.String(64), primary_key=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "versions",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("scenario", sa.String(200), sa.ForeignKey("scenarios.name"), nullable=False),
        sa.Column("part", sa.String(20), nullable=False),
        sa.Column("slot", sa.String(40), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("current", sa.Boolean, nullable=False),
        sa.Column("sha", sa.String(64), sa.ForeignKey("blobs.sha"), nullable=False),
        sa.Column("extra_sha", sa.String(64), sa.ForeignKey("blobs.sha")),
        sa.Column("author_kind", sa.String(20), nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("created_at", sa.String(40), nullable=False),
        sa.Column("parents", sa.Text, nullable=False),
        sa.Column("tokens_in", sa.Integer),
        sa.Column("tokens_out", sa.Integer),
        sa.Column("usd", sa.Float),
        sa.Column("seconds", sa.Float),
        sa.UniqueConstraint("scenario", "part", "slot", "number", name="one_version_a_number"),
    )
    op.create_table(
        "checks",
        sa.Column("scenario", sa.String(200), sa.ForeignKey("scenarios.name"), primary_key=True),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("findings", sa.Text, nullable=False),
        sa.Column("created_at", sa.String(40), nullable=False),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("config", sa.Text, nullable=False),
        sa.Column("result", sa.Text),
        sa.Column("pid", sa.Integer),
        sa.Column("created_at", sa.String(40), nullable=False),
        sa.Column("updated_at", sa.String(40), nullable=False),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("run", sa.Integer, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("scenario", sa.String(200)),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("created_at", sa.String(40), nullable=False),
    )
    op.create_index("events_of_a_run", "events", ["run", "id"])
