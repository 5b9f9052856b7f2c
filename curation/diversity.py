"""How different are the environments of a set? Concepts, estimates and near-duplicates, put together.

    items, lacking = read_items(workspace.catalog, View.all)
    vectors = represent([item.text for item in items], Model(), cache=cache)
    measured = measure(items, vectors, DEFAULT_THRESHOLD)

Numbers of concepts depend on the threshold and the Vendi score on the representation, so a measurement always says
both, gives the whole curve, and is best read beside another set's.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curation.calibration import Calibration, calibrate, read_judgements
from curation.concepts import (
    Pair,
    Tree,
    adjusted_rand,
    concept_names,
    curve,
    grow,
    near_duplicates,
    similarity_blocks,
)
from curation.embeddings import Model, Progress, VectorCache, embed
from curation.estimates import Interval, abundances, accumulation, chao1, coverage, hill, rarefaction, vendi
from curation.ngrams import ngram_vectors
from curation.views import PARTS, View, view_text
from pipeline.errors import UserError
from pipeline.model import Part

if TYPE_CHECKING:
    from pipeline.catalog import Catalog

DEFAULT_THRESHOLD = 0.5
"""Items at least this similar on average are one concept, unless judged pairs say otherwise.

170 blueprint environments of 17 domains and five real ones fall into exactly their 22 concepts from 0.45 to 0.65 in
the view `all`, from 0.35 to 0.5 by tasks, 0.4 to 0.6 by tools, 0.5 to 0.85 by scenario; by schema from 0.65 to 0.7.
"""
NGRAMS_THRESHOLD = 0.3
"""The same without a sentence model, where cosines are lower: 0.25 to 0.5, 0.2 to 0.3, 0.25 to 0.45, 0.3 to 0.75."""
NEAR_DUPLICATE = 0.85
"""A pair at least this similar is a near-duplicate."""
CURVE = tuple(round(0.05 * step, 2) for step in range(2, 20))
"""The thresholds of the curve."""
NGRAMS_ONLY = "ngrams"
"""The model name that means character n-grams alone, without a neural model."""
MODEL_SHARE = 0.5
"""How much of a cosine comes from the sentence model; the rest is character n-grams.

On the hundred shipped seeds pairs of one category rank best at this share: average precision 0.34, against 0.31 for
the model alone and 0.20 for n-grams alone.
"""


@dataclass(frozen=True, slots=True)
class Item:
    """One environment as it is compared: its text in a view, and what it can be grouped by (known values only)."""

    name: str
    text: str
    groups: Mapping[str, str] = field(default_factory=dict)


def read_items(catalog: Catalog, view: View, names: Iterable[str] | None = None) -> tuple[list[Item], list[str]]:
    """The named environments (or all) in a view, and the names of those that lack what the view needs.

    Groups are `origin`, `domain` (known for blueprints) and, where the scenario's row names them, `seed` and
    `category`.
    """
    items, lacking = [], []
    for environment in catalog.environments(names, parts=PARTS):
        text = view_text(environment, view)
        if not text.strip():
            lacking.append(environment.name)
            continue
        groups = {"origin": environment.origin, "domain": environment.domain}
        for version in catalog.versions(environment.name, Part.scenario)[-1:]:
            scenario = json.loads(catalog.content(version.sha))
            groups |= {key: str(scenario[key]) for key in ("seed", "category") if scenario.get(key)}
        items.append(Item(environment.name, text, {key: value for key, value in groups.items() if value}))
    return items, lacking


def read_elsewhere(path: Path, view: View) -> tuple[list[Item], list[str]]:
    """The environments of another workspace, or of a folder in the AWM layout, in a view.

    Raises UserError where it is neither.
    """
    from pipeline.catalog import Catalog
    from pipeline.workspace import CATALOG

    if (path / CATALOG).is_file():
        with Catalog.open(path / CATALOG) as catalog:
            return read_items(catalog, view)
    from curation.importers import import_awm

    with tempfile.TemporaryDirectory() as folder, Catalog.open(Path(folder) / CATALOG) as catalog:
        import_awm(catalog, path)
        return read_items(catalog, view)


def vector_cache(workspace: Path) -> VectorCache:
    """The cache of a workspace folder."""
    return VectorCache(workspace / "cache" / "vectors.db")


def represent(
    texts: Sequence[str],
    model: Model,
    *,
    cache: VectorCache,
    threads: int | None = None,
    progress: Progress | None = None,
) -> np.ndarray:
    """Unit vectors whose cosine is `MODEL_SHARE` of the sentence model's cosine and the rest that of n-grams.

    Both see different things: n-grams the words shared, the model what they mean. Together they ranked hand-labelled
    pairs best (average precision 0.84). Raises UserError where the model cannot be used.
    """
    grams = ngram_vectors(texts)
    if model.name == NGRAMS_ONLY:
        return grams
    meanings = embed(texts, model, cache=cache, threads=threads, progress=progress)
    return np.hstack([np.sqrt(MODEL_SHARE) * meanings, np.sqrt(1 - MODEL_SHARE) * grams]).astype(np.float32)


def agreed_threshold(
    workspace: Path, items: Sequence[Item], tree: Tree, model: Model
) -> tuple[float, Calibration | None]:
    """The threshold that people's judgements in a workspace give, with how well it agrees, or the model's default."""
    calibration = calibrate(read_judgements(workspace), [item.name for item in items], tree)
    if calibration:
        return calibration.threshold, calibration
    return (NGRAMS_THRESHOLD if model.name == NGRAMS_ONLY else DEFAULT_THRESHOLD), None


def keep_concepts(catalog: Catalog, concepts: Mapping[str, str]) -> None:
    """Give each environment its concept's name in the catalog, where lists and filters find it."""
    with catalog.bulk():
        for name, concept in concepts.items():
            catalog.describe(name, concept=concept)


