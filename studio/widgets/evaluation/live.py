"""What an evaluation does just now: the rollouts that go on, or what went through its proxy last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from studio.widgets.cells import duration, fit, one_line
from studio.widgets.lines import Piece
from train.harness.plan import CALLS
from train.json_lines import read_json_line
from train.proxy_log import read_last
from train.rollout_run import LIVE

Line = list[Piece]


def read_live(folder: Path) -> list[Line]:
    """What goes on in an evaluation, from its folder's files; reads at most a quarter of a megabyte."""
    try:
        document = read_json_line((folder / LIVE).read_bytes())
    except (OSError, ValueError):
        document = None
    if document is not None:
        return rollout_lines(document["live"])
    return [line for entry in read_last(folder / CALLS) for line in call_lines(entry)] or [
        [("Nothing goes on, and nothing was asked through a proxy.", "muted")]
    ]


def rollout_lines(live: Sequence[Mapping[str, Any]]) -> list[Line]:
    """The rollouts that go on, the longest first."""
    lines: list[Line] = [[(f"{len(live)} rollouts go on, the longest first", "strong")]]
    for row in live:
        turn, took = f" turn {row['turn']:>2}", f"  {duration(row['seconds']):>7}"
        lines.append([(fit(str(row["key"]), 32), ""), (turn, "muted"), (took, ""), (f"  {row['doing']}", "accent")])
    return lines


def call_lines(entry: Mapping[str, Any]) -> list[Line]:
    """One request of a harness: when, what it brought, what the model said and called, what that took."""
    at = datetime.fromtimestamp(entry["t"]).astimezone()
    usage = entry["usage"]
    took = f"{duration(entry['seconds'])}, {usage['prompt_tokens']} → {usage['completion_tokens']} tokens"
    asked = f"{entry['messages']} messages, {entry['tools']} tools"
    lines: list[Line] = [[(f"{at:%H:%M:%S} ", "muted"), (asked, "strong"), (f"  {took}", "muted")]]
    for message in entry["new"]:
        text = one_line(str(message.get("content") or ""))[:400]
        lines.append([(f"  {message.get('role')}  ", "muted"), (text, "")])
    for said in entry["said"]:
        lines.append([("  model  ", "accent"), (one_line(said)[:400], "")])
    for call in entry["calls"]:
        lines.append([("  → ", "accent"), (f"{call['name']}({call['arguments']})", "name")])
    if entry["error"]:
        lines.append([(f"  ✗ {one_line(entry['error'])}", "fail")])
    return lines
