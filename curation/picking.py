"""Picking: which environments and tasks may be picked, and which are, by a recipe."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from curation.diversity import Item
from curation.duplicates import set_aside
from curation.review import Decision, counting
from curation.selection import hold_out, interleave, order
from curation.subset import TEST, TRAIN, Pick, Recipe
from pipeline.errors import UserError
from pipeline.model import Part

if TYPE_CHECKING:
    import numpy as np

    from pipeline.catalog import Catalog

BANDS = (1 / 3, 2 / 3)
"""Solve rates up to the first are hard, above the second easy, between them medium."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An environment that may be picked: as it is compared, its concept's name, and the tasks to train on."""

    item: Item
    concept: str
    tasks: tuple[int, ...]
    rates: Mapping[int, float] = field(default_factory=dict)

    @property
    def rate(self) -> float | None:
        """The mean solve rate of its tasks, where any is known."""
        known = [self.rates[task] for task in self.tasks if task in self.rates]
        return sum(known) / len(known) if known else None


def candidates(
    catalog: Catalog, items: Sequence[Item], concepts: Sequence[str], rates: Mapping[tuple[str, int], float]
) -> tuple[list[Candidate], dict[str, int]]:
    """The environments with tasks that can be trained on, and how many tasks were left out, by why.

    A task needs a verifier, and no error that a check of the current contents found may block it, unless a person
    waived it; environments that were dropped, or merged into another of these, are left out. `rates` are solve rates
    by environment and task, where known.
    """
    found: list[Candidate] = []
    left_out: Counter[str] = Counter()
    aside = set_aside(catalog.decisions(), [item.name for item in items])
    for item, concept in zip(items, concepts, strict=True):
        if item.name in aside or catalog.summary(item.name).review == Decision.drop:
            left_out["dropped or merged"] += catalog.summary(item.name).tasks or 0
            continue
        tasks, unverified, blocked = trainable(catalog, item.name)
        left_out["no verifier"] += unverified
        left_out["blocked by a fault"] += blocked
        if tasks:
            known = {task: rates[item.name, task] for task in tasks if (item.name, task) in rates}
            found.append(Candidate(item, concept, tasks, known))
    return found, dict(+left_out)


def trainable(catalog: Catalog, name: str) -> tuple[tuple[int, ...], int, int]:
    """The tasks of an environment that can be trained on; how many have no verifier, and how many a fault may block."""
    verified = {int(v.slot.partition("/")[0]) for v in catalog.current(name) if v.part is Part.verifier}
    there, blocked = set(range(catalog.summary(name).tasks or 0)), _blocked(catalog, name)
    return tuple(sorted(there & verified - blocked)), len(there - verified), len(there & verified & blocked)


def _blocked(catalog: Catalog, name: str) -> set[int]:
    if catalog.summary(name).check == "stale":
        return set()
    return {task for finding in counting(catalog, name) if finding.severity == "error" for task in finding.tasks}


def pick(recipe: Recipe, chosen_from: Sequence[Candidate], vectors: np.ndarray) -> tuple[Pick, ...]:
    """Pick pairs by a recipe; `vectors` are the candidates' in the view to cover.

    A budget above what there is takes what there is. Raises UserError where nothing can be picked or held out.
    """
    if not chosen_from:
        raise UserError("No environment with a task to train on is left to pick from: loosen --where, or see check.")
    labels = [candidate.concept for candidate in chosen_from]
    budget = min(recipe.budget or len(chosen_from), len(chosen_from))
    held = hold_out(labels, recipe.held_out, recipe.seed)
    if recipe.held_out and (not held or budget < 2):
        raise UserError("Holding concepts out needs two concepts and a budget of at least two environments.")
    aside = sum(label in held for label in labels)
    testing = min(aside, max(1, round(budget * recipe.held_out)), budget - 1)  # something is left to train on
    rated = any(candidate.rates for candidate in chosen_from)
    draw = random.Random(recipe.seed)  # noqa: S311 (a reproducible draw)
    picks: list[Pick] = []
    for split, size in ((TRAIN, budget - testing), (TEST, testing)):
        members = [n for n, label in enumerate(labels) if (label in held) == (split == TEST)]
        reach = len(members) if rated else size  # balancing difficulty needs the whole order
        found = order(recipe.method, vectors[members], [labels[n] for n in members], reach, recipe.seed)
        ranked = interleave([members[n] for n in found], lambda n: band(chosen_from[n].rate))
        for rank, n in enumerate(ranked[:size]):
            tasks = choose_tasks(chosen_from[n], recipe.tasks_each, draw)
            picks += [Pick(chosen_from[n].item.name, task, rank, split, labels[n]) for task in tasks]
    return tuple(picks)


def band(rate: float | None) -> str:
    """The difficulty of a solve rate: "hard", "medium", "easy", or "unknown"."""
    if rate is None:
        return "unknown"
    return "hard" if rate <= BANDS[0] else "medium" if rate <= BANDS[1] else "easy"


def choose_tasks(candidate: Candidate, limit: int | None, draw: random.Random) -> list[int]:
    """The tasks to take of an environment: all, or `limit` of them, balanced over the bands of difficulty.

    Tasks that are always or never solved teach nothing and are taken last.
    """
    if limit is None or limit >= len(candidate.tasks):
        return list(candidate.tasks)
    shuffled = draw.sample(candidate.tasks, len(candidate.tasks))
    telling = [task for task in shuffled if candidate.rates.get(task) not in (0, 1)]
    silent = [task for task in shuffled if candidate.rates.get(task) in (0, 1)]
    balanced = interleave(telling, lambda task: band(candidate.rates.get(task)))
    return sorted([*balanced, *silent][:limit])


def read_rates(path: Path) -> dict[tuple[str, int], float]:
    """Solve rates by environment and task, from JSON lines like {"environment": "shop", "task": 3, "rate": 0.4}.

    Raises UserError where the file cannot be read, naming the line that is something else.
    """
    rates: dict[tuple[str, int], float] = {}
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"The solve rates {path} cannot be read: {error}.") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            name, task, rate = str(row["environment"]), row["task"], float(row["rate"])
            if not isinstance(task, int):
                raise TypeError(f"{task!r} is no task's number")
        except (ValueError, KeyError, TypeError, RecursionError):
            example = '{"environment": "shop", "task": 3, "rate": 0.4}'
            raise UserError(f"{path}:{number} is not a solve rate like {example}.") from None
        if not 0 <= rate <= 1:
            raise UserError(f"{path}:{number} has the rate {rate}; a rate is between 0 and 1.")
        rates[name, task] = rate
    return rates
