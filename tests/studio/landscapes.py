"""Small workspaces with a measurement to look at: two dozen environments of three kinds, one of them twice."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from curation.diversity import NGRAMS_ONLY
from curation.embeddings import Model
from curation.landscape import Landscape, keep_landscape, make_landscape
from curation.making import make_subset
from curation.maps import Layout
from curation.subset import Recipe
from curation.survey import survey
from pipeline.workspace import Workspace
from tests.curation.sets import BOOKS, FARMS, RIDES, fill

MOMENT = datetime(2026, 1, 2, 10, 20, 30, tzinfo=UTC)
THRESHOLD = 0.4
TOWNS = ("Ashby", "Beckton", "Carrick", "Denholm", "Elmstead", "Fairhaven", "Gresham", "Halden")
PLACES = (
    "the airport",
    "the station",
    "the office",
    "the harbour",
    "the school",
    "the market",
    "the hotel",
    "the park",
)
KINDS = (
    ("rides", RIDES, "Request a car to {}.", (-0.6, 0.5)),
    ("library", BOOKS, "Reserve a book about {}.", (0.6, 0.4)),
    ("farm", FARMS, "Plan maize on the field near {}.", (0.1, -0.6)),
)
"""Each kind: its domain, what it does, a task, and where it stands on the map."""


def rows() -> list[tuple[str, str, str, tuple[str, ...]]]:
    """Eight environments of each kind; the eighth farm says the same as the seventh."""
    found = []
    for domain, does, task, _ in KINDS:
        for number, (town, place) in enumerate(zip(TOWNS, PLACES, strict=True)):
            twin = domain == "farm" and number == len(TOWNS) - 1
            where, unlike = (PLACES[number - 1], TOWNS[number - 1]) if twin else (place, town)
            more = (
                f"It is run for {where}, with {number - twin} rules of its own about {unlike.lower()} and its people."
            )
            found.append((f"{domain.title()} {town}", domain, f"A service that {does}. {more}", (task.format(where),)))
    return found


def measured(folder: Path) -> Path:
    """A workspace that was measured, with hand-made places on the map."""
    with Workspace.open(folder, create=True) as workspace:
        fill(workspace, rows())
        measure(workspace)
        return workspace.path


def measure(workspace: Workspace) -> Landscape:
    """Measure a workspace by n-grams, and put each environment on a circle around its kind."""
    version = workspace.catalog.newest_version()
    found = survey(workspace, model=Model(NGRAMS_ONLY), threshold=THRESHOLD)
    landscape = make_landscape(workspace, found, where="", version=version, layout=Layout.pca)
    centres = {domain: centre for domain, _, _, centre in KINDS}
    points = []
    for number, item in enumerate(found.items):
        x, y = centres[item.groups["domain"]]
        turn = 2 * math.pi * number / len(TOWNS)
        points.append((x + 0.25 * math.cos(turn), y + 0.25 * math.sin(turn)))
    landscape = replace(landscape, points=np.array(points, dtype=np.float32), made_at=MOMENT)
    keep_landscape(workspace.path, landscape)
    return landscape


def with_subsets(folder: Path) -> Path:
    """The same with two subsets picked from it."""
    path = measured(folder)
    with Workspace.open(path) as workspace:
        usual = {"model": NGRAMS_ONLY, "threshold": THRESHOLD}
        make_subset(workspace, Recipe("mix-v1", budget=6, held_out=0.3, series=(2, 4), **usual))
        make_subset(workspace, Recipe("rides-only", where="domain:rides", **usual))
    return path
