"""States and answers that mean the same as a known solution: a verifier must not tell them apart.

Ids are names that the database gives, so other ids mean the same; so do rows made in another order, dates in another
spelling, and an answer in other letters. Only ids that a task or its answer speaks of stay what they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from curation.audit.subject import Change, Tables
from curation.audit.wording import DATE_TIME, Mentions
from pipeline.runtime.edits import Edit

STEP = 1000
"""How much is added to ids, or more where a table has more rows."""

USERS = ("users", "user", "accounts")
"""Tables whose row 1 is the signed-in user, by the convention of AWM: that id is known, not handed out."""

Numbers = Mapping[str, Mapping[int, int]]
"""New numbers of rows by their old ones, by table."""


@dataclass(frozen=True)
class Same:
    """A state that means the same: `kind` (see `kinds`), what it `says` in words, and the edits of either database."""

    kind: str
    says: str
    initial: tuple[Edit, ...]
    final: tuple[Edit, ...]


def same_states(initial: Tables, final: Tables, changes: Sequence[Change], mentions: Mentions) -> Iterator[Same]:
    """Everything that a known solution's states can be changed into without changing what they mean."""
    made = new_numbers(final, changes, mentions)
    if any(made.values()):
        yield Same("ids", f"new rows have other ids ({_example(made)})", (), renumbered(final, made))
    turned = turned_round(final, changes, mentions)
    if any(turned.values()):
        yield Same("order", f"new rows were made in another order ({_example(turned)})", (), renumbered(final, turned))
    numbers = other_numbers(initial, final, mentions)
    if any(numbers.values()):
        says = f"every id is another one, consistently ({_example(numbers)})"
        yield Same("rekey", says, renumbered(initial, numbers), renumbered(final, numbers))
    for form in DATE_FORMS:
        if edits := respelled(changes, form):
            shown = next(iter((edits[0].values or {}).values()))
            yield Same("dates", f"dates are written {form}: {shown!r}", (), edits)


def other_numbers(initial: Tables, final: Tables, mentions: Mentions) -> Numbers:
    """Another number for every row, except those that the task or its answer speaks of."""
    found = {}
    for name, table in final.items():
        known = set(table.numbers) | set(initial[name].numbers if name in initial else ())
        step = _step(known)
        kept = {1} if name.lower() in USERS else set()
        found[name] = {
            number: number + step for number in sorted(known) if number not in kept and number not in mentions.numbers
        }
    return found


def new_numbers(final: Tables, changes: Sequence[Change], mentions: Mentions) -> Numbers:
    """Another number for every row that the solution makes."""
    return {
        name: {number: number + _step(final[name].numbers) for number in made if number not in mentions.numbers}
        for name, made in _made(changes).items()
    }


def turned_round(final: Tables, changes: Sequence[Change], mentions: Mentions) -> Numbers:
    """The numbers of the rows that the solution makes, dealt out from the other end."""
    found = {}
    for name, made in _made(changes).items():
        numbers = [number for number in made if number not in mentions.numbers]
        pairs = zip(numbers, reversed(numbers), strict=True)
        found[name] = {old: new for old, new in pairs if old != new}
    return found


def renumbered(tables: Tables, numbers: Numbers) -> tuple[Edit, ...]:
    """The edits that give rows new numbers, wherever they are written: as keys and as references.

    All go by way of numbers that nobody has, so that swapping two does not collide.
    """
    away, back = [], []
    for table in tables.values():
        for row in table.rows:
            moved: dict[str, tuple[int, int]] = {}
            for column in table.columns:
                owner = table.references.get(column) or (table.name if column == table.number_key else None)
                new = numbers.get(owner, {}).get(row[column]) if owner and isinstance(row[column], int) else None
                if new is not None:
                    moved[column] = (-new - 1, new)
            if not moved:
                continue
            aside = {column: numbers[0] for column, numbers in moved.items()}
            away.append(Edit(table.name, table.key_of(row), aside))
            back.append(
                Edit(table.name, table.key_of({**row, **aside}), {column: pair[1] for column, pair in moved.items()})
            )
    return (*away, *back)


def _step(numbers: Any) -> int:
    step = STEP
    while step <= max(numbers, default=0):
        step *= 10
    return step


def _made(changes: Sequence[Change]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for change in changes:
        key = change.table.number_key
        if change.kind == "added" and key and key not in change.table.references and isinstance(change.row[key], int):
            found.setdefault(change.table.name, []).append(change.row[key])
    return found


def _example(numbers: Numbers) -> str:
    name, pairs = next((name, pairs) for name, pairs in numbers.items() if pairs)
    old, new = next(iter(pairs.items()))
    return f"{name} {old} is {new}"


# Dates

DATE_FORMS: Mapping[str, tuple[str, bool, str]] = {
    "with a space": (" ", False, ""),
    "with T": ("T", False, ""),
    "with a fraction": (" ", True, ""),
    "with Z": ("T", False, "Z"),
    "with +00:00": (" ", False, "+00:00"),
}
"""Spellings of one moment: what is between day and time, whether there is a fraction, and the zone."""


def respelled(changes: Sequence[Change], form: str) -> tuple[Edit, ...]:
    """The edits that write every moment a solution wrote in another form; none where all are in that form."""
    found = []
    for change in changes:
        if change.kind == "removed":
            continue
        values = {column: spelled(change.row[column], form) for column in change.written}
        values = {column: text for column, text in values.items() if text not in (None, change.row[column])}
        if values:
            found.append(Edit(change.table.name, change.key, values))
    return tuple(found)


def spelled(value: Any, form: str) -> str | None:
    """A moment in another form; None for what is no moment with a time of day. Fractions that say something stay."""
    found = DATE_TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None or found["time"] is None:
        return None
    between, fraction, zone = DATE_FORMS[form]
    time = found["time"] if found["time"].count(":") == 2 else f"{found['time']}:00"
    kept = found["fraction"] or ""
    if not kept.strip(".0"):
        kept = ".000000" if fraction else ""
    return f"{found['day']}{between}{time}{kept}{zone}"


# Answers


def same_answers(answer: str) -> Iterator[tuple[str, str]]:
    """An answer in other words that say the same, each with what was done to it."""
    spaced = re.sub(r" ", "  ", answer)
    forms = {
        "with white space around it": f"\n  {answer} \n",
        "with double spaces": spaced,
        "in lower case": answer.lower(),
        "in upper case": answer.upper(),
        "in a sentence": f"The answer is: {answer}",
    }
    for how, text in forms.items():
        if text != answer:
            yield how, text
