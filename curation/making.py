"""Making subsets: survey, pick, describe, keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace as changed_to
from typing import TYPE_CHECKING

from curation.cards import describe, measure
from curation.embeddings import Progress, choose_model
from curation.filters import parse
from curation.picking import Candidate, band, candidates, pick
from curation.selection import distinct
from curation.subset import Recipe, Subset, current_contents, require_name
from curation.survey import survey
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.workspace import Workspace


def require_possible(workspace: Workspace, recipe: Recipe, *, replace: bool) -> None:
    """Raise UserError where a recipe cannot be followed, as far as that is known before anything is compared."""
    require_name(recipe.name)
    parse(recipe.where)
    if not replace and recipe.name in {stored.name for stored in workspace.catalog.subsets()}:
        raise UserError(f"There is a subset {recipe.name!r} already: choose another name, or replace it (--replace).")


def make_subset(
    workspace: Workspace,
    recipe: Recipe,
    rates: Mapping[tuple[str, int], float] = {},
    *,
    replace: bool = False,
    progress: Progress | None = None,
) -> Subset:
    """Make a subset by a recipe and keep it in the catalog. `rates` are solve rates by environment and task.

    Raises UserError where the name cannot be one or is taken (unless it is to be replaced), the filter cannot be read,
    or nothing can be picked.
    """
    require_possible(workspace, recipe, replace=replace)
    catalog = workspace.catalog
    model = choose_model(workspace.settings, recipe.model)
    found = survey(workspace, recipe.cover, model, where=recipe.where, threshold=recipe.threshold, progress=progress)
    measured = found.measured()
    concepts = [measured.names[label] for label in measured.labels]
    chosen_from, left_out = candidates(catalog, found.items, concepts, rates)
    position = {item.name: number for number, item in enumerate(found.items)}
    vectors = found.vectors[[position[candidate.item.name] for candidate in chosen_from]]
    kept = range(len(vectors)) if recipe.distinct is None else distinct(vectors, recipe.distinct)
    near_duplicates = len(vectors) - len(kept)
    chosen_from, vectors = [chosen_from[n] for n in kept], vectors[kept]

    recipe = changed_to(recipe, threshold=found.threshold)
    picks = pick(recipe, chosen_from, vectors)
    subset = Subset(recipe, picks, current_contents(catalog, sorted({pick.environment for pick in picks})), {})
    card = describe(catalog, subset)
    card |= measure(subset, {candidate.item.name: candidate.concept for candidate in chosen_from}, vectors)
    card["tasks"] |= {"of": sum(len(candidate.tasks) for candidate in chosen_from)}
    card |= {"left_out_tasks": left_out, "left_out_near_duplicates": near_duplicates}
    card |= {"difficulty": _difficulty(subset, chosen_from)}
    subset = changed_to(subset, card=card)
    catalog.set_subset(recipe.name, subset.to_json(), subset.card)
    return subset


def _difficulty(subset: Subset, chosen_from: Sequence[Candidate]) -> dict[str, int]:
    rates = {candidate.item.name: candidate.rates for candidate in chosen_from}
    return dict(Counter(band(rates[pick.environment].get(pick.task)) for pick in subset.picks))
