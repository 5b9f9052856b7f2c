"""The environments of a workspace as a set: read, compared and measured, for the command line and the screens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from curation.calibration import Calibration
from curation.concepts import Tree, grow
from curation.diversity import (
    Comparison,
    Diversity,
    Item,
    agreed_threshold,
    compare,
    measure,
    read_elsewhere,
    read_items,
    represent,
    vector_cache,
)
from curation.embeddings import DEFAULT_MODEL, Model, Progress
from curation.filters import parse
from curation.views import View
from pipeline.errors import UserError
from pipeline.words import number_of

if TYPE_CHECKING:
    import numpy as np

    from pipeline.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Survey:
    """A set read and compared. `lacking` names environments without what the view needs."""

    view: View
    model: Model
    items: tuple[Item, ...]
    lacking: tuple[str, ...]
    vectors: np.ndarray
    tree: Tree
    threshold: float
    calibration: Calibration | None

    def measured(self, threshold: float | None = None) -> Diversity:
        """The measurement at a threshold (by default the survey's own). Raises UserError for an empty set."""
        return measure(self.items, self.vectors, self.threshold if threshold is None else threshold, tree=self.tree)


def survey(
    workspace: Workspace,
    view: View = View.all,
    model: Model = DEFAULT_MODEL,
    *,
    where: str = "",
    threshold: float | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Survey:
    """Read and compare the environments that a filter lets through.

    Without a `threshold` it is what judged pairs say, else the default. Raises UserError for a filter that cannot be
    read, a model that cannot be used, or more environments than can be compared.
    """
    keep = parse(where)
    there = workspace.catalog.summaries()
    names = [row.name for row in there if keep(row)]
    if there and not names:
        raise UserError(
            f"There is nothing to compare: none of {number_of(len(there), 'environment')} passes the filter {where!r}. "
            f"Checks: {_counted(row.check for row in there)}; audits: {_counted(row.audit for row in there)}."
        )
    items, lacking = read_items(workspace.catalog, view, names)
    with vector_cache(workspace.path) as cache:
        vectors = represent([item.text for item in items], model, cache=cache, threads=threads, progress=progress)
    tree = grow(vectors)
    agreed, calibration = agreed_threshold(workspace.path, items, tree, model)
    return Survey(
        view,
        model,
        tuple(items),
        tuple(lacking),
        vectors,
        tree,
        agreed if threshold is None else threshold,
        calibration,
    )


def _counted(verdicts: Iterable[str | None]) -> str:
    """How many have which verdict, in words."""
    counts = Counter(verdict or "not done" for verdict in verdicts)
    return ", ".join(f"{count:,} {verdict}" for verdict, count in counts.most_common())


def compare_with(
    workspace: Workspace, mine: Survey, other: Path, *, threads: int | None = None, progress: Progress | None = None
) -> Comparison:
    """Compare a survey's environments with those of another workspace or AWM folder, at the survey's threshold.

    Raises UserError where the other is neither, or has nothing to compare in the view.
    """
    others, _ = read_elsewhere(other, mine.view)
    texts = [item.text for item in (*mine.items, *others)]
    with vector_cache(workspace.path) as cache:
        vectors = represent(texts, mine.model, cache=cache, threads=threads, progress=progress)
    return compare(mine.items, others, vectors, mine.threshold)
