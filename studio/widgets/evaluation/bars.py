"""A report as lines: scores as bars with their intervals, what they rest on, and what it took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curation.estimates import Interval
from pipeline.words import number_of
from studio.widgets.cells import fit
from studio.widgets.lines import Piece
from train.evaluate_export import facts

BAR = 18
"""Cells of a bar."""

LABEL = 18
"""Cells of what a bar is of."""

Line = list[Piece]


def bar(score: float | None, interval: list[float] | None) -> list[Piece]:
    """A score between 0 and 1 as a bar of BAR cells: full up to the interval, shaded inside it, a mark at the score."""
    if score is None or interval is None:
        return [("·" * BAR, "muted")]
    low, high = (min(BAR, round(end * BAR)) for end in interval)
    at = min(BAR - 1, int(score * BAR))
    cells = ["█" if cell < low else "▒" if cell < high else "·" for cell in range(BAR)]
    return [("".join(cells[:at]), "accent"), ("┃", "strong"), ("".join(cells[at + 1 :]), "accent")]


def in_words(score: float | None, interval: list[float] | None) -> str:
    """A score with its interval; what was not judged has none."""
    if score is None or interval is None:
        return "no score"
    return f"{score:.3f} ({interval[0]:.3f}–{interval[1]:.3f})"


def result_lines(document: Mapping[str, Any]) -> list[Line]:
    """Everything a report says, for reading."""
    lines: list[Line] = [
        [("█ up to the interval  ▒ 95 % interval  ┃ score", "muted")],
        _scored("all tasks", document, number_of(document["tasks"], "task")),
        [(fit("tries judged", LABEL), "muted"), (f" {document['n']} of {document['total']}", "")],
    ]
    for row in document["pass"][1:]:
        for name, sign in (("at", "pass@"), ("hat", "pass^")):
            told = {"score": row[name], "interval": row[f"{name}_interval"]}
            lines.append(_scored(f"{sign}{row['k']}", told, number_of(row["tasks"], "task")))
    for label, groups in document["by"].items():
        lines += [[], [(f"By {label}", "strong")]]
        lines += [_scored(group["value"], group, _rests_on(group)) for group in groups]
    lines += [[], [("How it was tried", "strong")]]
    lines += [[(fit(name, LABEL + 6), "muted"), (f" {text}", "")] for name, text in facts(document)]
    return lines


def _rests_on(group: Mapping[str, Any]) -> str:
    tries = "" if group["n"] == group["tasks"] else f", n={group['n']}"
    return number_of(group["tasks"], "task") + tries


def so_far_lines(progress: Mapping[str, Any], score: Interval | None) -> list[Line]:
    """How a running evaluation stands: what is done, and the pass rate of what was judged."""
    done, total = progress["done"], progress["total"]
    filled = round(BAR * done / total) if total else 0
    told = {"score": score and score.estimate, "interval": score and [score.low, score.high]}
    return [
        [(fit("done", LABEL) + " ", ""), ("█" * filled + "·" * (BAR - filled), "accent"), (f" {done} of {total}", "")],
        _scored("passed so far", told, f"n={progress['judged']}"),
        [(fit("left out", LABEL), "muted"), (f" {progress['excluded']}", "warn" if progress["excluded"] else "muted")],
    ]


def _scored(label: str, told: Mapping[str, Any], of: str) -> Line:
    words = in_words(told["score"], told["interval"])
    return [
        (fit(label, LABEL) + " ", ""),
        *bar(told["score"], told["interval"]),
        (f" {words}", ""),
        (f"  {of}", "muted"),
    ]
