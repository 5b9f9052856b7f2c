"""Run folders in the layout of AWM's agent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.model import Call


def write_run(
    folder: Path,
    initial: bytes,
    final: bytes,
    *,
    name: str = "Desk",
    task: int = 0,
    answer: str = "Done.",
    calls: Sequence[Call] = (),
    verify: Mapping[str, Any] | None = None,
    mode: str = "code",
    ours: Mapping[str, Any] | None = None,
) -> Path:
    """Write one run folder; `verify` is what judged it, by default that it is complete."""
    folder.mkdir(parents=True)
    steps = [
        {
            "iteration": number,
            "tool_calls": [
                {
                    "id": f"call_{number}",
                    "name": "call_tool",
                    "arguments": {"tool_name": f"mcp_tool_{call.tool}", "arguments": json.dumps(call.arguments)},
                }
            ],
        }
        for number, call in enumerate(calls)
    ]
    document: dict[str, Any] = {
        "scenario": name,
        "task_id": task,
        "trajectory": steps,
        "messages": [{"role": "user", "content": "Do it."}, {"role": "assistant", "content": answer}],
    }
    if ours is not None:
        document["awm_studio"] = ours
    (folder / "trajectory.json").write_text(json.dumps(document))
    (folder / "initial.db").write_bytes(initial)
    (folder / "final.db").write_bytes(final)
    if verify is None:
        verify = {"reward_type": "complete"}
    if verify:
        (folder / f"verify.{mode}.json").write_text(json.dumps(verify))
    return folder
