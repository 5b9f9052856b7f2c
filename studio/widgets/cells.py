"""Text that fits a number of terminal cells, whatever it contains.

Everything shown in a line widget comes through here: names and rows were written by models and strangers, and a raw
control character would reach the terminal as a command.
"""

from __future__ import annotations

import json
import re
from typing import Any

from rich.cells import cell_len, set_cell_size

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_SHOWN = {"\n": "⏎", "\t": " ", "\r": ""}


def one_line(text: str) -> str:
    """The text on one line: line ends become ⏎, other control and direction characters become �."""
    if text.isascii() and text.isprintable():
        return text
    return _CONTROL.sub(lambda match: _SHOWN.get(match[0], "\ufffd"), text)


def cut(text: str, width: int) -> str:
    """The text in at most `width` cells, ending in … where something was left out."""
    if len(text) <= width and text.isascii():
        return text
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 0 else ""


def fit(text: str, width: int, *, right: bool = False) -> str:
    """The text in exactly `width` cells, cut or padded."""
    text = cut(one_line(text), width)
    room = " " * (width - (len(text) if text.isascii() else cell_len(text)))
    return room + text if right else text + room


def shown(value: Any, *, longest: int = 2_000) -> str:
    """A database value or JSON value as a person reads it. NULL is `∅`, blobs are named by their size."""
    if value is None:
        return "∅"
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, (dict, list)):
        value = json.dumps(value, ensure_ascii=False)
    return str(value)[:longest]


def count(number: int | None) -> str:
    """A count in a few cells: 950, 2.4k, 1.3M; unknown is `·`."""
    if number is None:
        return "·"
    if number < 1_000:
        return str(number)
    if number < 999_950:
        return f"{number / 1_000:.1f}k" if number < 99_950 else f"{number / 1_000:.0f}k"
    return f"{number / 1_000_000:.1f}M"


def duration(seconds: float) -> str:
    """A time span in a few cells: 840 ms, 41 s, 3m02, 1h48."""
    if seconds < 1:
        return f"{seconds * 1_000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02}"
    return f"{minutes // 60}h{minutes % 60:02}"
