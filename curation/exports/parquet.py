"""Rows as parquet, some at a time, with the columns stated rather than guessed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.exports.folder import WrittenFile, written

if TYPE_CHECKING:
    import pyarrow as pa

ROW_GROUP = 256
"""Rows written at once: what is held in memory, and what a reader fetches at least."""


def write_parquet(path: Path, schema: pa.Schema, rows: Iterable[dict[str, Any]]) -> WrittenFile:
    """Write rows (dicts with the schema's columns) as zstd-compressed parquet, also where there are none."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    path.parent.mkdir(parents=True, exist_ok=True)
    total = 0
    remaining = iter(rows)
    with ParquetWriter(path, schema, compression="zstd") as writer:
        while batch := list(itertools.islice(remaining, ROW_GROUP)):
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))
            total += len(batch)
    return written(path, total)
