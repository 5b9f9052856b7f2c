"""Numbers and quotations in sentences, and numbers that a person wrote."""

from __future__ import annotations

LONGEST = 18
"""Digits of a whole number that is sure to fit into 64 bits, as databases and JSON need it."""


def whole_number(text: str) -> int | None:
    """The number that a text of at most `LONGEST` decimal digits is; None for any other text, such as "²"."""
    return int(text) if text.isdecimal() and len(text) <= LONGEST else None


def number_of(number: int, noun: str) -> str:
    """ "1 task", "2,000 tasks"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


_MORE = " …"


def cut(text: str, length: int) -> str:
    """The text, or its beginning with " …" where it is longer than that many characters."""
    return text if len(text) <= length else text[:length].rstrip() + _MORE


def uncut(shown: str) -> str:
    """The part of a text that `cut` has left, to find the text by."""
    return shown.removesuffix(_MORE)
