"""Rows a task can be anchored to: what its text speaks of, and what else there is to speak of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from studio.snapshot_reader import Snapshot

LOOKED_AT = 200
"""Rows of each table that are looked at."""
SHORTEST = 3
"""Characters a value must have to count as mentioned: shorter ones are in any text by chance."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """One row of one table; `mentioned` are the columns whose value stands in the task's text."""

    table: str
    values: Mapping[str, Any]
    mentioned: tuple[str, ...]


def anchors(text: str, snapshot: Snapshot) -> list[Anchor]:
    """The rows of a database, those that a task's text mentions first (the most mentioned first of all)."""
    found = list(_anchors(text.lower(), snapshot))
    return sorted(found, key=lambda anchor: -len(anchor.mentioned))


def _anchors(text: str, snapshot: Snapshot) -> Iterator[Anchor]:
    for table in snapshot.tables:
        names = [column.name for column in table.columns]
        for row in snapshot.page(table, 0)[:LOOKED_AT]:
            values = dict(zip(names, row, strict=True))
            yield Anchor(table.name, values, tuple(name for name, value in values.items() if _stands_in(text, value)))


def _stands_in(text: str, value: Any) -> bool:
    said = str(value).lower()
    if isinstance(value, (bytes, type(None))) or len(said) < SHORTEST or said not in text:
        return False
    return re.search(rf"(?<!\w){re.escape(said)}(?!\w)", text) is not None
