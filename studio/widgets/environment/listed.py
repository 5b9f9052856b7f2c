"""How environments are listed: what the columns show, and in which order each sorts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from studio.widgets.cells import count
from studio.widgets.grid import Cell, Column
from studio.widgets.states import state

if TYPE_CHECKING:
    from pipeline.records import Summary

NUMBERS = {"tables": ("tbl", 1), "rows": ("rows", 6), "tools": ("tools", 3), "tasks": ("tasks", 2)}
"""Columns of counts: heading, and how soon each leaves a narrow list."""
MAY_BE_UNKNOWN = ("domain", "audit", "review", "concept")
WORST_FIRST: Mapping[str, Sequence[str]] = {
    "check": ("fail", "warn", "stale", "waived", "pass"),
    "audit": ("broken", "loose", "strict", "stale", "unproven", "waived", "trusted"),
    "review": ("drop", "fix", "waive", "accept"),
}
"""Columns of verdicts sort by how bad they are."""


def columns(rows: Sequence[Summary], mark: Callable[[Summary], Cell]) -> tuple[Column, ...]:
    """The columns for these environments; those in which nothing is known of any are left out."""
    every = (
        Column("mark", "", mark, width=1),
        Column("name", "environment", lambda row: row.title or row.name, width=24, flex=4),
        Column("domain", "domain", lambda row: (row.domain or "", "muted"), width=8, flex=1, drop=5),
        Column("origin", "origin", lambda row: (row.origin, "muted"), width=9, drop=9),
        *(_number(key, label, drop) for key, (label, drop) in NUMBERS.items()),
        Column("verifiers", "ver", _verifiers, width=5, right=True, drop=4),
        Column("check", "check", lambda row: state(row.check), width=8),
        Column("audit", "audit", lambda row: state(row.audit), width=10, drop=1),
        Column("review", "review", lambda row: (row.review or "", "muted"), width=6, drop=5),
        Column("concept", "concept", lambda row: (str(row.concept or "·"), "muted"), width=7, drop=8),
    )
    return tuple(
        column
        for column in every
        if column.key not in MAY_BE_UNKNOWN or any(getattr(row, column.key) is not None for row in rows)
    )


def ordered(rows: Sequence[Summary], key: str, *, reverse: bool) -> list[Summary]:
    """The environments by a column; those of which it is not known come last either way."""
    known = [row for row in rows if _value(row, key) not in (None, "")]
    known.sort(key=lambda row: (_value(row, key), row.name), reverse=reverse)
    return known + [row for row in rows if _value(row, key) in (None, "")]


def most_first(key: str) -> bool:
    """Whether a column shows its largest values first when it is sorted by for the first time."""
    return key in NUMBERS or key == "verifiers"


def _value(row: Summary, key: str) -> Any:
    """What a row is sorted by."""
    match key:
        case "name":
            return (row.title or row.name).lower()
        case "verifiers":
            return row.code_verifiers + row.sql_verifiers
    value = getattr(row, key)
    if value in WORST_FIRST.get(key, ()):
        return WORST_FIRST[key].index(value)
    return value.lower() if isinstance(value, str) else value


def _number(key: str, label: str, drop: int) -> Column:
    return Column(
        key,
        label,
        lambda row: (count(getattr(row, key)), "" if getattr(row, key) is not None else "muted"),
        width=5,
        right=True,
        drop=drop,
    )


def _verifiers(row: Summary) -> Cell:
    total = row.code_verifiers + row.sql_verifiers
    return str(total) if total else ("·", "muted")
