"""Which environments and tasks a run is about, and what exactly they were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from curation.subset import Subset, current_contents, frozen_environment
from pipeline.catalog import Catalog
from pipeline.errors import UserError
from pipeline.model import Environment
from train.replay import contents_of

IN_MEMORY = 256
"""Environments that are kept in memory once they were read: 0.3 MB each."""


@dataclass(frozen=True, slots=True)
class Task:
    """Task number `number` (from 0) of an environment."""

    environment: str
    number: int


class Worlds:
    """Environments by name, as they are now or as they were when a subset was made. Threads may share it."""

    def __init__(self, catalog: Catalog, subset: Subset | None = None) -> None:
        self._catalog = catalog
        self._subset = subset
        self.environment = lru_cache(IN_MEMORY)(self._environment)
        self.contents = lru_cache(None)(self._contents)

    def _environment(self, name: str) -> Environment:
        if self._subset is not None:
            return frozen_environment(self._catalog, self._subset, name)
        return self._catalog.environment(name)

    def _contents(self, name: str) -> Mapping[str, str]:
        """The digests of what an environment runs on, by "part/slot"."""
        if self._subset is not None:
            return contents_of(self._subset.contents[name])
        return contents_of(current_contents(self._catalog, [name])[name])


def subset_named(catalog: Catalog, name: str) -> Subset:
    """A subset of the catalog. Raises UserError where there is none of that name, or nothing in it."""
    subset = Subset.from_json(catalog.subset(name))
    if not subset.picks:
        raise UserError(f"The subset {name!r} is empty: make it again with conditions that some environments meet.")
    return subset


def tasks_of_subset(subset: Subset, split: str) -> list[Task]:
    """The tasks of a subset's split, in its order."""
    return [Task(name, pick.task) for name, picks in subset.pairs(split).items() for pick in picks]


def tasks_of(catalog: Catalog, names: Iterable[str], numbers: Iterable[int] | None) -> list[Task]:
    """The tasks of environments, or of all of them where no names are given; `numbers` None takes every task.

    Raises UserError for an unknown environment, or a task that it does not have.
    """
    wanted = None if numbers is None else list(numbers)
    found = []
    for name in [catalog.resolve(name) for name in names] or catalog.names():
        count = catalog.summary(name).tasks or 0
        for number in range(count) if wanted is None else wanted:
            if number >= count:
                has = f"tasks 0 to {count - 1}" if count else "no tasks"
                raise UserError(f"{name} has no task {number}; it has {has}.")
            found.append(Task(name, number))
    return found
