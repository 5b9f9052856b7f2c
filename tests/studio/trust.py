"""A workspace with a desk that was checked and audited: verifiers of every kind, and faults to put right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from curation.audit.workspace import audit_workspace
from curation.checks.workspace import check_workspace
from pipeline.catalog import Catalog
from pipeline.model import Environment, TableRows
from pipeline.runtime.host import Host
from tests.curation.audit.desk import DESK, ROWS, SOLUTIONS, TASKS, verifier
from tests.curation.audit.workspaces import put
from tests.studio.worlds import fill

LOOSE = verifier(0, '    good = rows(final, TICKETS)[0][2] == "closed"\n')
BROKEN_ROW = "INSERT INTO note VALUES (3, 14, 'We'll deliver it', NULL)"
"""A note that an apostrophe loses."""

TRUST_DESK: Environment = replace(
    DESK, tasks=TASKS[:3], sample=(*ROWS[:2], TableRows("note", (*ROWS[2].inserts, BROKEN_ROW)), ROWS[3])
)


def fill_with_trust(folder: Path, host: Host) -> Path:
    """The small workspace with such a desk, named `ticket_desk`."""
    fill(folder)
    with Catalog.open(folder / "catalog.db") as catalog:
        put(catalog, "ticket_desk", TRUST_DESK, [LOOSE, verifier(1), verifier(2)], SOLUTIONS[:2])
        catalog.describe("ticket_desk", title="Ticket desk", domain="office")
        for _ in (*check_workspace(catalog, ["ticket_desk"], host, workers=1),
                  *audit_workspace(catalog, ["ticket_desk"], host, workers=1)):  # fmt: skip
            pass
    return folder
