"""What a benchmark's harness has written down of one task: what was said and called, and how it was judged."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from train.harness.result_files import read_json, read_lines

ROOT = "harness"
"""The folder in a run's folder that a harness works in."""

LONGEST = 64 * 1024 * 1024
"""Bytes of a file that is looked through: result files of whole benchmarks have tens of megabytes."""


def harness_records(folder: Path, item: str) -> list[tuple[str, dict[str, Any]]]:
    """The records of a task by its id in a report, each with its file's name below the harness's folder.

    Results come before judgements. Raises Damaged (a UserError) where a file cannot be relied on.
    """
    domain, _, name = item.rpartition("/")
    root = folder / ROOT
    found = []
    for path in sorted(root.rglob("*.json*"), key=lambda path: (path.relative_to(root).parts[0] == "score", path)):
        place = str(path.relative_to(root))
        if place.split("/", 1)[0] not in ("result", "results", "score") or path.stat().st_size > LONGEST:
            continue
        if domain and path.stem != domain:
            continue
        found += [(place, row) for row in _rows(path) if name in _names(row)]
    return found


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file: JSON lines, or the simulations in a document of τ²-bench."""
    with path.open("rb") as file:
        is_document = file.read(2).strip() == b"{"  # lines begin with a whole object
    if not is_document:
        yield from read_lines(path, finished=True)
        return
    document = read_json(path)
    yield from (row for row in document.get("simulations", ()) if isinstance(row, dict))


def _names(row: Mapping[str, Any]) -> set[str]:
    """What a row calls its task."""
    task = row.get("task")
    return {str(row.get("id")), str(row.get("task_id")), Path(task).stem if isinstance(task, str) else ""}


def messages_of(record: Mapping[str, Any]) -> list[tuple[str, str]] | None:
    """The conversation in a record as (who, text); None where there is none."""
    messages = record.get("messages")
    if not isinstance(messages, list):
        return None
    told = []
    for message in messages:
        if isinstance(message, dict):
            calls = message.get("tool_calls") or ()
            lines = [str(message.get("content") or ""), *(_call(call) for call in calls if isinstance(call, dict))]
            told.append((str(message.get("role")), "\n".join(filter(None, lines))))
    return told


def _call(call: Mapping[str, Any]) -> str:
    function = call.get("function") if isinstance(call.get("function"), dict) else call
    assert isinstance(function, Mapping)
    arguments = function.get("arguments")
    return f"→ {function.get('name')}({arguments if isinstance(arguments, str) else json.dumps(arguments)})"
