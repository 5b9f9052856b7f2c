"""What a training was asked to do, field by field, beside the trainings that it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from studio.widgets.grid import Cell, Column, Grid

MISSING = "·"
"""Shown where a training does not have a field."""


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A field and its values, one for each training."""

    name: str
    values: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether the trainings differ in it."""
        return len(set(self.values)) > 1


class Fields(Grid):
    """Every field; those that differ come first, under a mark."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(empty="No training has been started here yet.", id=id)

    def show_fields(self, trainings: Sequence[tuple[str, Mapping[str, str]]]) -> None:
        """Show these trainings' fields, each under its name."""
        names = list(dict.fromkeys(name for _, fields in trainings for name in fields))
        rows = [FieldRow(name, tuple(fields.get(name, MISSING) for _, fields in trainings)) for name in names]
        rows.sort(key=lambda row: not row.differs)
        values = (
            Column(f"value{number}", title, _value(number), width=14, flex=2)
            for number, (title, _) in enumerate(trainings)
        )
        columns = (
            Column("differs", "", lambda row: ("≠", "changed") if row.differs else " ", width=1),
            Column("name", "field", lambda row: (row.name, "name"), width=24, flex=1),
            *values,
        )
        self.show(rows, columns=columns, cursor=self.cursor)


def _value(number: int) -> Callable[[FieldRow], Cell]:
    def cell(row: FieldRow) -> Cell:
        return row.values[number], "changed" if row.differs else ""

    return cell
