"""Attempts at a stage in words: how it stands, and what the checks of an attempt found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.engine.board import Row, State
from studio.stage_record import Try
from studio.widgets.board import attempt, money, stage_state
from studio.widgets.cells import count, duration
from studio.widgets.lines import Piece

SIGNS: Mapping[str, Piece] = {"error": ("✗ ", "fail"), "warn": ("! ", "warn"), "info": ("i ", "muted")}
"""How grave a finding is, as it is shown."""


def standing(row: Row, stage: str, *, allowed: int) -> list[Piece]:
    """One line: the stage's state, the attempt, what it took so far."""
    cell = row.cells[stage]
    number = attempt(cell)
    tried = f"  try {number}/{allowed}" if cell.state is not State.done and number else f"  try {number}" * bool(number)
    spent = f"  {count(cell.tokens)} tok  ${money(cell.usd)}  {duration(cell.seconds)}" if cell.tokens else ""
    return [stage_state(row, stage), (tried, ""), (spent, "muted")]


def brief(row: Row, stage: str, *, allowed: int) -> list[list[Piece]]:
    """A stage in short: how it stands and why, a person's hint, what is wrong with the last attempts."""
    cell = row.cells[stage]
    lines: list[list[Piece]] = [
        [(f"{row.number:04} {row.title}", "strong"), (f"  {row.category}", "muted")],
        [(f"{stage}  ", "accent"), *standing(row, stage, allowed=allowed)],
    ]
    if stage == "scenario":
        lines.append([(row.description, "")])
    if cell.why:
        lines.append([(cell.why, "warn")])
    if cell.asked:
        lines.append([("a person said  ", "muted"), (cell.asked, "")])
    if cell.findings:
        lines += [[], [("The last attempts", "muted")], *findings(cell.findings)]
    return lines


def tried_lines(each: Try | None, *, none: str) -> list[list[Piece]]:
    """An attempt with what its checks found."""
    if each is None:
        return [[(none, "muted")]]
    lines: list[list[Piece]] = [[(f"{each.step}, try {each.tried.number}  ", "strong"), right(each)], []]
    return lines + (findings(each.tried.findings) or [[("Its checks found nothing.", "ok")]])


def right(each: Try) -> Piece:
    """Whether an attempt was right."""
    return ("✓ right", "ok") if each.tried.right else ("✗ sent back", "fail")


def findings(documents: Iterable[Mapping[str, Any]]) -> list[list[Piece]]:
    """Findings as they are kept in events: where, what, what was seen, what to do."""
    lines: list[list[Piece]] = []
    for finding in documents:
        lines.append([SIGNS[finding["severity"]], (f"{finding['where']}: ", "name"), (finding["message"], "")])
        lines += [[("  seen ", "muted"), (line, "")] for line in finding.get("evidence", "").splitlines()[:6]]
        if finding.get("remedy"):
            lines.append([("  do   ", "muted"), (finding["remedy"], "")])
    return lines