@dataclass(frozen=True, slots=True)
class Group:
    """How many items and concepts one value of a grouping has, and how many of those concepts no other value has."""

    value: str
    items: int
    concepts: int
    own: int


@dataclass(frozen=True, slots=True)
class Diversity:
    """A set measured: everything at one threshold, and the tree to ask for other thresholds."""

    items: tuple[Item, ...]
    threshold: float
    labels: tuple[int, ...]
    names: tuple[str, ...]
    tree: Tree
    curve: tuple[tuple[float, int], ...]
    vendi: float
    chao1: Interval
    coverage: float
    hill: tuple[float, float, float]
    duplicates: tuple[Pair, ...]
    duplicate_pairs: int
    ari_vs_known: float | None

    @property
    def concepts(self) -> int:
        """How many concepts there are at the threshold."""
        return len(self.names)

    def concept_of(self) -> dict[str, str]:
        """The name of each environment's concept."""
        return {item.name: self.names[label] for item, label in zip(self.items, self.labels, strict=True)}

    def groups(self, key: str) -> list[Group]:
        """Items and concepts by the values of a grouping, the one with most items first."""
        concepts: dict[str, list[int]] = {}
        for item, label in zip(self.items, self.labels, strict=True):
            if key in item.groups:
                concepts.setdefault(item.groups[key], []).append(label)
        holders: dict[int, int] = {}
        for labels in concepts.values():
            for label in set(labels):
                holders[label] = holders.get(label, 0) + 1
        found = [
            Group(value, len(labels), len(set(labels)), sum(holders[label] == 1 for label in set(labels)))
            for value, labels in concepts.items()
        ]
        return sorted(found, key=lambda group: (-group.items, group.value))

    def novelty(self, points: int = 50) -> list[tuple[int, int, float]]:
        """Does the next one still add concepts? (items, concepts seen in the order given, concepts expected of as many
        drawn at random), at up to `points` sizes."""
        seen, counts = accumulation(self.labels), abundances(self.labels)
        sizes = sorted({round(size) for size in np.linspace(1, len(seen), min(points, len(seen)))})
        return [(size, seen[size - 1], rarefaction(counts, size)) for size in sizes]


