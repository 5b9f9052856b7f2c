"""A subset: which (environment, task) pairs, how they were picked, and exactly what they were.

A subset is made from a recipe, so that it can be made again. It remembers the digest of every part, so that exports
give what was picked even after somebody has edited it. Its card says what is in it. `curation.picking` makes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from curation.extras import BUNDLED
from curation.views import View
from pipeline.errors import UserError
from pipeline.model import Environment, Part, content_hash
from pipeline.parts import dumps, read_view

if TYPE_CHECKING:
    from pipeline.catalog import Catalog

TRAIN, TEST = "train", "test"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


class Method(StrEnum):
    """How a subset is picked."""

    facility = "facility"
    centre = "centre"
    stratified = "stratified"
    random = "random"
    all = "all"


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a subset is made: the same recipe over the same contents makes the same subset.

    `budget` counts environments, the test split included; None takes all there are. `tasks_each` limits the tasks of
    an environment. `cover` is the view that similarity is judged in, `model` and `threshold` those of the concepts
    (a threshold of None is the one that the workspace has agreed on, which takes its place once the subset is made).
    Of environments as similar as `distinct` only the first by name may be picked (None: all may).
    `held_out` is the share of environments whose concepts are kept for the test split. `series` are sizes of nested
    training subsets.
    """

    name: str
    budget: int | None = None
    where: str = ""
    method: Method = Method.facility
    cover: View = View.all
    model: str = BUNDLED
    threshold: float | None = None
    tasks_each: int | None = None
    distinct: float | None = None
    held_out: float = 0.0
    series: tuple[int, ...] = ()
    seed: int = 0


def require_name(name: str) -> None:
    """Raise UserError unless a name can stand in commands, file names and configurations as it is."""
    if _NAME.fullmatch(name) is None:
        raise UserError(
            f"{name[:80]!r} cannot name a subset: use 1 to 80 letters, digits, dots, hyphens and underscores, "
            "beginning with a letter or digit."
        )


@dataclass(frozen=True, slots=True)
class Pick:
    """One (environment, task) pair and the name of its concept.

    `rank` counts environments within the split: the nested series of size n is rank < n.
    """

    environment: str
    task: int
    rank: int
    split: str
    concept: str


@dataclass(frozen=True, slots=True)
class Subset:
    """Pairs, the recipe they were made by, the digests of what they were made from, and the card.

    `contents` gives, for each environment, the sha256 of each part by "part/slot".
    """

    recipe: Recipe
    picks: tuple[Pick, ...]
    contents: Mapping[str, Mapping[str, str]]
    card: Mapping[str, Any]

    def environments(self, split: str | None = None) -> list[str]:
        """The environments of a split (or of both) in the order they were picked."""
        return list(self.pairs(split))

    def pairs(self, split: str | None = None) -> dict[str, list[Pick]]:
        """The pairs of a split (or of both) by environment, in the order they were picked."""
        found: dict[str, list[Pick]] = {}
        for pick in self.picks:
            if split in (None, pick.split):
                found.setdefault(pick.environment, []).append(pick)
        return found

    @property
    def digest(self) -> str:
        """The sha256 of recipe, pairs and contents: equal digests are equal subsets."""
        return content_hash(dumps([asdict(self.recipe), [asdict(pick) for pick in self.picks], self.contents]))

    def to_json(self) -> dict[str, Any]:
        """The subset as the JSON document that the catalog keeps and exports carry."""
        return {
            "recipe": asdict(self.recipe),
            "picks": [asdict(pick) for pick in self.picks],
            "contents": self.contents,
            "card": self.card,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Subset:
        """Read what `to_json` made."""
        recipe = value["recipe"]
        kinds = {
            "method": Method(recipe["method"]),
            "cover": View(recipe["cover"]),
            "series": tuple(recipe["series"]),
        }
        picks = tuple(Pick(**pick) for pick in value["picks"])
        return cls(Recipe(**recipe | kinds), picks, value["contents"], value["card"])


def current_contents(catalog: Catalog, names: Iterable[str]) -> dict[str, dict[str, str]]:
    """The digests of environments' current parts, as a subset keeps them."""
    return {
        name: {f"{version.part}/{version.slot}": version.sha for version in catalog.current(name)} for name in names
    }


def frozen_contents(catalog: Catalog, subset: Subset, name: str) -> dict[tuple[Part, str], str]:
    """An environment's part contents as they were when the subset was made, whatever has changed since."""
    keys = ((key.partition("/"), sha) for key, sha in subset.contents[name].items())
    return {(Part(part), slot): catalog.content(sha) for (part, _, slot), sha in keys}


def frozen_environment(catalog: Catalog, subset: Subset, name: str) -> Environment:
    """An environment with the contents that it had when the subset was made."""
    about = catalog.summary(name)
    return Environment(
        name=name,
        title=about.title,
        origin=about.origin,
        domain=about.domain,
        now=about.now,
        **read_view(frozen_contents(catalog, subset, name)),
    )


def changed(catalog: Catalog, subset: Subset) -> list[str]:
    """The environments whose contents are not any more what they were when the subset was made."""
    current = current_contents(catalog, subset.contents)
    return [name for name, contents in subset.contents.items() if contents != current[name]]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two subsets side by side: how many only the first has, both have, and only the second has.

    `test_in_training` are environments that one tests and the other trains on.
    """

    environments: tuple[int, int, int]
    pairs: tuple[int, int, int]
    concepts: tuple[int, int, int]
    test_in_training: tuple[str, ...]


def overlap(one: Subset, other: Subset) -> Overlap:
    """Compare two subsets."""

    def parts(mine: set[Any], theirs: set[Any]) -> tuple[int, int, int]:
        return len(mine - theirs), len(mine & theirs), len(theirs - mine)

    def crossing(testing: Subset, training: Subset) -> set[str]:
        return {*testing.environments(TEST)} & {*training.environments(TRAIN)}

    return Overlap(
        environments=parts({*one.environments()}, {*other.environments()}),
        pairs=parts({(p.environment, p.task) for p in one.picks}, {(p.environment, p.task) for p in other.picks}),
        concepts=parts({p.concept for p in one.picks}, {p.concept for p in other.picks}),
        test_in_training=tuple(sorted(crossing(one, other) | crossing(other, one))),
    )
