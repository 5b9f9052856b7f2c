"""The map of a set as a PNG, for papers and pages: points in their concepts' colours and shapes, and a legend."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from curation.maps import look
from pipeline.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    from PIL.ImageDraw import ImageDraw

WIDTH, HEIGHT = 1600, 1000
"""Pixels. The points have the left square, the legend the rest."""
MARGIN, POINT, LINE = 40, 7, 24
"""Pixels around the points, of a point's radius, and between lines of the legend."""
FINE = 2
"""Drawn so many times larger and then shrunk, which smooths edges."""
LONGEST = 56
"""Characters of a line of the legend."""
INK, PAPER, QUIET = "#1D232B", "#FFFFFF", "#5F6670"

Outline = Sequence[tuple[float, float]]


def write_picture(
    path: Path,
    points: np.ndarray,
    labels: Sequence[int],
    *,
    concepts: Sequence[str],
    title: str,
) -> None:
    """Write a map as a PNG. The legend names as many concepts as fit, the largest first, and counts the others.

    Raises UserError where the file cannot be written.
    """
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (WIDTH * FINE, HEIGHT * FINE), PAPER)
    draw = ImageDraw.Draw(image)
    large, usual = ImageFont.load_default(22 * FINE), ImageFont.load_default(15 * FINE)

    def write(x: float, y: float, text: str, *, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, ink: str) -> None:
        draw.text((x * FINE, y * FINE), text, fill=ink, font=font, anchor="lm")

    write(MARGIN, MARGIN - 8, title, font=large, ink=INK)
    room = HEIGHT - 2 * MARGIN
    for (x, y), label in zip(points.tolist(), labels, strict=True):
        at = MARGIN + (x + 1) / 2 * room, MARGIN + 16 + (1 - y) / 2 * (room - 16)
        _mark(draw, *at, label)

    sizes = Counter(labels)
    lines = (HEIGHT - 2 * MARGIN) // LINE
    shown = len(concepts) if len(concepts) <= lines else lines - 1
    for concept, words in enumerate(concepts[:shown]):
        y = MARGIN + 16 + LINE * (concept + 0.5)
        _mark(draw, HEIGHT + MARGIN, y, concept)
        write(HEIGHT + MARGIN + 20, y, f"{words[:LONGEST]} ({sizes[concept]})", font=usual, ink=INK)
    if rest := len(concepts) - shown:
        y = MARGIN + 16 + LINE * (shown + 0.5)
        write(HEIGHT + MARGIN + 20, y, f"and {rest:,} smaller ones", font=usual, ink=QUIET)

    encoded = BytesIO()
    image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS).save(encoded, "PNG", optimize=True)
    draft = path.with_name(f"{path.name}.new")
    try:
        draft.write_bytes(encoded.getvalue())
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise UserError(f"The map {path} cannot be written: {error.strerror}.") from None


def _mark(draw: ImageDraw, x: float, y: float, concept: int) -> None:
    colour, shape = look(concept)
    outline = [(FINE * (x + POINT * dx), FINE * (y + POINT * dy)) for dx, dy in OUTLINES[shape]()]
    draw.polygon(outline, fill=colour, outline=PAPER)


def _regular(corners: int, *, turn: float = -math.pi / 2, inner: float = 1.0) -> Outline:
    """A regular polygon's corners, the first at `turn`; `inner` brings every second one so much nearer the middle."""
    return [
        (
            (inner if number % 2 else 1) * math.cos(turn + 2 * math.pi * number / corners),
            (inner if number % 2 else 1) * math.sin(turn + 2 * math.pi * number / corners),
        )
        for number in range(corners)
    ]


def _cross(turn: float) -> Outline:
    arm = 0.34
    corners = [(arm, -1), (arm, -arm), (1, -arm), (1, arm), (arm, arm), (arm, 1)]
    corners += [(-x, -y) for x, y in corners]
    return [(x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)) for x, y in corners]


OUTLINES: dict[str, Callable[[], Outline]] = {
    "circle": lambda: _regular(24),
    "square": lambda: [(0.8 * x, 0.8 * y) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))],
    "diamond": lambda: _regular(4),
    "triangle-up": lambda: _regular(3),
    "x": lambda: _cross(math.pi / 4),
    "star": lambda: _regular(10, inner=0.45),
    "pentagon": lambda: _regular(5),
    "cross": lambda: _cross(0),
}
"""The outline of each of the page's marker shapes, within a circle of radius 1."""
