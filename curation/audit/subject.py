"""What a known solution changes, and what of it the task is about.

A solution also changes what nobody asked for: log rows, time stamps, numbers the program hands out. A verifier need not
look at those, so a near miss that differs in them proves nothing against it. What is asked for is what the task (or
the answer it wants) names: a value, a row, or a row that belongs to one; and the rows that the solution's own calls
pick by their ids, since the task describes those. Where there is none of that, everything counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from curation.audit.tables import Row, Table, table_named_in
from curation.audit.wording import DATE_TIME, Mentions
from pipeline.model import Call
from pipeline.runtime.diff import SCHEMA, diff

Kind = Literal["added", "removed", "changed"]
Diff = Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]
Tables = Mapping[str, Table]

STEPS_TO_A_NAME = 2
"""How many references are followed to find out whether a row belongs to one that the task names: a loan names a copy,
and the copy a title."""


@dataclass(frozen=True)
class Change:
    """One row that a solution adds, removes or changes.

    `row` is the whole row in the final state (in the initial one where it is removed), `table` its table there.
    `before` and `after` hold the columns that a changed row differs in. `cells` are the columns whose value the task
    asks for, and `asked` says whether the change as a whole is asked for.
    """

    table: Table
    kind: Kind
    row: Row
    before: Row = field(default_factory=dict)
    after: Row = field(default_factory=dict)
    cells: tuple[str, ...] = ()
    asked: bool = False

    @property
    def key(self) -> Row:
        """What tells the row."""
        return self.table.key_of(self.row)

    @property
    def written(self) -> list[str]:
        """The columns that have a new value; a row's own key is none."""
        columns = self.after if self.kind == "changed" else self.row
        return [column for column in columns if column not in self.table.key]


def changes(
    initial: Tables,
    final: Tables,
    differences: Diff,
    mentions: Mentions,
    *,
    volatile: frozenset[tuple[str, str]] = frozenset(),
    calls: Sequence[Call] = (),
) -> list[Change]:
    """What differs between two states, with what of it is asked for.

    `volatile` are the (table, column) whose new values are another time's or chance's; `calls` those that led there:
    texts that they bring and the task does not speak of were free to choose.
    """
    free, picked = frozenset(_texts(calls)), _picked(calls, final)
    found = [
        _judged(change, initial if change.kind == "removed" else final, mentions, volatile, free, picked)
        for change in _rows(initial, final, differences)
    ]
    if any(change.asked for change in found):
        return found
    return [replace(change, asked=True, cells=_lasting(change, change.written, volatile)) for change in found]


def differences(initial: bytes, final: bytes) -> Diff:
    """The rows that differ between two snapshots, by table; changes of the schema are left out."""
    return {table: found for table, found in diff(initial, final).items() if table != SCHEMA}


def volatile_columns(one: Diff, other: Diff) -> frozenset[tuple[str, str]]:
    """The (table, column) in which two runs of the same solution at different times come to different values."""
    found = set()
    for table in one.keys() & other.keys():
        for kind in ("added", "changed"):
            for here, there in zip(one[table][kind], other[table][kind], strict=False):
                new, again = (row.get("after", row) if kind == "changed" else row for row in (here, there))
                found |= {(table, column) for column in new.keys() & again.keys() if new[column] != again[column]}
    return frozenset(found)


def meaning(found: Diff, final: Tables, volatile: frozenset[tuple[str, str]] = frozenset()) -> str:
    """What a difference says apart from ids and other values that the program hands out; equal texts mean the same."""
    made = {
        name: {row[key] for row in kinds["added"]}
        for name, kinds in found.items()
        if name in final and (key := final[name].number_key)
    }

    def told(name: str, row: Mapping[str, Any]) -> dict[str, Any]:
        table = final[name]
        return {
            column: "new"
            if isinstance(value, int) and value in made.get(table.references.get(column, ""), ())
            else value
            for column, value in row.items()
            if column != table.number_key and (name, column) not in volatile
        }

    rows = {
        name: {
            "added": sorted(json.dumps(told(name, row), sort_keys=True) for row in kinds["added"]),
            "removed": sorted(json.dumps(row, sort_keys=True) for row in kinds["removed"]),
            "changed": sorted(
                json.dumps([row["key"], told(name, row["after"])], sort_keys=True) for row in kinds["changed"]
            ),
        }
        for name, kinds in found.items()
        if name in final
    }
    return json.dumps(rows, sort_keys=True)


