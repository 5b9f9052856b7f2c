"""What a recipe would pick, worked out from the last kept measurement while the recipe is still being written.

It follows the recipe exactly as `curation.making` does, but embeds nothing: environments that are new since the
measurement are not in it, and the view to cover must be the one that was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from curation.cards import measure
from curation.duplicates import set_aside
from curation.filters import parse
from curation.landscape import Cut, Landscape, cut
from curation.picking import Candidate, pick, trainable
from curation.review import Decision
from curation.selection import distinct
from curation.subset import TEST, TRAIN, Recipe, Subset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.catalog import Catalog
    from pipeline.records import StoredDecision, Summary

LIVE_LIMIT = 3_000
"""Up to so many environments a recipe is followed at every change: picking takes the square of their number."""


@dataclass(frozen=True, slots=True)
class Pool:
    """What recipes choose from: all environments in one row each, their tasks to train on, and a measurement."""

    summaries: Sequence[Summary]
    tasks: Mapping[str, tuple[int, ...]]
    decisions: Sequence[StoredDecision]
    landscape: Landscape
    found: Cut


@dataclass(frozen=True, slots=True)
class Preview:
    """`matching` environments pass the filter, `unmeasured` of them are not in the measurement, `candidates` have
    tasks to train on and were not set aside. `figures` are those of the card, None where they cannot be said live."""

    matching: int
    unmeasured: int
    candidates: int
    figures: Mapping[str, Any] | None


def read_pool(catalog: Catalog, landscape: Landscape, threshold: float) -> Pool:
    """Read what recipes choose from; takes a few ms an environment."""
    summaries = catalog.summaries()
    measured = set(landscape.names)
    tasks = {row.name: trainable(catalog, row.name)[0] for row in summaries if row.name in measured}
    return Pool(summaries, tasks, catalog.decisions(), landscape, cut(landscape, threshold))


def preview(pool: Pool, recipe: Recipe) -> Preview:
    """Follow a recipe as far as the pool allows. Raises UserError where the recipe cannot be followed."""
    keep = parse(recipe.where)
    matching = [row.name for row in pool.summaries if keep(row)]
    aside = set_aside(pool.decisions, matching) | {row.name for row in pool.summaries if row.review == Decision.drop}
    concepts = pool.found.concept_of(pool.landscape)
    items = pool.landscape.survey.items
    wanted = set(matching) - aside
    positions = [n for n, item in enumerate(items) if item.name in wanted and pool.tasks.get(item.name)]
    unmeasured = sum(name not in concepts for name in matching)
    live = len(positions) <= LIVE_LIMIT and recipe.cover == pool.landscape.survey.view
    if not live or not positions:
        return Preview(len(matching), unmeasured, len(positions), None)
    vectors = pool.landscape.survey.vectors[positions]
    kept = list(range(len(positions))) if recipe.distinct is None else distinct(vectors, recipe.distinct)
    vectors = vectors[kept]
    chosen_from = [
        Candidate(items[positions[n]], concepts[items[positions[n]].name], pool.tasks[items[positions[n]].name])
        for n in kept
    ]
    subset = Subset(replace(recipe, threshold=pool.found.threshold), pick(recipe, chosen_from, vectors), {}, {})
    figures = measure(subset, {candidate.item.name: candidate.concept for candidate in chosen_from}, vectors)
    figures |= {"tasks": {split: sum(pick.split == split for pick in subset.picks) for split in (TRAIN, TEST)}}
    return Preview(len(matching), unmeasured, len(positions), figures)
