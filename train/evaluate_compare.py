"""Two evaluations of the same tasks side by side: better, worse or not decided, and which tasks were gained or lost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.errors import UserError
from train.evaluate_report import Item, items_of
from train.pass_rates import bootstrap_interval

LEVEL = 0.05
"""The chance of calling two equal models different that is accepted."""

FEWEST_DIFFERENT = 6
"""Tasks that must differ before anything can be decided: with five, even all in one direction, an exact two-sided test
stays above 5 % (2 / 2⁵ = 0.0625)."""


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Compare two reports task by task; `difference` is after minus before, `verdict` is about the second. Its
    `interval` is None where all tasks differ alike, so that there is nothing to estimate it from.

    With one try a task the test is McNemar's, exact (McNemar 1947, Psychometrika 12:153), with several a paired
    bootstrap over tasks; both use only tasks that were judged in both. Raises UserError where the reports are of
    different suites or versions, or share no judged task.
    """
    for name in ("suite", "version"):
        if before[name] != after[name]:
            raise UserError(
                f"These evaluations cannot be compared: the {name} is {before[name]} in one and {after[name]} in the "
                "other."
            )
    pairs = _pairs(items_of(before), items_of(after))
    if not pairs:
        raise UserError("These evaluations have no task that was judged in both.")
    differences = [_share(other) - _share(one) for one, other in pairs]
    varied = min(differences) < max(differences)  # else a bootstrap would claim to be certain
    low, high = bootstrap_interval(differences, lambda drawn: math.fsum(drawn) / len(drawn)) if varied else (0.0, 0.0)
    single = all(len(item.passes) == 1 for pair in pairs for item in pair)
    gained, lost = (sum(sign * value > 0 for value in differences) for sign in (1, -1))
    p = mcnemar(gained, lost) if single else None
    enough = gained + lost >= FEWEST_DIFFERENT
    certain = low > 0 or high < 0 or not varied
    decided = enough and (p < LEVEL if p is not None else certain)
    mean = math.fsum(differences) / len(differences)
    return {
        "suite": before["suite"],
        "version": before["version"],
        "before": _named(before),
        "after": _named(after),
        "tasks": len(pairs),
        "before_score": round(math.fsum(_share(one) for one, _ in pairs) / len(pairs), 4),
        "after_score": round(math.fsum(_share(other) for _, other in pairs) / len(pairs), 4),
        "difference": round(mean, 4),
        "interval": [round(low, 4), round(high, 4)] if varied else None,
        "test": "McNemar, exact" if single else "paired bootstrap over tasks",
        "p": None if p is None else round(p, 4),
        "verdict": "not decided" if not decided else "better" if mean > 0 else "worse",
        "why": "" if decided else _undecided(gained + lost),
        "settings": _settings(before, after),
        "gained": [_change(one, other) for one, other in pairs if _share(other) > _share(one)],
        "lost": [_change(one, other) for one, other in pairs if _share(other) < _share(one)],
    }


def _undecided(different: int) -> str:
    if different < FEWEST_DIFFERENT:
        return f"{different} tasks differ, and fewer than {FEWEST_DIFFERENT} decide nothing"
    return "so much comes about by chance"


def mcnemar(gained: int, lost: int) -> float:
    """The two-sided exact p-value: how likely so uneven a split of the tasks that differ is, if both are alike."""
    count, fewer = gained + lost, min(gained, lost)
    return min(1.0, 2 * sum(math.comb(count, n) for n in range(fewer + 1)) / 2**count)


def _pairs(before: Sequence[Item], after: Sequence[Item]) -> list[tuple[Item, Item]]:
    later = {item.id: item for item in after if item.passes}
    return [(item, later[item.id]) for item in before if item.passes and item.id in later]


def _share(item: Item) -> float:
    assert item.share is not None
    return item.share


def _named(document: Mapping[str, Any]) -> dict[str, Any]:
    return {"run": document.get("run"), "model": document.get("model"), "state": document["state"]}


def _settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The settings that differ, by name, as [before, after]."""
    one, other = before.get("settings", {}), after.get("settings", {})
    return {name: [one.get(name), other.get(name)] for name in one | other if one.get(name) != other.get(name)}


def _change(one: Item, other: Item) -> dict[str, Any]:
    return {"id": one.id, "before": _tries(one), "after": _tries(other)}


def _tries(item: Item) -> str:
    return f"{sum(item.passes)}/{len(item.passes)}"
