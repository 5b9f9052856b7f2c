"""Line charts in braille: eight dots a cell, axes with numbers, a legend that tells lines apart by their dashes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from studio.widgets.cells import cut
from studio.widgets.lines import Piece

Points = Sequence[tuple[float, float]]

DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""The bits of a braille cell's dots, by column and row."""

DASHES = ((1, 0), (3, 3), (1, 2), (6, 2))
"""Dots that are drawn and left out in turn, for each line of a chart: they differ without a colour too."""
SAMPLES = ("──", "╌╌", "┈┈", "─╌")
"""The same as a legend shows them."""
TONES = ("accent", "warn", "ok", "fail")

AXIS = 6
"""Cells for the numbers beside a chart."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart; `look` chooses dashes and tone."""

    name: str
    points: Points
    look: int

    @property
    def tone(self) -> str:
        """Its colour's meaning."""
        return TONES[self.look % len(TONES)]


@dataclass(frozen=True, slots=True)
class Axes:
    """The part of the plane that a chart shows."""

    left: float
    right: float
    low: float
    high: float


def draw(lines: Sequence[Line], axes: Axes, width: int, height: int) -> list[list[Piece]]:
    """A chart of so many cells: `height` - 1 rows of dots beside the numbers of the axis, and a row of steps."""
    across, down = max(1, width - AXIS - 1), max(1, height - 1)
    masks = [[0] * across for _ in range(down)]
    tones = [[""] * across for _ in range(down)]
    for line in lines:
        for x, y in _dots(line, axes, 2 * across, 4 * down):
            masks[y // 4][x // 2] |= DOTS[x % 2][y % 4]
            tones[y // 4][x // 2] = line.tone
    numbers = {0: number(axes.high), down - 1: number(axes.low)}
    if down >= 5:
        numbers[down // 2] = number(axes.high - (axes.high - axes.low) * (down // 2 + 0.5) / down)
    rows = []
    for y in range(down):
        tick = "┤" if y in numbers else "│"
        rows.append([(f"{numbers.get(y, ''):>{AXIS}}{tick}", "muted"), *_runs(masks[y], tones[y])])
    return [*rows, [(_steps(axes, across), "muted")]]


def legend(lines: Sequence[Line], room: int) -> list[Piece]:
    """The lines' names with their dashes and last values, as many as fit."""
    pieces: list[Piece] = []
    for line in lines:
        text = f"{SAMPLES[line.look % len(SAMPLES)]} {line.name} {number(line.points[-1][1])}  "
        if len(text) > room:
            pieces.append((cut(text, room), line.tone))
            break
        pieces.append((text, line.tone))
        room -= len(text)
    return pieces


def number(value: float) -> str:
    """A number in at most six characters."""
    size = abs(value)
    if size >= 100_000:
        return f"{value:.0e}".replace("e+0", "e").replace("e+", "e")
    if size >= 1_000:
        return f"{value / 1_000:.1f}k"
    if size >= 100 or value == 0:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.01 else f"{value:.0e}".replace("e-0", "e-")


def _dots(line: Line, axes: Axes, width: int, height: int) -> Iterator[tuple[int, int]]:
    """The dots of a line, from the left; what leaves the axes lies on their edge."""
    drawn, left_out = DASHES[line.look % len(DASHES)]
    placed = [_place(point, axes, width, height) for point in line.points]
    if len(placed) == 1:
        yield placed[0]
    count = 0
    for (x0, y0), (x1, y1) in pairwise(placed):
        steps = max(abs(x1 - x0), abs(y1 - y0), 1)
        for step in range(steps + 1):
            if count % (drawn + left_out) < drawn:
                yield x0 + round((x1 - x0) * step / steps), y0 + round((y1 - y0) * step / steps)
            count += step < steps


def _place(point: tuple[float, float], axes: Axes, width: int, height: int) -> tuple[int, int]:
    along = (point[0] - axes.left) / (axes.right - axes.left)
    up = (point[1] - axes.low) / (axes.high - axes.low)
    return _within(along, width), height - 1 - _within(up, height)


def _within(share: float, size: int) -> int:
    return max(0, min(size - 1, round(share * (size - 1))))


def _runs(masks: Sequence[int], tones: Sequence[str]) -> Iterator[Piece]:
    """A row's cells, neighbours of one tone together."""
    text, tone = "", ""
    for mask, other in zip(masks, tones, strict=True):
        if other != tone:
            yield text, tone
            text, tone = "", other
        text += chr(0x2800 + mask) if mask else " "
    yield text, tone


def _steps(axes: Axes, across: int) -> str:
    first, last = f"{axes.left:g}", f"{axes.right:g}"
    return f"{' ' * AXIS}└{first}{last:>{max(0, across - len(first))}}"
