"""Numbers in sentences."""

from __future__ import annotations


def number_of(number: int, noun: str) -> str:
    """ "1 task", "2,000 tasks"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
