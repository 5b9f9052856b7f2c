"""Answers that are wrong: those that say nothing, and those that nearly say what is right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from curation.audit.subject import Tables
from curation.audit.wording import Mentions

SAYING_NOTHING: Mapping[str, str | None] = {
    "no answer": None,
    "an empty answer": "",
    "a refusing answer": "I'm sorry, but I can't help with that.",
    "a boilerplate answer": "Done. I have completed the task as requested.",
}
"""Answers that fit any task, and so answer none."""

SHORTEST_NAME = 3
"""Characters of a database value that is looked for in an answer; shorter ones turn up in words by chance."""

MANY = 11
"""Numbers that an answer offers which hopes that one of them is right."""

OTHERS = 3
"""Values that are put in the place of a right one. They count as one wrong answer: a task may have several right ones,
but hardly these."""

REFUSAL = re.compile(
    r"\b(?:changed nothing|nothing (?:was|has been|can be)|cannot|can't|could not|couldn't|unable|impossible|"
    r"not (?:possible|allowed|done)|was not|were not|refused?|rejected|declined|denied|forbidden)\b",
    re.IGNORECASE,
)
"""How an answer says that something was not done. What it explains that with need not be exact."""

_NUMBER = re.compile(r"(?<![\w.,-])(\d+(?:,\d{3})*)(\.\d+)?(?![\w-]|[.,]\d)")
_DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_YES_OR_NO = re.compile(r"\b(yes|no)\b", re.IGNORECASE)


@dataclass(frozen=True)
class WrongAnswer:
    """An answer that is wrong, and how; those of one `unit` count as one, accepted only where all of them are."""

    says: str
    text: str
    unit: str = ""


def wrong_answers(answer: str, task: Mentions, final: Tables) -> Iterator[WrongAnswer]:
    """Answers that differ from a right one in what they say: a number, a day, a name, yes or no.

    There are none for an answer that refuses: it is right because it refuses, in whatever words.
    """
    if REFUSAL.search(answer):
        return
    yield from _other_numbers(answer, task)
    yield from _other_days(answer, task)
    yield from _other_names(answer, task, final)
    if turned := _YES_OR_NO.search(answer):
        other = "No" if turned.group().lower() == "yes" else "Yes"
        if len(_YES_OR_NO.findall(answer)) == 1:
            yield WrongAnswer("it says the opposite", _YES_OR_NO.sub(other, answer))


def _other_numbers(answer: str, task: Mentions) -> Iterator[WrongAnswer]:
    """All numbers that the task does not give are other ones: whichever of them matters is then wrong."""
    for how, change in _OTHER_NUMBERS.items():
        changed: list[str] = []

        def other(found: re.Match[str], change: Callable[[str], str] = change, changed: list[str] = changed) -> str:
            whole, rest = found[1].replace(",", ""), found[2] or ""
            if float(f"{whole}{rest}") in task.numbers:
                return found[0]
            changed.append(found[0])
            return f"{change(whole)}{rest}"

        text = _between_days(answer, lambda part, other=other: _NUMBER.sub(other, part))
        if changed:
            yield WrongAnswer(f"{', '.join(changed)} {how}", text)


_OTHER_NUMBERS: Mapping[str, Callable[[str], str]] = {
    "is one more": lambda whole: str(int(whole) + 1),
    "has a digit more": lambda whole: f"1{whole}",
    "is one of many": lambda whole: ", ".join(str(int(whole) + step) for step in range(MANY)),
}


def _between_days(answer: str, change: Callable[[str], str]) -> str:
    """The text with what is not part of a date changed."""
    parts = re.split(f"({_DAY.pattern})", answer)
    return "".join(part if place % 2 else change(part) for place, part in enumerate(parts))


def _other_days(answer: str, task: Mentions) -> Iterator[WrongAnswer]:
    changed: list[str] = []

    def next_day(found: re.Match[str]) -> str:
        try:
            day = (date.fromisoformat(found[0]) + timedelta(days=1)).isoformat()
        except (ValueError, OverflowError):
            return found[0]
        if found[0] in task.dates:
            return found[0]
        changed.append(found[0])
        return day

    text = _DAY.sub(next_day, answer)
    if changed:
        yield WrongAnswer(f"{', '.join(changed)} is a day later", text)


def _other_names(answer: str, task: Mentions, final: Tables) -> Iterator[WrongAnswer]:
    """A name is another one of the same kind; of several, one is missing."""
    said = Mentions(answer)
    for table in final.values():
        for column in sorted(table.tells_apart):
            values = [value for value in table.values(column) if len(value) >= SHORTEST_NAME]
            there = [value for value in values if value in answer and said.has(value) and not task.has(value)]
            others = [value for value in values if not said.has(value) and not task.has(value)]
            if not there:
                continue
            for other in others[:OTHERS]:
                yield WrongAnswer(f"{there[0]} is {other}", answer.replace(there[0], other), unit=there[0])
            if others:
                yield WrongAnswer("every name there is", ", ".join(values))
            if len(there) > 1:
                left = re.sub(rf"\s*(,|\band\b)?\s*{re.escape(there[-1])}", "", answer, count=1)
                yield WrongAnswer(f"{there[-1]} is left out", left)
            return
