"""What a training has said: its events but for the steps, then the last lines that its process wrote."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from studio.widgets.lines import Piece
from studio.widgets.source import plain

TAIL = 16_000
"""Bytes of the process's words that are shown."""

FREQUENT = frozenset({"step", "warmup"})
"""Kinds of events that curves show better."""


def story(events: Iterable[Mapping[str, Any]], words: str) -> list[list[Piece]]:
    """The lines of the log."""
    lines = [_line(event) for event in events if event["kind"] not in FREQUENT]
    if words:
        lines += [[], [("What its process wrote", "strong")], *plain(words)]
    return lines or [[("Nothing has been said yet.", "muted")]]


def last_words(log: Path) -> str:
    """The end of a process's log; empty where there is none, as of a training that a terminal waits for."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _line(event: Mapping[str, Any]) -> list[Piece]:
    told = {key: value for key, value in event.items() if key not in ("t", "kind") and value not in ("", None)}
    said = "  ".join(f"{key} {value if isinstance(value, str) else json.dumps(value)}" for key, value in told.items())
    at = datetime.fromtimestamp(event["t"], UTC).astimezone()
    tone = "fail" if event.get("state") == "failed" else "name"
    return [(f"{at:%m-%d %H:%M:%S} ", "muted"), (f"{event['kind']:<11}", tone), (said, "")]
