"""Its reader of files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PROMPT_PATH = Path(__file__).parents[1] / "data"


def load_file(path: Any, sort_by_id: bool = False) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
    return sorted(rows, key=lambda row: row["id"]) if sort_by_id else rows
