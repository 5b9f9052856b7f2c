"""Curves of trainings as a figure for papers and pages: small charts side by side, as SVG and, with Pillow, as PNG."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import UserError
from pipeline.snapshots import replace_file
from train.curves import CHARTS, Chart, Curves, Points, bounds
from train.drawing import GRID, INK, QUIET, Area, Drawing, Mark, Stroke, Words, as_png, as_svg

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Colours that colour-blind readers can tell apart (Okabe and Ito 2008)."""
DASHES = ((), (6, 3), (2, 2), (8, 3, 2, 3), (1, 3), (4, 2, 1, 2))
"""Lines differ by their dashes too."""

ACROSS, WIDTH, HEIGHT = 3, 330, 210
"""Charts side by side, and units each of them takes."""
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 44, 30
"""Units around the plot of a chart."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A line of a chart: its name, its points, which look it has, and the band around it (low and high, by step)."""

    name: str
    points: Points
    look: int
    band: Sequence[tuple[float, float, float]] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart of a figure."""

    title: str
    lines: Sequence[Drawn]
    is_share: bool = False
    x_title: str = "step"


def save_figure(path: Path, runs: Sequence[tuple[str, Curves]]) -> list[Path]:
    """Write the curves of trainings, each under its name; returns the files: an SVG, and a PNG where Pillow is there.

    Raises UserError where there is nothing to draw, or the folder cannot be written.
    """
    panels = [panel for chart in CHARTS if (panel := _panel(chart, runs)).lines]
    if not panels:
        raise UserError("There is nothing to draw yet: no step has been done.")
    return save(path, figure(panels, ", ".join(name for name, _ in runs)))


def save(path: Path, drawing: Drawing) -> list[Path]:
    """Write a drawing as SVG, and as PNG beside it where Pillow is there. Raises UserError where that cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, as_svg(drawing).encode())
        if importlib.util.find_spec("PIL") is None:
            return [path]
        picture = path.with_suffix(".png")
        replace_file(picture, as_png(drawing))
    except OSError as error:
        raise UserError(f"The figure {path} cannot be written: {error.strerror}.") from error
    return [path, picture]


def figure(panels: Sequence[Panel], title: str, *, across: int = ACROSS) -> Drawing:
    """Panels side by side, in rows."""
    across = min(across, len(panels))
    rows = math.ceil(len(panels) / across)
    drawing = Drawing(across * WIDTH, rows * HEIGHT, title)
    for number, panel in enumerate(panels):
        drawing.marks += _marks(panel, number % across * WIDTH, number // across * HEIGHT)
    return drawing


def _panel(chart: Chart, runs: Sequence[tuple[str, Curves]]) -> Panel:
    """A chart's curves of one run, or its first curve of several."""
    if len(runs) == 1:
        lines = [Drawn(name, points, look) for look, (name, points) in enumerate(runs[0][1].of(chart).items())]
    else:
        first = [(name, next(iter(curves.of(chart).values()), None)) for name, curves in runs]
        lines = [Drawn(name, points, look) for look, (name, points) in enumerate(first) if points]
    return Panel(chart.title, lines, chart.is_share)


def _marks(panel: Panel, x: float, y: float) -> Iterator[Mark]:
    """A chart with its upper left corner at a place."""
    edges = [*(line.points for line in panel.lines)]
    edges += [[point for step, low, high in line.band for point in ((step, low), (step, high))] for line in panel.lines]
    left, right, low, high = bounds(edges, is_share=panel.is_share)
    width, height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def at(step: float, value: float) -> tuple[float, float]:
        up = min(1.0, max(0.0, (value - low) / (high - low)))
        return x + LEFT + (step - left) / (right - left) * width, y + TOP + (1 - up) * height

    yield Words(x + LEFT, y + 16, panel.title, size=13, bold=True)
    yield from _legend(panel.lines, x + LEFT, y + 32)
    for value in ticks(low, high):
        yield Stroke([at(left, value), at(right, value)], GRID)
        yield Words(x + LEFT - 6, at(left, value)[1] + 3.5, f"{value:g}", size=10, colour=QUIET, anchor="end")
    for step in ticks(left, right):
        yield Words(at(step, low)[0], y + HEIGHT - BOTTOM + 14, f"{step:g}", size=10, colour=QUIET, anchor="middle")
    yield Words(x + WIDTH - RIGHT, y + HEIGHT - 5, panel.x_title, size=10, colour=QUIET, anchor="end")
    yield Stroke([at(left, high), at(left, low), at(right, low)], QUIET)
    for line in panel.lines:
        if line.band:
            above = [at(step, top) for step, _, top in line.band]
            below = [at(step, bottom) for step, bottom, _ in line.band]
            yield Area([*above, *reversed(below)], _colour(line))
    for line in panel.lines:
        points = [at(*point) for point in line.points]
        if len(points) == 1:  # a point alone is a short dash
            points = [(points[0][0] - 2, points[0][1]), (points[0][0] + 2, points[0][1])]
        yield Stroke(points, _colour(line), 1.8, DASHES[line.look % len(DASHES)])


def _legend(lines: Iterable[Drawn], x: float, y: float) -> Iterator[Mark]:
    for line in lines:
        yield Stroke([(x, y - 3.5), (x + 18, y - 3.5)], _colour(line), 1.8, DASHES[line.look % len(DASHES)])
        yield Words(x + 22, y, line.name, size=10.5, colour=INK)
        x += 22 + 5.8 * len(line.name) + 12


def _colour(line: Drawn) -> str:
    return COLOURS[line.look % len(COLOURS)]


def ticks(low: float, high: float) -> list[float]:
    """About five round numbers between two, for an axis."""
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first = math.ceil(low / step - 1e-9)
    return [round(number * step, 10) for number in range(first, math.floor(high / step + 1e-9) + 1)]
