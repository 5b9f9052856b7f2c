"""Everything in a workspace, as a subset: what is exported when nothing was picked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as changed_to
from typing import TYPE_CHECKING

from curation.cards import describe
from curation.subset import TRAIN, Method, Pick, Recipe, Subset, current_contents
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.catalog import Catalog


def everything(catalog: Catalog, names: Sequence[str] | None = None) -> Subset:
    """All environments, or those named, with all their tasks, as a subset that leaves nothing out. It is not kept.

    Raises UserError for an unknown name, and where there is nothing.
    """
    chosen = catalog.names() if names is None else sorted({catalog.resolve(name) for name in names})
    picks = tuple(
        Pick(summary.name, task, rank, TRAIN, summary.concept or "")
        for rank, summary in enumerate(map(catalog.summary, chosen))
        for task in range(summary.tasks or 0)
    )
    if not picks:
        raise UserError("There is nothing to export: no environment has tasks.")
    subset = Subset(Recipe("environments", method=Method.all), picks, current_contents(catalog, chosen), {})
    return changed_to(subset, card=describe(catalog, subset))
