"""Do more environments help? The same training on nested subsets, tried on the same held-out tasks."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from curation.cards import describe
from curation.subset import TEST, TRAIN, Subset
from pipeline.errors import UserError
from train.ablate import Answer, Table
from train.evaluate_export import shown_score
from train.worlds import subset_named

if TYPE_CHECKING:
    from pipeline.workspace import Workspace
    from train.ablate_training import Parts
    from train.config import TrainConfig

SIZES = (10, 100, 526, 1000)
"""Environments in the paper's nested subsets (arXiv 2602.10090, section 5)."""


@dataclass(frozen=True, slots=True)
class Point:
    """What a training on a nested subset came to; `report` is None, and `why` says why, where it was not made.

    `asked` is the size asked for, `environments` and `tasks` what the subset really has.
    """

    asked: int
    environments: int
    tasks: int
    report: dict[str, Any] | None = None
    why: str = ""


def ablate_scaling(
    parts: Parts, config: TrainConfig, subset: str, sizes: Sequence[int], *, tries: int, preset: str = ""
) -> tuple[Answer, str]:
    """Train on the first so many environments of a subset, for each size; returns the answer and a figure as SVG.

    Sizes beyond what the subset has are done once, with what there is. Raises UserError where a training failed.
    """
    catalog = parts.workspace.catalog
    whole = subset_named(catalog, subset)
    points: list[Point] = []
    for size in sorted(set(sizes)):
        inside = nested(whole, min(size, len(whole.environments(TRAIN))))
        environments, tasks = len(inside.environments(TRAIN)), sum(pick.split == TRAIN for pick in inside.picks)
        if points and environments == points[-1].environments:
            points.append(Point(size, environments, tasks, why="the subset has no more environments"))
            continue
        keep_nested(parts.workspace, inside)
        name = inside.recipe.name
        try:
            number = parts.trained(f"trained on {environments}", config, name, preset=preset)
        except UserError as error:
            points.append(Point(size, environments, tasks, why=str(error)))
            continue
        report = parts.evaluated(f"tried {environments}", number, name, tries=tries)
        points.append(Point(size, environments, tasks, report))
    return _answer(points, config, preset, tries), figure(points)


def nested(subset: Subset, size: int) -> Subset:
    """The subset with the first `size` training environments by rank, and the whole test split."""
    picks = tuple(pick for pick in subset.picks if pick.split == TEST or pick.rank < size)
    inside = {pick.environment for pick in picks}
    contents = {name: found for name, found in subset.contents.items() if name in inside}
    recipe = replace(subset.recipe, name=f"{subset.recipe.name}-first-{size}", series=())
    return Subset(recipe, picks, contents, {})


def keep_nested(workspace: Workspace, subset: Subset) -> None:
    """Keep a nested subset in the catalog. Raises UserError where another one has its name."""
    catalog, name = workspace.catalog, subset.recipe.name
    if name in {stored.name for stored in catalog.subsets()}:
        if Subset.from_json(catalog.subset(name)).digest != subset.digest:
            raise UserError(f"There is another subset {name!r}: remove it (awm-studio subset remove {name}) first.")
        return
    card = describe(catalog, subset)
    catalog.set_subset(name, replace(subset, card=card).to_json(), card)


def _answer(points: Sequence[Point], config: TrainConfig, preset: str, tries: int) -> Answer:
    tried = [point for point in points if point.report is not None]
    stopped = [point.report for point in tried if point.report and point.report["state"] != "done"]
    rows = [
        [
            point.asked,
            point.environments,
            point.tasks,
            shown_score(point.report) or None if point.report else None,
            point.report and point.report["tasks"],
            point.report and point.report["n"],
            point.why or None,
        ]
        for point in points
    ]
    columns = [
        "asked for",
        "environments",
        "training tasks",
        "score, 95 % interval",
        "held-out tasks",
        "tries",
        "not run",
    ]
    return Answer(
        question="Does training on more environments make a model better on held-out concepts?",
        n={"sizes": len(tried), "tries a task": tries},
        tables=[Table("Scores", columns, rows)],
        notes=[
            "Smaller subsets are part of larger ones, and all are tried on the same held-out tasks.",
            f"Every training is by {preset or 'the same settings'}: {config.grpo.steps} generations each, so larger "
            "subsets see each task less often. One training a size: what seeds would change is not in the intervals.",
        ],
        state="stopped" if stopped or not tried else "done",
        why=stopped[0]["why"] if stopped else "" if tried else points[0].why,
        data={"points": [{"asked": point.asked, "environments": point.environments, "why": point.why,
                          "evaluation": point.report and point.report.get("run")} for point in points]},
    )  # fmt: skip


WIDTH, HEIGHT, LEFT, BOTTOM = 640, 360, 60, 50


def figure(points: Sequence[Point]) -> str:
    """Scores against environments, on a logarithmic axis, with their intervals, as SVG."""
    measured = [point for point in points if point.report is not None and point.report["score"] is not None]
    logs = [math.log10(max(1, point.environments)) for point in measured]
    least, span = min(logs, default=0.0), max(max(logs, default=1.0) - min(logs, default=0.0), 1e-9)

    def across(log: float) -> float:
        return LEFT + 40 + (log - least) / span * (WIDTH - LEFT - 80) if len(measured) > 1 else (LEFT + WIDTH) / 2

    def up(score: float) -> float:
        return HEIGHT - BOTTOM - score * (HEIGHT - BOTTOM - 20)

    marks = [
        f'<line x1="{LEFT}" x2="{WIDTH}" y1="{up(s / 4):.0f}" y2="{up(s / 4):.0f}" stroke="#ccc"/>'
        f'<text x="{LEFT - 8}" y="{up(s / 4) + 4:.0f}" text-anchor="end">{s / 4:g}</text>'
        for s in range(5)
    ]
    for point, log in zip(measured, logs, strict=True):
        assert point.report is not None
        x, (low, high) = across(log), point.report["interval"]
        about = html.escape(f"{point.environments} environments: {shown_score(point.report)}")
        marks.append(
            f'<g><title>{about}</title><line x1="{x:.0f}" x2="{x:.0f}" y1="{up(low):.0f}" y2="{up(high):.0f}" '
            f'stroke="#4477aa" stroke-width="2"/><circle cx="{x:.0f}" cy="{up(point.report["score"]):.0f}" r="5" '
            f'fill="#4477aa"/><text x="{x:.0f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{point.environments}'
            "</text></g>"
        )
    marks.append(f'<text x="{WIDTH / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">training environments</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="13">{"".join(marks)}</svg>\n'
    )
