"""Near misses: states that differ from a right one by a small change which makes them wrong.

Each is written as edits of the right final state. What the tables' own rules forbid is tried in another way or left
out, so that every near miss is a database the environment could hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import chain, islice, zip_longest
from typing import Any

from curation.audit.subject import Change, Tables
from curation.audit.tables import Row, Table
from curation.audit.wording import DATE_TIME
from pipeline.runtime.edits import Edit

A_KIND = 4
"""Near misses of one kind for one solution: a fifth wrong value shows little that four did not."""

OTHER_ROWS = 3
"""Rows that a change is tried on instead of the right one. One of them may be as good as the right one where a task
leaves the choice, all of them hardly, so they count as one near miss, which is accepted where all of them are."""

Edits = tuple[Edit, ...]


@dataclass(frozen=True)
class NearMiss:
    """A wrong state: what `kind` of miss it is (see `kinds`), what it `says` in words, and how to make it.

    `ways` are lists of edits, of which the first that the tables allow is taken. Near misses of one `unit` count as
    one, accepted only where all of them are.
    """

    kind: str
    says: str
    ways: tuple[Edits, ...]
    unit: str = ""


def near_misses(final: Tables, changes: Sequence[Change]) -> list[NearMiss]:
    """The near misses of a solution, at most `A_KIND` of each kind, spread over the tables it changes."""
    asked = _spread([change for change in changes if change.asked])
    makers: tuple[Callable[[Tables, Change, Sequence[Change]], Iterator[NearMiss]], ...] = (
        values_off,
        on_another_row,
        too_few,
        too_many,
    )
    found: list[NearMiss] = []
    for make in makers:
        units: dict[str, list[NearMiss]] = {}
        for miss in chain.from_iterable(make(final, change, changes) for change in asked):
            units.setdefault(miss.unit or miss.says, []).append(miss)
        found += chain.from_iterable(islice(units.values(), A_KIND))
    return found


def values_off(final: Tables, change: Change, changes: Sequence[Change]) -> Iterator[NearMiss]:
    """A value of a row that the task is about is one step off."""
    if change.kind == "removed":
        return
    for column in change.cells:
        value = change.row[column]
        table = change.table
        near = [other for other in steps_off(final, table, column, value) if other != change.before.get(column, value)]
        if column in table.references and change.kind == "added":
            continue  # a row that belongs to another one: see `on_another_row`
        ways = tuple((Edit(table.name, change.key, {column: other}),) for other in near)
        if ways:
            yield NearMiss("value_off", f"{_where(change)}: {column} is {near[0]!r} instead of {value!r}", ways)


def on_another_row(final: Tables, change: Change, changes: Sequence[Change]) -> Iterator[NearMiss]:
    """The right change, but of another row, or with something that belongs to another one."""
    table = change.table
    if change.kind == "changed":
        for other in islice(_rows_like(change, changes), OTHER_ROWS):
            edits = (
                Edit(table.name, change.key, change.before),
                Edit(table.name, table.key_of(other), change.after),
            )
            says = f"{_named(table, other)} is changed instead of {_where(change)}"
            yield NearMiss("other_row", says, (edits,), unit=_where(change))
    elif change.kind == "removed":
        there = final[table.name]
        for other in islice(_untouched(there, changes), OTHER_ROWS):
            edits = (Edit(table.name, None, change.row), Edit(table.name, there.key_of(other), None))
            says = f"{_named(there, other)} is removed instead of {_where(change)}"
            yield NearMiss("other_row", says, (edits,), unit=_where(change))
    else:
        for column in change.cells:
            if column in table.references:
                for number in steps_off(final, table, column, change.row[column])[:OTHER_ROWS]:
                    edit = Edit(table.name, change.key, {column: number})
                    says = f"{_where(change)}: {column} is {number} instead of {change.row[column]}"
                    yield NearMiss("other_row", says, ((edit,),), unit=f"{_where(change)}.{column}")


def too_few(final: Tables, change: Change, changes: Sequence[Change]) -> Iterator[NearMiss]:
    """One row is missing, or its change undone; the rest, which there must be, is right."""
    if len(changes) == 1:
        return
    name = change.table.name
    match change.kind:
        case "added":
            yield NearMiss("row_missing", f"{_where(change)} is missing", ((Edit(name, change.key, None),),))
        case "removed":
            yield NearMiss("undone", f"{_where(change)} is still there", ((Edit(name, None, change.row),),))
        case "changed":
            columns = ", ".join(change.after)
            undone = Edit(name, change.key, change.before)
            yield NearMiss("undone", f"{_where(change)}: the change of {columns} is undone", ((undone,),))


def too_many(final: Tables, change: Change, changes: Sequence[Change]) -> Iterator[NearMiss]:
    """One row more than was asked for."""
    table = change.table
    match change.kind:
        case "added":
            again = copies(final, table, change.row)
            if again:
                yield NearMiss("row_extra", f"{_where(change)} is there twice", again)
        case "changed":
            for other in islice(_rows_like(change, changes), 1):
                edit = Edit(table.name, table.key_of(other), change.after)
                yield NearMiss("row_extra", f"{_named(table, other)} is changed as well", ((edit,),))
        case "removed":
            for other in islice(_untouched(final[table.name], changes), 1):
                edit = Edit(table.name, table.key_of(other), None)
                yield NearMiss("row_extra", f"{_named(table, other)} is removed as well", ((edit,),))


def extra_changes(final: Tables, changes: Sequence[Change]) -> Iterator[NearMiss]:
    """Something that nobody asked for, beside what is right: a value, a row more, a row less."""
    touched = {change.table.name for change in changes}
    inside = [table for table in final.values() if table.name in touched]
    outside = [table for table in final.values() if table.name not in touched and table.rows]
    for tables, limit in ((inside, 1), (outside, 1)):
        found = (miss for table in tables for row in _untouched(table, changes) for miss in _defaced(final, table, row))
        yield from islice(found, limit)
    for table in reversed(outside):
        row = table.rows[-1]
        edit = Edit(table.name, table.key_of(row), None)
        yield NearMiss("extra_change", f"{_named(table, row)} is removed, which nobody asked for", ((edit,),))
        again = copies(final, table, row)
        if again:
            yield NearMiss("extra_change", f"a copy of {_named(table, row)} is made, which nobody asked for", again)
            return


def _defaced(final: Tables, table: Table, row: Row) -> Iterator[NearMiss]:
    for column in table.columns:
        if column in table.key or column in table.references or column in table.unique:
            continue
        near = steps_off(final, table, column, row[column])
        ways = tuple((Edit(table.name, table.key_of(row), {column: value}),) for value in near)
        if ways:
            says = f"{_named(table, row)}: {column} is {near[0]!r}, was {row[column]!r}, which nobody asked for"
            yield NearMiss("extra_change", says, ways)


def copies(tables: Tables, table: Table, row: Row) -> tuple[Edits, ...]:
    """Ways to make the same row once more, with a key of its own and another text where texts must differ."""
    copy = dict(row)
    for column in table.unique | set(table.key):
        value = row[column]
        if column in table.references and len(table.key) == 1:
            return ()  # one row for each of another table: a second one could only be somebody else's
        if column in table.unique:
            fresh = _fresh(table, column, value)
            if fresh is None:
                return ()
            copy[column] = fresh
    if table.key and copy == dict(row):
        return ()
    return ((Edit(table.name, None, copy),),)


def _fresh(table: Table, column: str, value: Any) -> Any:
    """A value like this one that no row has; None where that cannot be told."""
    taken = set(table.values(column))
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return max((number for number in taken if isinstance(number, int)), default=0) + 1
    if isinstance(value, str):
        return next(text for number in range(2, len(taken) + 3) if (text := f"{value} {number}") not in taken)
    return None


def steps_off(tables: Tables, table: Table, column: str, value: Any) -> list[Any]:
    """Values that are nearly this one, the likeliest to be taken for it first; none where there is no telling."""
    if column in table.references:
        return _neighbours(sorted(tables[table.references[column]].numbers), value)
    match value:
        case None:
            return table.values(column)[:1]
        case int() | float() if table.is_flag(column) or set(table.values(column)) <= {0, 1}:
            return [0 if value else 1]
        case int() | float():
            return [value + 1, value - 1]
        case str():
            return _texts_off(table, column, value)
    return []


def _texts_off(table: Table, column: str, value: str) -> list[str]:
    if found := DATE_TIME.fullmatch(value):
        try:
            day = date.fromisoformat(found["day"])
            return [(day + timedelta(days=step)).isoformat() + value[found.end("day") :] for step in (1, -1)]
        except (ValueError, OverflowError):  # it looks like a date and is none
            pass
    if column in table.unique:
        return [f"{value} 2"]
    others = [text for text in table.values(column) if isinstance(text, str) and text.casefold() != value.casefold()]
    return [*_neighbours(others, value)[:2], f"{value} 2"]


def _neighbours(others: Sequence[Any], value: Any) -> list[Any]:
    """The other values in turn, beginning after this one."""
    after = [other for other in others if _later(other, value)]
    return [*after, *(other for other in others if other != value and other not in after)]


def _later(other: Any, value: Any) -> bool:
    try:
        return other > value
    except TypeError:
        return False


def _rows_like(change: Change, changes: Sequence[Change]) -> Iterator[Row]:
    """Rows that the same change would alter, those that look as the changed one did before first."""
    others = [
        row
        for row in _untouched(change.table, changes)
        if any(row[column] != value for column, value in change.after.items())
    ]
    yield from sorted(others, key=lambda row: sum(row[column] != value for column, value in change.before.items()))


def _untouched(table: Table, changes: Sequence[Change]) -> Iterator[Row]:
    """Rows that the solution leaves alone, those next to one it touches first."""
    touched = [change.key for change in changes if change.table.name == table.name and change.kind != "removed"]
    places = [place for place, row in enumerate(table.rows) if table.key_of(row) in touched]
    distance = {place: min((abs(place - other) for other in places), default=place) for place in range(len(table.rows))}
    for place in sorted(distance, key=lambda place: (distance[place], place)):
        if place not in places:
            yield table.rows[place]


def _spread(changes: Sequence[Change]) -> list[Change]:
    """The changes with those of different tables taking turns."""
    by_table: dict[str, list[Change]] = {}
    for change in changes:
        by_table.setdefault(change.table.name, []).append(change)
    return [change for turn in zip_longest(*by_table.values()) for change in turn if change is not None]


def _where(change: Change) -> str:
    return _named(change.table, change.row)


def _named(table: Table, row: Mapping[str, Any]) -> str:
    """A row as people find it: `ticket 7 ('Lamp')`."""
    key = " ".join(str(value) for value in (row[column] for column in table.key)) if table.key else "row"
    label = next((row[column] for column in table.columns if column in table.tells_apart and row[column]), None)
    return f"{table.name} {key}" + (f" ({label!r})" if label and label not in key else "")
