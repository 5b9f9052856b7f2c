"""A drawing of strokes, areas and words, written as SVG or as PNG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from io import BytesIO
from itertools import pairwise
from typing import Literal

INK, QUIET, PAPER, GRID = "#1D232B", "#5F6670", "#FFFFFF", "#E3E6EA"

FONT = "Inter, 'Helvetica Neue', Arial, sans-serif"

FINE = 2
"""A PNG has so many pixels a unit."""

Point = tuple[float, float]
Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line through points; `dash` are lengths drawn and left out in turn."""

    points: Sequence[Point]
    colour: str = INK
    width: float = 1.0
    dash: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Area:
    """A filled polygon; `strength` is how much it covers, from 0 to 1."""

    points: Sequence[Point]
    colour: str
    strength: float = 0.18


@dataclass(frozen=True, slots=True)
class Words:
    """Text whose baseline is at y."""

    x: float
    y: float
    text: str
    size: float = 12
    colour: str = INK
    anchor: Anchor = "start"
    bold: bool = False


Mark = Stroke | Area | Words


@dataclass
class Drawing:
    """Marks on white paper of so many units, the later above the earlier. `title` is read to those who cannot see."""

    width: float
    height: float
    title: str
    marks: list[Mark] = field(default_factory=list)


def as_svg(drawing: Drawing) -> str:
    """The drawing as a self-contained SVG document."""
    size = f'width="{drawing.width:g}" height="{drawing.height:g}" viewBox="0 0 {drawing.width:g} {drawing.height:g}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{FONT}">',
        f"<title>{escape(drawing.title)}</title>",
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
        *map(_element, drawing.marks),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def as_png(drawing: Drawing) -> bytes:
    """The drawing as a PNG with two pixels a unit. Needs Pillow."""
    from PIL import Image, ImageDraw, ImageFont

    size = (round(drawing.width * FINE), round(drawing.height * FINE))
    image = Image.new("RGB", size, PAPER)
    for mark in drawing.marks:
        if isinstance(mark, Area):
            cover = Image.new("L", size, 0)
            ImageDraw.Draw(cover).polygon(_scaled(mark.points), fill=round(255 * mark.strength))
            image.paste(Image.new("RGB", size, mark.colour), mask=cover)
        elif isinstance(mark, Stroke):
            pen = ImageDraw.Draw(image)
            for part in _dashes(mark):
                pen.line(_scaled(part), fill=mark.colour, width=round(mark.width * FINE), joint="curve")
        else:
            anchor = {"start": "ls", "middle": "ms", "end": "rs"}[mark.anchor]
            font = ImageFont.load_default(mark.size * FINE)
            ImageDraw.Draw(image).text((mark.x * FINE, mark.y * FINE), mark.text, mark.colour, font, anchor=anchor)
    encoded = BytesIO()
    image.save(encoded, "PNG", optimize=True)
    return encoded.getvalue()


def _element(mark: Mark) -> str:
    if isinstance(mark, Words):
        weight = ' font-weight="600"' if mark.bold else ""
        place = f'x="{mark.x:.1f}" y="{mark.y:.1f}" font-size="{mark.size:g}" text-anchor="{mark.anchor}"'
        return f'<text {place} fill="{mark.colour}"{weight}>{escape(mark.text)}</text>'
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in mark.points)
    if isinstance(mark, Area):
        return f'<polygon points="{points}" fill="{mark.colour}" fill-opacity="{mark.strength:g}"/>'
    dash = f' stroke-dasharray="{" ".join(f"{length:g}" for length in mark.dash)}"' if mark.dash else ""
    return (
        f'<polyline points="{points}" fill="none" stroke="{mark.colour}" stroke-width="{mark.width:g}" '
        f'stroke-linejoin="round"{dash}/>'
    )


def _scaled(points: Sequence[Point]) -> list[Point]:
    return [(x * FINE, y * FINE) for x, y in points]


def _dashes(stroke: Stroke) -> Iterator[list[Point]]:
    """The parts of a stroke that are drawn."""
    if not stroke.dash:
        yield list(stroke.points)
        return
    place, left = 0, stroke.dash[0]
    for (x0, y0), (x1, y1) in pairwise(stroke.points):
        length, done = math.hypot(x1 - x0, y1 - y0), 0.0
        while done < length:
            part = min(left, length - done)
            if place % 2 == 0:
                ends = ((done / length), (done + part) / length)
                yield [(x0 + (x1 - x0) * end, y0 + (y1 - y0) * end) for end in ends]
            done, left = done + part, left - part
            if left <= 0:
                place += 1
                left = stroke.dash[place % len(stroke.dash)]
