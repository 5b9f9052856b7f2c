"""What the Concepts screen shows, read from the workspace: the last measurement, what has changed since, decisions.

Nothing is measured here. Importing this module is cheap; what it reads with (numpy, SciPy) is imported when it reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.places import named_place
from pipeline.words import number_of
from studio.widgets.concept_map import look
from studio.widgets.lines import Piece

if TYPE_CHECKING:
    from curation.landscape import Cut, Landscape
    from pipeline.records import StoredDecision
    from pipeline.workspace import Workspace

VIEWS = {
    "all": "scenario, tasks and tool names (the best judge)",
    "scenario": "scenario",
    "tasks": "tasks",
    "schema": "tables and columns",
    "tools": "tools",
}
"""What environments may be compared by, as it is said."""


LISTED = 40
"""How many members of a concept are named beside the map."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The last measurement (None: there is none), how many environments are new, gone or changed since, and decisions.

    `aside` are environments that were dropped or merged, and which of the two. `usual` is the threshold that judged
    pairs give now, or else that of the measurement, `judged` how many pairs were judged.
    """

    landscape: Landscape | None
    environments: int
    stale: int = 0
    usual: float = 0.5
    judged: int = 0
    aside: Mapping[str, str] | None = None
    decisions: Sequence[StoredDecision] = ()


def read(workspace: Workspace, known: Landscape | None = None) -> Reading:
    """Read what there is. `known` is what was read before: the file is read again only where it is a newer one.

    Raises UserError where a file of the workspace is damaged.
    """
    from curation.calibration import read_judgements
    from curation.diversity import agreed_threshold
    from curation.landscape import kept_at, kept_landscape, out_of_date

    summaries = workspace.catalog.summaries()
    at = kept_at(workspace.path)
    landscape = known if known is not None and at == known.kept_at else kept_landscape(workspace.path)
    if landscape is None:
        return Reading(None, len(summaries))
    found = landscape.survey
    agreed, calibration = agreed_threshold(workspace.path, found.items, found.tree, found.model)
    return Reading(
        landscape=landscape,
        environments=len(summaries),
        stale=len(out_of_date(workspace.catalog, landscape)),
        usual=agreed if calibration else found.threshold,
        judged=len(read_judgements(workspace.path)),
        aside={row.name: row.aside for row in summaries if row.aside},
        decisions=workspace.catalog.decisions(),
    )


@dataclass(frozen=True, slots=True)
class PairRow:
    """A pair of near-duplicates as it is listed, and what was decided about it."""

    a: str
    b: str
    similarity: float
    decision: StoredDecision | None = None

    @property
    def said(self) -> str:
        """The decision in words; empty where there is none."""
        if self.decision is None:
            return ""
        match self.decision.decision:
            case "keep":
                return "✓ both kept"
            case "merge":
                return f"= {self.decision.leaves} merged"
            case _:
                return f"× {self.decision.leaves} dropped"


def pairs(landscape: Landscape, decisions: Sequence[StoredDecision]) -> list[PairRow]:
    """The near-duplicates, most similar first."""
    names = landscape.names
    decided = {(found.a, found.b): found for found in decisions}
    rows = ((*sorted((names[pair.a], names[pair.b])), pair.similarity) for pair in landscape.duplicates)
    return [PairRow(a, b, similarity, decided.get((a, b))) for a, b, similarity in rows]


def headline(landscape: Landscape, found: Cut | None, undecided: int) -> str:
    """The figures of a set at a threshold in one line; those still being worked out are left out."""
    parts = [number_of(len(landscape.names), "environment")]
    if found is not None:
        vendi = f"Vendi {landscape.vendi:.1f}, {found.vendi:.1f} with one environment a concept"
        parts.append(f"{vendi} (view {landscape.survey.view})")
        parts.append(f"next is a new concept: {1 - found.coverage:.0%}")
    if landscape.duplicate_pairs:
        parts.append(f"{undecided:,} near-duplicate{'' if undecided == 1 else 's'} to decide")
    return " · ".join(parts)


def point_lines(landscape: Landscape, found: Cut, point: int, aside: str) -> list[list[Piece]]:
    """An environment on the map: its concept, how crowded it stands, who is nearest, who is of its concept."""
    from curation.diversity import NEAR_DUPLICATE

    names, concept = landscape.names, found.labels[point]
    members = found.members(concept)
    lines: list[list[Piece]] = [[(names[point], "strong")]]
    if aside:
        lines.append([(f"× {aside}: subsets leave it out (d shows near-duplicates)", "warn")])
    lines.append([(f"{look(concept)[0]} {found.names[concept]}", "accent"), (f" ({len(members)})", "muted")])
    if nearest := landscape.nearest[point].tolist():
        crowding = landscape.crowding()
        usual = sorted(crowding.tolist())[len(crowding) // 2]
        lines.append(
            [(f"{crowding[point]:.2f} alike to its {len(nearest)} nearest; the median is {usual:.2f}", "muted")]
        )
        lines += [[], [("Nearest", "strong")]]
    for other, similarity in zip(nearest, landscape.similarities[point].tolist(), strict=True):
        near = "  near-duplicate" if similarity >= NEAR_DUPLICATE else ""
        said = f"{look(found.labels[other])[0]} {names[other]}"
        lines.append([(f"{similarity:.2f} ", "number"), (said, ""), (near, "warn")])
    lines += [[], [(f"Of this concept: {number_of(len(members), 'environment')}", "strong")]]
    lines += [[(names[member], "" if member == point else "muted")] for member in members[:LISTED]]
    if len(members) > LISTED:
        lines.append([(f"… and {len(members) - LISTED:,} more", "muted")])
    return lines


def keep(workspace: Workspace, landscape: Landscape, found: Cut) -> int:
    """Give each environment its concept in the catalog; returns how many. Raises UserError where one is not there."""
    from curation.diversity import keep_concepts

    concepts = found.concept_of(landscape)
    keep_concepts(workspace.catalog, concepts)
    return len(concepts)


def save_map(file: str, landscape: Landscape, found: Cut) -> Path:
    """Write the map as a page or a picture, by the file's ending; returns where. Raises UserError where it cannot."""
    from curation.map_files import write_map

    path = named_place(file)
    environments = number_of(len(landscape.names), "environment")
    title = f"{environments}, {number_of(len(found.names), 'concept')} at {found.threshold:.2f}"
    write_map(path, landscape.points, landscape.names, found.labels, concepts=found.names, title=title)
    return path
