"""Numbers and quotations in sentences."""

from __future__ import annotations


def number_of(number: int, noun: str) -> str:
    """ "1 task", "2,000 tasks"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def cut(text: str, length: int) -> str:
    """The text, or its beginning with " …" where it is longer than that many characters."""
    return text if len(text) <= length else text[:length].rstrip() + " …"
