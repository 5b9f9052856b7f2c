"""What the text of a task names: values, numbers and dates, however they are written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from typing import Any

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
NUMBER_WORDS = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
)
SHORTEST = 2
"""Characters a text must have to count as named; a single letter is in every sentence."""

_MONTH = rf"(?P<month>{'|'.join(MONTHS)})[a-z]*\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_DATES = (
    re.compile(r"\b(?P<year>\d{4})[-/](?P<number>\d{1,2})[-/](?P<day>\d{1,2})(?!\d)"),
    re.compile(rf"\b{_MONTH}\s+{_DAY},?\s+(?P<year>\d{{4}})"),
    re.compile(rf"\b{_DAY}(?:\s+of)?\s+{_MONTH},?\s+(?P<year>\d{{4}})"),
)
_NUMBER = re.compile(r"(?<![\w.])(?<!\w-)[$€£]?(-?\d+(?:,\d{3})*(?:\.\d+)?)(?=$|[^\w]|[kKmMhd]\b|%)")
_QUOTES = str.maketrans("‘’“”–—−", "''\"\"---")

DATE_TIME = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)(?:(?P<sep>[ T])(?P<time>\d\d:\d\d(?::\d\d)?)(?P<fraction>\.\d+)?(?P<zone>Z|[+]00:?00)?)?"
)
"""A date or a moment as databases hold it."""


def plain(text: str) -> str:
    """A text as it is compared: lower case, straight quotes, single spaces, `_` and `-` as spaces."""
    return " ".join(re.sub(r"[_\-]", " ", text.translate(_QUOTES).casefold()).split())


class Mentions:
    """What a text names."""

    def __init__(self, text: str) -> None:
        self.text = f" {plain(text)} "
        self.dates = set(dates(text))
        self.numbers = set(numbers(text))

    def has(self, value: Any) -> bool:
        """Whether the text names a value of a row. NULL and binary values are never named."""
        if isinstance(value, bool) or value is None or isinstance(value, dict):
            return False
        if isinstance(value, (int, float)):
            return float(value) in self.numbers
        if found := DATE_TIME.fullmatch(value.strip()):
            return found["day"] in self.dates
        word = plain(value)
        if len(word) < SHORTEST:
            return False
        if re.fullmatch(r"-?\d+(\.\d+)?", value.strip()):
            return float(value) in self.numbers
        return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", self.text) is not None

    def any(self, values: Iterable[Any]) -> bool:
        """Whether it names one of them."""
        return any(map(self.has, values))


def dates(text: str) -> Iterable[str]:
    """The dates in a text, as YYYY-MM-DD: written so, or with the month as a word."""
    lowered = text.casefold()
    for pattern in _DATES:
        for found in pattern.finditer(lowered):
            groups = found.groupdict()
            month = int(groups["number"]) if groups.get("number") else MONTHS.index(groups["month"]) + 1
            try:
                yield date(int(groups["year"]), month, int(groups["day"])).isoformat()
            except ValueError:
                continue


def numbers(text: str) -> Iterable[float]:
    """The numbers in a text, in digits and in words up to twelve; not those of dates, nor of codes such as AB-12."""
    for pattern in _DATES:
        text = pattern.sub(" ", text.casefold())
    for found in _NUMBER.finditer(text):
        yield float(found.group(1).replace(",", ""))
    for word in re.findall(r"[a-z]+", text.casefold()):
        if word in NUMBER_WORDS:
            yield float(NUMBER_WORDS.index(word))
