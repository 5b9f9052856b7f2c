"""The review queue and everything that was decided, as a file to keep or to pass on."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from curation.review import Entry, queue
from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.snapshots import replace_file

COLUMNS = (
    "environment", "item", "source", "severity", "code", "where", "message", "evidence", "remedy",
    "decision", "reason", "reviewer", "date", "holds",
)  # fmt: skip
"""The columns of an export. `holds` is whether the decision is the newest about an item that is still there."""


def export_reviews(catalog: Catalog, path: Path) -> int:
    """Write every item of the queue and every decision there ever was; JSON where the name ends in .json, else CSV.

    Returns how many rows that are. Raises UserError where the file cannot be written.
    """
    rows = list(rows_of(catalog, queue(catalog)))
    text = json.dumps(rows, indent=2, ensure_ascii=False) if path.suffix.lower() == ".json" else _as_csv(rows)
    try:
        replace_file(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}.") from error
    return len(rows)


def rows_of(catalog: Catalog, entries: Sequence[Entry]) -> Iterator[dict[str, Any]]:
    """The items with the decisions that hold, then decisions that were taken back, replaced, or are about the past."""
    held = [entry.review for entry in entries if entry.review]
    for entry in entries:
        yield entry.document() | {"holds": entry.review is not None}
    for review in catalog.reviews():
        if review not in held:
            yield {
                "environment": review.scenario,
                "item": review.item,
                **review.about,
                "decision": review.decision,
                "reason": review.reason,
                "reviewer": review.reviewer,
                "date": review.created_at.isoformat(timespec="seconds"),
                "holds": False,
            }


def _as_csv(rows: Sequence[dict[str, Any]]) -> str:
    written = io.StringIO()
    writer = csv.DictWriter(written, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return written.getvalue()