def _rows(initial: Tables, final: Tables, differences: Diff) -> Iterator[Change]:
    for name, found in differences.items():
        if name not in initial or name not in final:
            continue
        before, after = initial[name], final[name]
        for row in found["added"]:
            yield Change(after, "added", {column: row[column] for column in after.columns})
        for row in found["removed"]:
            yield Change(before, "removed", {column: row[column] for column in before.columns})
        for row in found["changed"]:
            here = next((r for r in after.rows if all(r[c] == v for c, v in row["key"].items())), None)
            both = [column for column in after.columns if column in row["before"] and column in row["after"]]
            if here is not None and both:
                old, new = ({column: row[side][column] for column in both} for side in ("before", "after"))
                yield Change(after, "changed", here, old, new)


def _judged(
    change: Change,
    tables: Tables,
    mentions: Mentions,
    volatile: frozenset[tuple[str, str]],
    free: frozenset[str],
    picked: frozenset[tuple[str, int]],
) -> Change:
    table = change.table
    named = [column for column in change.written if _names(tables, table, column, change.row, mentions)]
    old_name = [change.before[column] for column in change.before if column in table.tells_apart]
    asked = (
        bool(named)
        or mentions.any(old_name)
        or is_named(tables, table, change.row, mentions)
        or (table.number_key is not None and (table.name, change.row[table.number_key]) in picked)
    )
    if not asked or change.kind == "removed":
        return replace(change, asked=asked)
    if change.kind == "changed":
        named += [
            column
            for column in _lasting(change, change.written, volatile)
            if column not in named and not _is_moment(change.row[column]) and not _is_free(change.row[column], free)
        ]
    return replace(change, asked=True, cells=tuple(named))


def _lasting(change: Change, columns: Sequence[str], volatile: frozenset[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(column for column in columns if (change.table.name, column) not in volatile)


def _names(tables: Tables, table: Table, column: str, row: Row, mentions: Mentions) -> bool:
    value = row[column]
    if column in table.references:
        other = tables[table.references[column]]
        parent = other.row(value)
        return parent is not None and is_named(tables, other, parent, mentions)
    if table.is_flag(column) or value in (0, 1):
        return False
    return mentions.has(value)


def is_named(tables: Tables, table: Table, row: Row, mentions: Mentions, steps: int = STEPS_TO_A_NAME) -> bool:
    """Whether a task calls a row by name, or one that the row belongs to."""
    if mentions.any(row[column] for column in table.tells_apart):
        return True
    if steps == 0:
        return False
    for column, name in table.references.items():
        parent = tables[name].row(row[column])
        if parent is not None and is_named(tables, tables[name], parent, mentions, steps - 1):
            return True
    return False


def _is_moment(value: Any) -> bool:
    """Whether a value says a time of day: that is seldom asked for unless it is named."""
    found = DATE_TIME.fullmatch(value) if isinstance(value, str) else None
    return found is not None and found["time"] is not None


def _is_free(value: Any, free: frozenset[str]) -> bool:
    return isinstance(value, str) and value in free and " " in value.strip()


def _picked(calls: Sequence[Call], tables: Tables) -> frozenset[tuple[str, int]]:
    """The (table, number) of rows that calls name by an argument such as `order_id`."""
    found = set()
    for call in calls:
        for name, value in call.arguments.items():
            table = table_named_in(name, tables)
            if table is not None:
                values = value if isinstance(value, list) else [value]
                found |= {(table.name, number) for number in values if isinstance(number, int)}
    return frozenset(found)


def _texts(calls: Sequence[Call]) -> Iterator[str]:
    """The texts that calls bring, however deep."""
    rest: list[Any] = [call.arguments for call in calls]
    while rest:
        match rest.pop():
            case str(text):
                yield text
            case Mapping() as held:
                rest += held.values()
            case list(items):
                rest += items
