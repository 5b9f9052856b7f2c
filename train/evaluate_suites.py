"""The suites there are, each with what it is missing on this machine and in this workspace."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from curation.subset import TEST
from train.evaluate_heldout import SUITE
from train.harness.readiness import Domain, Readiness, readiness

if TYPE_CHECKING:
    from pipeline.workspace import Workspace

NO_SUBSET = "no subset of this workspace holds anything out"


def suites(workspace: Workspace) -> list[Readiness]:
    """The held-out suite, whose domains are the subsets that hold something out, and the harnesses."""
    held = [(stored.name, stored.card.get("tasks", {}).get(TEST, 0)) for stored in workspace.catalog.subsets()]
    domains = tuple(Domain(name, tasks) for name, tasks in held if tasks)
    own = Readiness(
        name=SUITE,
        title="Held-out",
        package="awm-studio",
        version=version("awm-studio"),
        state="ready" if domains else "incomplete",
        missing=() if domains else (NO_SUBSET,),
        how="" if domains else "awm-studio subset NAME --all --held-out 0.2",
        domains=domains,
    )
    return [own, *readiness()]
