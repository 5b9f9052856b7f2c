"""What people decide about near-duplicates is kept, and environments that give way say so."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the table, and the column that lists and filters read."""
    op.create_table(
        "duplicates",
        sa.Column("a", sa.String(200), sa.ForeignKey("scenarios.name"), primary_key=True),
        sa.Column("b", sa.String(200), sa.ForeignKey("scenarios.name"), primary_key=True),
        sa.Column("decision", sa.String(20), nullable=False),
        sa.Column("leaves", sa.String(200)),
        sa.Column("created_at", sa.String(40), nullable=False),
    )
    op.add_column("scenarios", sa.Column("aside", sa.String(20)))
