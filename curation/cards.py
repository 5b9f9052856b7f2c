"""The card of a subset: what is in it, how well it covers, where it comes from, under which licences."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from curation.estimates import vendi
from curation.subset import TEST, TRAIN, Subset
from pipeline.model import AuthorKind, Part

if TYPE_CHECKING:
    import numpy as np

    from pipeline.catalog import Catalog
    from pipeline.records import Version

OUR_LICENCE = "Apache-2.0"
"""What blueprint environments are under: the licence of the package whose rules made them."""


def describe(catalog: Catalog, subset: Subset) -> dict[str, Any]:
    """What can be said of any subset: counts, judgements, origins, licences."""
    names = subset.environments()
    summaries = [catalog.summary(name) for name in names]
    scenarios = [next((v for v in catalog.current(name) if v.part is Part.scenario), None) for name in names]
    licences = (_licence(catalog, s, about.origin) for s, about in zip(scenarios, summaries, strict=True))
    return {
        "name": subset.recipe.name,
        "digest": subset.digest,
        "recipe": asdict(subset.recipe),
        "environments": {split: len(subset.environments(split)) for split in (TRAIN, TEST)},
        "tasks": {split: sum(pick.split == split for pick in subset.picks) for split in (TRAIN, TEST)},
        "concepts": {split: len(_concepts(subset, split)) for split in (TRAIN, TEST)},
        "checks": dict(Counter(summary.check or "unchecked" for summary in summaries)),
        "audit": dict(Counter(summary.audit or "unaudited" for summary in summaries)),
        "origins": dict(Counter(summary.origin for summary in summaries)),
        "domains": dict(Counter(summary.domain for summary in summaries if summary.domain)),
        "licences": dict(Counter(licences)),
        "made_by": dict(Counter(_author(scenario) for scenario in scenarios)),
    }


def measure(subset: Subset, concepts: Mapping[str, str], vectors: np.ndarray) -> dict[str, Any]:
    """How well a subset covers what it was picked from: the environments of `concepts`, whose vectors are given.

    Coverage is that of the training split over everything but the held-out concepts: the mean similarity of an
    environment to the most similar one picked.
    """
    from curation.selection import covered

    position = {name: number for number, name in enumerate(concepts)}
    names = {split: subset.environments(split) for split in (TRAIN, TEST)}
    held_out = _concepts(subset, TEST)
    trained = vectors[[position[name] for name, concept in concepts.items() if concept not in held_out]]
    picked = {split: vectors[[position[name] for name in names[split]]] for split in names}
    return {
        "environments": {split: len(found) for split, found in names.items()} | {"of": len(concepts)},
        "concepts": {split: len(_concepts(subset, split)) for split in names}
        | {"of": len(set(concepts.values())), "held_out": sorted(held_out)},
        "coverage": covered(trained, picked[TRAIN]),
        "vendi": {
            TRAIN: vendi(picked[TRAIN]),
            TEST: vendi(picked[TEST]),
            "of": vendi(vectors),
            "view": subset.recipe.cover.value,
        },
        "series": [_prefix(subset, size, trained, picked[TRAIN]) for size in _sizes(subset, len(names[TRAIN]))],
    }


def _sizes(subset: Subset, most: int) -> list[int]:
    """The sizes of the series; those beyond the training split are one, the whole of it."""
    return sorted({min(size, most) for size in subset.recipe.series})


def _prefix(subset: Subset, size: int, trained: np.ndarray, picked: np.ndarray) -> dict[str, Any]:
    """What the nested training subset of a size holds; `picked` are the training split's vectors, in rank order."""
    from curation.selection import covered

    inside = [pick for pick in subset.picks if pick.split == TRAIN and pick.rank < size]
    return {
        "size": size,
        "environments": len({pick.environment for pick in inside}),
        "tasks": len(inside),
        "concepts": len({pick.concept for pick in inside}),
        "coverage": covered(trained, picked[:size]),
    }


def _concepts(subset: Subset, split: str) -> set[str]:
    return {pick.concept for pick in subset.picks if pick.split == split and pick.concept}


def _licence(catalog: Catalog, scenario: Version | None, origin: str) -> str:
    """The licence that the scenario's row names, ours where our rules made it, or that none is stated."""
    row = json.loads(catalog.content(scenario.sha)) if scenario else {}
    stated = row.get("license") or row.get("licence")
    if stated:
        return str(stated)
    return OUR_LICENCE if origin == AuthorKind.blueprint else "not stated"


def _author(scenario: Version | None) -> str:
    if scenario is None:
        return "unknown"
    return f"{scenario.author.kind}: {scenario.author.name}" if scenario.author.name else str(scenario.author.kind)
