"""JSON lines of whatever generated code and models come up with: huge numbers and lone surrogates included."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import orjson


def json_line(value: Any) -> bytes:
    """A value as one line of JSON, with its newline."""
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS)
    except TypeError:  # JSON, but not orjson's
        return json.dumps(value, default=str).encode() + b"\n"


def read_json_line(line: bytes) -> Any:
    """The value of a line. Raises ValueError where it is not JSON."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return json.loads(line)


def drop_cut_line(path: Path) -> None:
    """Shorten a file of lines to its last whole line, as what a killed process left needs it. Raises OSError."""
    if not path.exists():
        return
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            begin = max(0, end - 65_536)
            file.seek(begin)
            newline = file.read(end - begin).rfind(b"\n")
            if newline >= 0:
                file.truncate(begin + newline + 1)
                return
            end = begin
        file.truncate(0)
