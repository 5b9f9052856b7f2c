"""A survey with its map, kept in the workspace: what the Concepts screen shows without measuring anything again.

`awm-studio diversity --keep` makes it. It holds everything that takes long (vectors, tree, coordinates, neighbours),
so that any threshold can be looked at in milliseconds; `cut` does that.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from curation.calibration import Calibration
from curation.concepts import Pair, Tree, concept_names, medoids, near_duplicates, neighbours
from curation.diversity import NEAR_DUPLICATE, Item, vector_cache
from curation.embeddings import Model
from curation.estimates import abundances, coverage, hill, vendi
from curation.filters import parse
from curation.maps import Layout, coordinates
from curation.survey import Survey
from curation.views import PARTS, View
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.catalog import Catalog
    from pipeline.workspace import Workspace

NEIGHBOURS = 5
"""How many of the nearest others say how crowded a place is."""
FORM = 1
"""Raised when the file's form changes; a file of another form counts as none."""


@dataclass(frozen=True, slots=True)
class Landscape:
    """A survey, its points between −1 and 1, and what does not depend on a threshold.

    `nearest` and `similarities` have a row of `NEIGHBOURS` others an item. `version` is the newest in the catalog when
    it was made, `where` the filter it was made with, `kept_at` tells the file that it was read from.
    """

    survey: Survey
    points: np.ndarray
    nearest: np.ndarray
    similarities: np.ndarray
    duplicates: tuple[Pair, ...]
    duplicate_pairs: int
    vendi: float
    where: str
    version: int
    made_at: datetime
    kept_at: int = 0

    @property
    def names(self) -> list[str]:
        """The environments, by position."""
        return [item.name for item in self.survey.items]

    def crowding(self) -> np.ndarray:
        """Each item's mean similarity to its nearest others: low where it stands alone."""
        if not self.similarities.size:
            return np.zeros(len(self.points), dtype=np.float32)
        return self.similarities.mean(axis=1)


@dataclass(frozen=True, slots=True)
class Cut:
    """A landscape at one threshold.

    `effective` is the Hill number of order 1 of the concepts' sizes. `vendi` is the Vendi score of one environment a
    concept, the one most like the others (`centres`): how different the concepts are.
    """

    threshold: float
    labels: tuple[int, ...]
    names: tuple[str, ...]
    centres: tuple[int, ...]
    effective: float
    coverage: float
    vendi: float

    def concept_of(self, landscape: Landscape) -> dict[str, str]:
        """The name of each environment's concept."""
        return {name: self.names[label] for name, label in zip(landscape.names, self.labels, strict=True)}

    def members(self, concept: int) -> list[int]:
        """The positions of a concept's environments."""
        return [number for number, label in enumerate(self.labels) if label == concept]


def cut(landscape: Landscape, threshold: float) -> Cut:
    """What a landscape comes to at a threshold."""
    found = landscape.survey
    labels = found.tree.cut(threshold)
    counts = abundances(labels.tolist())
    centres = medoids(found.vectors, labels)
    return Cut(
        threshold=threshold,
        labels=tuple(labels.tolist()),
        names=tuple(concept_names([item.text for item in found.items], labels.tolist())),
        centres=tuple(centres.tolist()),
        effective=hill(counts, 1),
        coverage=coverage(counts),
        vendi=vendi(found.vectors[centres]),
    )


def make_landscape(workspace: Workspace, found: Survey, *, where: str, version: int, layout: Layout) -> Landscape:
    """Lay a survey out. `version` is the newest one in the catalog before it was read.

    Raises UserError where there is nothing to lay out, or the layout cannot be made.
    """
    if not found.items:
        raise UserError("There is nothing to compare: no environment has what this view needs.")
    with vector_cache(workspace.path) as cache:
        points = coordinates(found.vectors, layout, cache)
    nearest, similarities = neighbours(found.vectors, NEIGHBOURS)
    pairs, duplicates = near_duplicates(found.vectors, NEAR_DUPLICATE)
    return Landscape(
        survey=found,
        points=points,
        nearest=nearest,
        similarities=similarities,
        duplicates=tuple(duplicates),
        duplicate_pairs=pairs,
        vendi=vendi(found.vectors),
        where=where,
        version=version,
        made_at=datetime.now(UTC),
    )