def measure(
    items: Sequence[Item],
    vectors: np.ndarray,
    threshold: float,
    *,
    tree: Tree | None = None,
    duplicate_at: float = NEAR_DUPLICATE,
    limit: int = 1000,
) -> Diversity:
    """Measure a set; `limit` is how many near-duplicate pairs to name. A `tree` grown before is used again.

    Where domains are known for some items, `ari_vs_known` compares the concepts with them. Raises UserError for an
    empty set or more items than can be clustered.
    """
    if not items:
        raise UserError("There is nothing to compare: no environment has what this view needs.")
    tree = tree or grow(vectors)
    labels = tree.cut(threshold).tolist()
    total, duplicates = near_duplicates(vectors, duplicate_at, limit)
    counts = abundances(labels)
    known = [
        (label, item.groups["domain"]) for label, item in zip(labels, items, strict=True) if "domain" in item.groups
    ]
    return Diversity(
        items=tuple(items),
        threshold=threshold,
        labels=tuple(labels),
        names=tuple(concept_names([item.text for item in items], labels)),
        tree=tree,
        curve=tuple(curve(tree, CURVE)),
        vendi=vendi(vectors),
        chao1=chao1(counts),
        coverage=coverage(counts),
        hill=(hill(counts, 0), hill(counts, 1), hill(counts, 2)),
        duplicates=tuple(duplicates),
        duplicate_pairs=total,
        ari_vs_known=adjusted_rand(*zip(*known, strict=True)) if known else None,
    )


def document(measured: Diversity, view: View, model: Model) -> dict[str, Any]:
    """A measurement as the JSON that `awm-studio diversity --json` prints."""
    names = [item.name for item in measured.items]
    return {
        "items": len(names),
        "view": view.value,
        "model": model.name,
        "threshold": measured.threshold,
        "concepts": measured.concepts,
        "curve": [{"threshold": at, "concepts": count} for at, count in measured.curve],
        "vendi": measured.vendi,
        "chao1": {"estimate": measured.chao1.estimate, "low": measured.chao1.low, "high": measured.chao1.high},
        "coverage": measured.coverage,
        "chance_next_is_new": 1 - measured.coverage,
        "hill": dict(zip(("q0", "q1", "q2"), measured.hill, strict=True)),
        "near_duplicate_pairs": measured.duplicate_pairs,
        "near_duplicates": [
            {"a": names[pair.a], "b": names[pair.b], "similarity": pair.similarity} for pair in measured.duplicates
        ],
        "labels": dict(zip(names, measured.labels, strict=True)),
        "concept_names": list(measured.names),
        "groups": {
            key: [
                {"value": g.value, "items": g.items, "concepts": g.concepts, "own": g.own} for g in measured.groups(key)
            ]
            for key in sorted({key for item in measured.items for key in item.groups})
        },
        "novelty": [
            {"items": items, "concepts": seen, "expected": expected} for items, seen, expected in measured.novelty()
        ],
        "ari_vs_known": measured.ari_vs_known,
    }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two sets measured together: concepts of their union, by who has them, and each set's Vendi score."""

    here: int
    there: int
    shared: int
    only_here: int
    only_there: int
    vendi_here: float
    vendi_there: float
    vendi_union: float
    nearest: tuple[tuple[str, str, float], ...]


def compare(
    here: Sequence[Item], there: Sequence[Item], vectors: np.ndarray, threshold: float, limit: int = 20
) -> Comparison:
    """Compare two sets whose vectors (those of `here` first) were made together.

    `nearest` are the pairs across the sets that are most alike, one a name of `here`.
    """
    labels = grow(vectors).cut(threshold)
    first, second = vectors[: len(here)], vectors[len(here) :]
    mine, theirs = set(labels[: len(here)].tolist()), set(labels[len(here) :].tolist())
    pairs = [
        (here[start + row].name, there[int(best)].name, float(block[row, best]))
        for start, block in similarity_blocks(first, second)
        for row, best in enumerate(block.argmax(axis=1))
    ]
    return Comparison(
        here=len(mine),
        there=len(theirs),
        shared=len(mine & theirs),
        only_here=len(mine - theirs),
        only_there=len(theirs - mine),
        vendi_here=vendi(first),
        vendi_there=vendi(second),
        vendi_union=vendi(vectors),
        nearest=tuple(sorted(pairs, key=lambda pair: -pair[2])[:limit]),
    )
