"""A subset opened: its environments in the order they were picked, and the tasks that were taken of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual import on, work
from textual.widget import Widget
from textual.widgets import Static

from pipeline.words import number_of
from studio.actions import bindings
from studio.screens.frame import Framed
from studio.subset_reading import Member, member_lines, read_subset
from studio.widgets.grid import Column, Grid
from studio.widgets.source import Source

if TYPE_CHECKING:
    from curation.subset import Subset


class MembersScreen(Framed):
    """Opened with the subset's name."""

    MODE = "subsets"
    ABOUT = (
        "The environments of a subset in the order they were picked: the first n are the best subset of size n. What "
        "is shown is what was picked, also where somebody has edited it since."
    )
    BINDINGS = bindings("members")
    COLUMNS = (
        Column("rank", "", lambda row: (f"{row.rank:,}", "muted"), width=5, right=True),
        Column("split", "split", lambda row: (row.split, "accent" if row.split == "test" else "muted"), width=5),
        Column("name", "environment", lambda row: row.name, width=24, flex=2),
        Column("tasks", "tasks", lambda row: f"{len(row.tasks):,}", width=5, right=True),
        Column("concept", "concept", lambda row: (row.concept, "muted"), width=20, flex=2, drop=1),
    )

    def __init__(self, name: str) -> None:
        super().__init__()
        self._of = name
        self._subset: Subset | None = None

    def body(self) -> Iterable[Widget]:
        """Which subset, its environments, the tasks of the current one."""
        yield Static(self._of, id="concepts-head", markup=False)
        yield Grid(self.COLUMNS, empty="Reading the subset …", id="members")
        yield Source(wrap=True, id="member")

    @property
    def grid(self) -> Grid:
        """The environments."""
        return self.query_one("#members", Grid)

    def on_mount(self) -> None:
        """Read the subset."""
        super().on_mount()
        self.grid.focus()
        self._read()

    @work(exclusive=True, group="read")
    async def _read(self) -> None:
        if self.studio.workspace is None:
            return
        found = await self.studio.ask(read_subset, self.studio.workspace.catalog, self._of)
        if found is not None:
            self._subset, members = found
            counts = f"{number_of(len(members), 'environment')}, {number_of(len(self._subset.picks), 'task')}"
            self.query_one("#concepts-head", Static).update(f"{self._of}: {counts}")
            self.grid.show(members)

    @on(Grid.Highlighted, "#members")
    def _highlighted(self, event: Grid.Highlighted) -> None:
        self._tell(event.row)

    @work(exclusive=True, group="tell")
    async def _tell(self, member: Member | None) -> None:
        if member is None or self._subset is None or self.studio.workspace is None:
            return
        lines = await self.studio.ask(member_lines, self.studio.workspace.catalog, self._subset, member)
        if lines is not None:
            self.query_one("#member", Source).show_lines(lines)

    @on(Grid.Selected, "#members")
    def _to_tasks(self) -> None:
        self.query_one("#member", Source).focus()

    def action_back(self) -> None:
        """From the tasks to the environments, then to the subsets."""
        if self.grid.has_focus:
            self.dismiss()
        else:
            self.grid.focus()

    def copy_text(self) -> str:
        """The name of the current environment."""
        return self.grid.row.name if self.grid.row else ""
