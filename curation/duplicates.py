"""Near-duplicates: what a person decides about a pair, and what follows from it.

A decision changes no environment. It is kept in the catalog, filters see it (`aside:dropped`, `aside:none`), and
subsets obey it: a dropped environment is never picked, and of two merged ones the one that gives way is picked only
where the other cannot be, because it was filtered out.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING

from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.catalog import Catalog
    from pipeline.records import StoredDecision


class Decision(StrEnum):
    """`keep`: they differ enough, both stay. `merge`: they are one thing twice. `drop`: one is not wanted at all."""

    keep = "keep"
    merge = "merge"
    drop = "drop"


def decide(catalog: Catalog, a: str, b: str, decision: Decision | None, *, leaves: str | None = None) -> None:
    """Keep a decision about a pair; None forgets the one there is. `leaves` is which of the two gives way.

    Raises UserError where a merge or drop does not say that, where an environment is unknown, and where the one that
    stays has itself given way to the other.
    """
    a, b = catalog.resolve(a), catalog.resolve(b)
    if a == b:
        raise UserError(f"{a} cannot be a near-duplicate of itself: name two environments.")
    if decision in (Decision.merge, Decision.drop):
        if leaves not in (a, b):
            raise UserError(f"Say which of {a} and {b} gives way.")
        stays = b if leaves == a else a
        if decision is Decision.merge and leaves in _stand_ins(catalog.decisions(), stays):
            raise UserError(f"{stays} was merged into {leaves} already: undo that first.")
    else:
        leaves = None
    catalog.set_decision(a, b, decision, leaves)


def set_aside(decisions: Iterable[StoredDecision], names: Iterable[str]) -> set[str]:
    """Of these environments those that a subset leaves out: dropped, or merged into another one of these."""
    decisions = list(decisions)
    dropped = {found.leaves for found in decisions if found.decision == Decision.drop}
    there = set(names) - dropped
    merged = {
        found.leaves
        for found in decisions
        if found.leaves and found.decision == Decision.merge and {found.a, found.b} <= there
    }
    return {name for name in names if name in dropped | merged}


def _stand_ins(decisions: Iterable[StoredDecision], name: str) -> set[str]:
    """Everything that a name was merged into, directly or through others."""
    into = {
        (found.leaves, found.b if found.leaves == found.a else found.a)
        for found in decisions
        if found.decision == Decision.merge
    }
    reached: set[str] = set()
    edge = {name}
    while edge := {stays for leaves, stays in into if leaves in edge} - reached:
        reached |= edge
    return reached