def out_of_date(catalog: Catalog, landscape: Landscape) -> set[str]:
    """The environments that are new, gone or changed in what is compared since a landscape was made."""
    keep = parse(landscape.where)
    there = {row.name for row in catalog.summaries() if keep(row)}
    before = {*landscape.names, *landscape.survey.lacking}
    return (catalog.changed_since(landscape.version, PARTS) & there) | (there ^ before)


def keep_landscape(workspace: Path, landscape: Landscape) -> None:
    """Keep a landscape in a workspace folder, in place of the one before. Raises UserError where it cannot be kept."""
    found = landscape.survey
    about = {
        "form": FORM,
        "view": found.view,
        "model": found.model.name,
        "items": [asdict(item) for item in found.items],
        "lacking": found.lacking,
        "threshold": found.threshold,
        "calibration": asdict(found.calibration) if found.calibration else None,
        "duplicate_pairs": landscape.duplicate_pairs,
        "vendi": landscape.vendi,
        "where": landscape.where,
        "version": landscape.version,
        "made_at": landscape.made_at.isoformat(),
    }
    arrays = {
        "about": np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
        "vectors": found.vectors,
        "merges": found.tree.merges,
        "points": landscape.points,
        "nearest": landscape.nearest,
        "similarities": landscape.similarities,
        "pairs": np.array([[pair.a, pair.b] for pair in landscape.duplicates], dtype=np.int64).reshape(-1, 2),
        "alike": np.array([pair.similarity for pair in landscape.duplicates]),
    }
    path = _path(workspace)
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(exist_ok=True)
        with draft.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise UserError(f"The measurement cannot be kept in {workspace}: {error.strerror}.") from None


def kept_at(workspace: Path) -> int:
    """The time of the file in a workspace folder, in nanoseconds; 0 where there is none."""
    try:
        return _path(workspace).stat().st_mtime_ns
    except OSError:
        return 0


def kept_landscape(workspace: Path) -> Landscape | None:
    """The landscape kept in a workspace folder; None where there is none, or none that this version can read."""
    at = kept_at(workspace)
    try:
        with np.load(_path(workspace), allow_pickle=False) as arrays:
            about = json.loads(arrays["about"].tobytes())
            if about["form"] != FORM:
                return None
            return replace(_read(about, {key: arrays[key] for key in arrays.files}), kept_at=at)
    except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile):
        return None


def _path(workspace: Path) -> Path:
    return workspace / "cache" / "landscape.npz"


def _read(about: dict[str, Any], arrays: dict[str, np.ndarray]) -> Landscape:
    survey = Survey(
        view=View(about["view"]),
        model=Model(about["model"]),
        items=tuple(Item(**item) for item in about["items"]),
        lacking=tuple(about["lacking"]),
        vectors=arrays["vectors"],
        tree=Tree(len(about["items"]), arrays["merges"]),
        threshold=about["threshold"],
        calibration=Calibration(**about["calibration"]) if about["calibration"] else None,
    )
    pairs = zip(arrays["pairs"].tolist(), arrays["alike"].tolist(), strict=True)
    return Landscape(
        survey=survey,
        points=arrays["points"],
        nearest=arrays["nearest"],
        similarities=arrays["similarities"],
        duplicates=tuple(Pair(a, b, alike) for (a, b), alike in pairs),
        duplicate_pairs=about["duplicate_pairs"],
        vendi=about["vendi"],
        where=about["where"],
        version=about["version"],
        made_at=datetime.fromisoformat(about["made_at"]),
    )
