"""Small figures as SVG: shares with their intervals, and stacked counts. Plain markup, readable without colour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 720
LABEL = 210
"""Pixels for the words at the left."""
ROW = 24
COLOURS: Mapping[str, str] = {
    "trusted": "#009e73",
    "unproven": "#999999",
    "strict": "#0072b2",
    "loose": "#e69f00",
    "broken": "#d55e00",
}
"""Colours that the colour-blind tell apart (M. Okabe and K. Ito, Color Universal Design, 2008)."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of `tried` with its interval."""

    label: str
    failed: int
    tried: int
    low: float
    high: float


def shares(rows: Sequence[Share], *, axis: str) -> str:
    """Each share as a dot on a line from the lower to the upper end of its interval."""
    plot = WIDTH - LABEL - 90
    height = ROW * len(rows) + 40

    def x(share: float) -> float:
        return round(LABEL + share * plot, 1)

    parts = [
        f'<line class="grid" x1="{x(tick)}" y1="6" x2="{x(tick)}" y2="{height - 34}"/>'
        f'<text class="tick" x="{x(tick)}" y="{height - 20}">{tick:.0%}</text>'
        for tick in (0, 0.25, 0.5, 0.75, 1)
    ]
    for number, row in enumerate(rows):
        y = 18 + number * ROW
        share = row.failed / row.tried
        tip = f"{row.failed} of {row.tried} ({share:.1%}; 95 % interval {row.low:.1%} to {row.high:.1%})"
        parts.append(
            f"<g><title>{escape(row.label)}: {tip}</title>"
            f'<text class="label" x="{LABEL - 10}" y="{y + 4}">{escape(row.label)}</text>'
            f'<line class="range" x1="{x(row.low)}" y1="{y}" x2="{x(row.high)}" y2="{y}"/>'
            f'<circle cx="{x(share)}" cy="{y}" r="4.5"/>'
            f'<text class="count" x="{WIDTH - 84}" y="{y + 4}">{row.failed} / {row.tried}</text></g>'
        )
    parts.append(f'<text class="tick" x="{x(0.5)}" y="{height - 4}">{escape(axis)}</text>')
    return _svg(height, axis, parts)


def stacked(rows: Mapping[str, Mapping[str, int]], *, title: str) -> str:
    """Each row's counts side by side, as shares of the row; words and numbers stand in the pieces that have room."""
    plot = WIDTH - LABEL - 70
    parts = []
    for number, (label, counts) in enumerate(rows.items()):
        y, x, total = 8 + number * (ROW + 6), float(LABEL), sum(counts.values())
        parts.append(f'<text class="label" x="{LABEL - 10}" y="{y + 16}">{escape(label)}</text>')
        for word, count in counts.items():
            if not count:
                continue
            width = plot * count / total
            said = f"{word} {count}"
            parts.append(
                f"<g><title>{escape(label)}: {escape(said)} of {total}</title>"
                f'<rect x="{x:.1f}" y="{y}" width="{max(width - 1, 1):.1f}" height="{ROW}" '
                f'fill="{COLOURS.get(word, "#777777")}"/>'
            )
            if width > 8 * len(said):
                parts.append(f'<text class="piece" x="{x + width / 2:.1f}" y="{y + 16}">{escape(said)}</text>')
            parts.append("</g>")
            x += width
        parts.append(f'<text class="count" x="{WIDTH - 64}" y="{y + 16}">{total}</text>')
    return _svg(16 + len(rows) * (ROW + 6), title, parts)


def _svg(height: int, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
        f'aria-label="{escape(title, quote=True)}" xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )
