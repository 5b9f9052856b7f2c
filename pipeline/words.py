"""Numbers and quotations in sentences."""

from __future__ import annotations


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
