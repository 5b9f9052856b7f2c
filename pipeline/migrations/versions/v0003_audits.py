"""Audits of verifiers are kept."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "audits",
        sa.Column("scenario", sa.String(200), sa.ForeignKey("scenarios.name"), primary_key=True),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("verdict", sa.String(20)),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("created_at", sa.String(40), nullable=False),
    )
