"""A workspace whose subset holds tasks of a pantry out, for tests of evaluations."""

from __future__ import annotations

from pathlib import Path

from curation.cards import describe
from curation.subset import TEST, TRAIN, Pick, Recipe, Subset, current_contents
from pipeline.catalog import Catalog
from pipeline.llm.profiles import Profile
from tests.llm_server import Server
from tests.train.pantry import fill, pantry

SUBSET = "mix"
NAMES = tuple(f"pantry{number}" for number in range(2))


def workspace_with_held_out(folder: Path, names: tuple[str, ...] = NAMES) -> Path:
    """Environments whose tasks 0 and 1 are held out; the concept alternates."""
    fill(folder, pantry("larder"), *map(pantry, names))
    with Catalog.open(folder / "catalog.db") as catalog:
        picks = tuple(
            Pick(name, task, rank, TEST, f"concept {rank % 2}") for rank, name in enumerate(names) for task in (0, 1)
        )
        picks += (Pick("larder", 0, 0, TRAIN, "larders"),)
        contents = current_contents(catalog, {pick.environment for pick in picks})
        subset = Subset(Recipe(SUBSET), picks, contents, {})
        catalog.set_subset(SUBSET, subset.to_json(), describe(catalog, subset))
    return folder


def profile(server: Server, **fields: object) -> Profile:
    return Profile.model_validate({"model": "agent", "base_url": server.url, "api_key_env": "", "retries": 0, **fields})
