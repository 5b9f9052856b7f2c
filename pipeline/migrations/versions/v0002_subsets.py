"""Named subsets: the card apart, so that a list of them reads no pairs."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "subsets",
        sa.Column("name", sa.String(200), primary_key=True),
        sa.Column("card", sa.Text, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("created_at", sa.String(40), nullable=False),
    )
