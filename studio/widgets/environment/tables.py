"""The initial database: its tables, and of one table the rows, the columns and the DDL."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import ContentSwitcher, Static

from pipeline.model import Environment
from studio.actions import bindings
from studio.snapshot_reader import Row, Snapshot, TableFacts
from studio.widgets.cells import count, shown
from studio.widgets.environment.dossier import Dossier
from studio.widgets.grid import Cell, Column, Grid
from studio.widgets.source import Source

if TYPE_CHECKING:
    from studio.app import Studio
    from studio.live import Live

VIEWS = ("rows", "columns", "ddl")
NUMERIC = ("INT", "REAL", "FLOA", "DOUB", "NUM", "DEC")
"""How the types of columns of numbers begin; their values are shown right-aligned."""


def _targets(table: TableFacts) -> str:
    targets = dict.fromkeys(column.refers_to.partition(".")[0] for column in table.columns if column.refers_to)
    return ", ".join(targets)


class Tables(Vertical):
    """Tables above; below, whatever view of the current one was asked for last."""

    BINDINGS = bindings("tables")
    COLUMNS = (
        Column("name", "table", lambda table: table.name, width=16, flex=1),
        Column("columns", "cols", lambda table: str(len(table.columns)), width=4, right=True),
        Column("rows", "rows", lambda table: (count(table.rows), "" if table.rows else "muted"), width=6, right=True),
        Column("links", "refers to", _targets, width=12, flex=1, drop=1),
    )
    FACTS = (
        Column("key", "", lambda column: ("key", "accent") if column.key else "", width=3),
        Column("name", "column", lambda column: column.name, width=14, flex=1),
        Column("type", "type", lambda column: (column.type or "·", "keyword"), width=9),
        Column("required", "", lambda column: "not null" if column.required else "", width=8),
        Column("default", "default", lambda column: (column.default or "", "muted"), width=10, flex=1, drop=1),
        Column("link", "refers to", lambda column: (column.refers_to, "name"), width=12, flex=1),
    )

    def __init__(self) -> None:
        super().__init__()
        self._snapshot: Snapshot | None = None
        self._wanted = ""

    def compose(self) -> ComposeResult:
        """Tables, a line about the current one, its view."""
        yield Grid(self.COLUMNS, id="tables")
        yield Static("", id="table", classes="heading", markup=False)
        with ContentSwitcher(initial=VIEWS[0]):
            yield Grid(id="rows", empty="")
            yield Grid(self.FACTS, id="columns")
            yield Source(id="ddl", wrap=True)

    def on_unmount(self) -> None:
        """Close the database."""
        self._close()

    def show_dossier(self, dossier: Dossier) -> None:
        """Build (or find) the environment's initial database and show it."""
        self._close()
        self._say("The database is being built …")
        self._load(dossier)

    @work(exclusive=True)
    async def _load(self, dossier: Dossier) -> None:
        studio = cast("Studio", self.app)
        if studio.live is None:
            return
        if not dossier.env.schema:
            self._say("This environment has no tables.")
            return
        snapshot = await studio.ask(_open, studio.live, dossier.env)
        if snapshot is None:
            self._say("The database could not be built.")
            return
        self._snapshot = snapshot
        self._say("No table could be created: see Findings.")
        tables = self.query_one("#tables", Grid)
        tables.show(snapshot.tables)
        tables.go_to(lambda table: table.name == self._wanted)

    def go_to(self, table: str) -> None:
        """Show a table, as soon as the database is there."""
        self._wanted = table
        self.query_one("#tables", Grid).go_to(lambda facts: facts.name == table)

    def _say(self, text: str) -> None:
        tables = self.query_one("#tables", Grid)
        tables.empty = text
        tables.show(())

    def _close(self) -> None:
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None

    @on(Grid.Highlighted, "#tables")
    def _show_table(self, event: Grid.Highlighted) -> None:
        event.stop()
        table: TableFacts | None = event.row
        rows, columns, ddl = self.query_one("#rows", Grid), self.query_one("#columns", Grid), self.query_one(Source)
        if table is None or self._snapshot is None:
            self.query_one("#table", Static).update("")
            rows.empty = ""
            rows.show((), columns=())
            columns.show(())
            ddl.show("")
            return
        rows.empty = "This table has no rows."
        rows.show(self._snapshot.rows(table.name), columns=_columns(table))
        columns.show(table.columns)
        ddl.show(table.ddl, "sql")
        self._head()

    def _head(self) -> None:
        table: TableFacts | None = self.query_one("#tables", Grid).row
        if table is None:
            return
        now = self.query_one(ContentSwitcher).current
        views = "  ".join(f"[{view}]" if view == now else view for view in VIEWS)
        self.query_one("#table", Static).update(f"{table.name}   {views}")

    def action_view(self) -> None:
        """Rows, columns, DDL in turn."""
        switcher = self.query_one(ContentSwitcher)
        focused = switcher.has_focus_within
        switcher.current = VIEWS[(VIEWS.index(switcher.current or VIEWS[0]) + 1) % len(VIEWS)]
        if focused:
            self.query_one(f"#{switcher.current}").focus()
        self._head()

    @on(Grid.Selected, "#tables")
    def _go_down(self, event: Grid.Selected) -> None:
        event.stop()
        self.query_one(f"#{self.query_one(ContentSwitcher).current}").focus()


def _open(live: Live, env: Environment) -> Snapshot:
    return Snapshot(live.snapshot(env))


def _columns(table: TableFacts) -> tuple[Column, ...]:
    return tuple(
        Column(
            column.name,
            f"{column.name}{'*' if column.key else ''}",
            partial(_cell, number),
            right=column.type.upper().startswith(NUMERIC),
        )
        for number, column in enumerate(table.columns)
    )


def _cell(number: int, row: Row) -> Cell:
    value = row[number]
    if value is None:
        return shown(value), "muted"
    return shown(value), "number" if isinstance(value, (int, float)) else ""
