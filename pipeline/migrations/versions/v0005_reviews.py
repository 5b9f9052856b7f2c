"""What people decide about findings is kept, and environments show the weightiest decision."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the table, and the column that lists and filters read."""
    op.create_table(
        "reviews",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("scenario", sa.String(200), sa.ForeignKey("scenarios.name"), nullable=False),
        sa.Column("item", sa.String(64), nullable=False),
        sa.Column("decision", sa.String(20), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("reviewer", sa.Text, nullable=False),
        sa.Column("about", sa.Text, nullable=False),
        sa.Column("created_at", sa.String(40), nullable=False),
    )
    op.create_index("reviews_of_a_scenario", "reviews", ["scenario", "id"])
    op.add_column("scenarios", sa.Column("review", sa.String(20)))
