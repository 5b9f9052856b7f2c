"""Subsets: what was picked to train on, how well it covers, and handing it on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual import on, work
from textual.containers import Horizontal
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static

from curation.extras import require
from pipeline.errors import UserError
from studio import launch
from studio.actions import bindings
from studio.bridge import News
from studio.screens.choose import ChooseScreen
from studio.screens.following import Following
from studio.screens.subset_build import BuildScreen
from studio.screens.subset_compare import CompareSubsetsScreen
from studio.screens.subset_export import ExportScreen
from studio.screens.subset_members import MembersScreen
from studio.subset_reading import card_lines, coverage_of, recipe_lines
from studio.widgets.grid import Cell, Column, Grid
from studio.widgets.lines import Piece
from studio.widgets.source import Source

if TYPE_CHECKING:
    from pipeline.records import StoredSubset
    from pipeline.workspace import Workspace

KINDS = {"subset": "picks", "export": "exports to"}
"""The kinds of runs that work on subsets, and how what they do is said."""
EMPTY = "No subsets yet: b picks the environments worth training on."


def _share(row: StoredSubset) -> Cell:
    concepts = row.card["concepts"]
    held = f"{concepts['train'] + concepts['test']:,}"
    return f"{held}/{concepts['of']:,}" if "of" in concepts else held


class SubsetsScreen(Following):
    """The list on the left, the current subset's recipe and card on the right (a key away in a narrow terminal)."""

    MODE = "subsets"
    ABOUT = (
        "A subset is a named selection of environments and tasks, picked so that every environment has one like it. It "
        "remembers its recipe and what it was made from, so that it can be made again and exports give what was "
        "picked. Concepts that are held out are tested and never trained on. Building and exporting run in processes "
        "of their own; Activity (7) shows how far they are."
    )
    BINDINGS = bindings("subsets")
    COLUMNS = (
        Column("name", "subset", lambda row: row.name, width=16, flex=3),
        Column("train", "envs", lambda row: f"{row.card['environments']['train']:,}", width=6, right=True),
        Column("test", "test", lambda row: f"{row.card['environments']['test']:,}", width=5, right=True, drop=2),
        Column("tasks", "tasks", lambda row: f"{row.card['tasks']['train']:,}", width=7, right=True, drop=3),
        Column("concepts", "concepts", _share, width=9, right=True),
        Column("held", "held out", lambda row: f"{row.card['concepts']['test']:,}", width=8, right=True, drop=4),
        Column("coverage", "coverage", lambda row: coverage_of(row.card), width=8, right=True, drop=1),
        Column("made", "made", lambda row: (f"{row.created_at.astimezone():%m-%d %H:%M}", "muted"), width=11, drop=5),
    )

    zoomed: reactive[bool] = reactive(False, toggle_class="-zoomed")

    def __init__(self) -> None:
        super().__init__()
        self._marked = ""
        self._progress: dict[int, str] = {}

    def body(self) -> Iterable[Widget]:
        """What is going on, list and card."""
        columns = (Column("mark", "", self._mark, width=1), *self.COLUMNS)
        yield Static("", id="subsets-note", markup=False)
        with Horizontal():
            yield Grid(columns, empty="Reading the catalog …", id="subsets")
            yield Source(wrap=True, id="card")

    def _mark(self, row: StoredSubset) -> Cell:
        return ("x", "accent") if row.name == self._marked else " "

    @property
    def grid(self) -> Grid:
        """The list."""
        return self.query_one("#subsets", Grid)

    @property
    def current(self) -> StoredSubset | None:
        """The subset under the cursor."""
        return self.grid.row

    def on_mount(self) -> None:
        """Begin with the list."""
        super().on_mount()
        self.grid.focus()

    def heard(self, news: News) -> None:
        """How far runs that make subsets are."""
        ours = {run.id for run in self.studio.runs if run.kind in KINDS}
        for event in news.events:
            if event.run in ours and event.kind == "progress":
                self._progress[event.run] = f": {event.data['done']:,} of {event.data['total']:,}"
        self._say_note()

    async def read(self, workspace: Workspace) -> None:
        """Read the list again; the cursor stays on its subset."""
        rows = await self.studio.ask(workspace.catalog.subsets)
        if rows is None:
            return
        name = self.current.name if self.current else ""
        self.grid.empty = EMPTY
        self.grid.show(rows, cursor=next((n for n, row in enumerate(rows) if row.name == name), 0))

    def _say_note(self) -> None:
        """Which subsets are being picked or exported, and how far that is."""
        at_work = [run for run in self.studio.runs if run.kind in KINDS and run.state == "running"]
        said = [
            f"▶ Run {run.id} {KINDS[run.kind]} {run.config.get('name') or run.config['folder']}"
            f"{self._progress.get(run.id, '')}"
            for run in at_work
            if not launch.is_orphaned(run)
        ]
        note = self.query_one("#subsets-note", Static)
        note.update("\n".join(said))
        note.display = bool(said)

    @on(Grid.Highlighted, "#subsets")
    def _highlighted(self, event: Grid.Highlighted) -> None:
        lines: list[list[Piece]] = []
        if event.row is not None:
            lines = [[(event.row.name, "strong")], [], *card_lines(event.row.card), []]
            lines += [[("Recipe", "strong")], *recipe_lines(event.row.card["recipe"])]
        self.query_one("#card", Source).show_lines(lines)

    # Actions

    @on(Grid.Selected, "#subsets")
    def action_open(self) -> None:
        """The members of the current subset."""
        if self.current is not None:
            self.studio.push_screen(MembersScreen(self.current.name))

    @work(exclusive=True, group="build")
    async def action_build(self) -> None:
        """Write a recipe and have it followed."""
        try:
            require("concepts", "Picking a subset")
        except UserError as error:
            self.notify(str(error), severity="error", timeout=20, markup=False)
            return
        arguments = await self.studio.push_screen_wait(BuildScreen({row.name for row in self.grid.rows}))
        if arguments is not None:
            self.studio.start_run("subset", *arguments)
            self.notify(f"Picking {arguments[0]} …; it is listed here when it is done.", markup=False)

    @work(exclusive=True, group="export")
    async def action_export(self) -> None:
        """Write the current subset to a folder."""
        if self.current is None:
            self.notify("There is no subset to export: b builds one.", severity="warning")
            return
        arguments = await self.studio.push_screen_wait(ExportScreen(self.current.name))
        if arguments is not None:
            self.studio.start_run("export", *arguments)
            self.notify(f"Exporting to {arguments[0]} …; Activity (7) shows how far it is.", markup=False)

    def action_mark(self) -> None:
        """Mark the subset that another one is compared with, or unmark it."""
        if self.current is not None:
            self._marked = "" if self.current.name == self._marked else self.current.name
            self.grid.redraw()

    def action_compare(self) -> None:
        """Compare the marked subset with the current one."""
        names = {row.name for row in self.grid.rows}
        if self._marked not in names or self.current is None or self.current.name == self._marked:
            self.notify("Mark one subset (x), go to another, then c compares them.", severity="warning")
            return
        self.studio.push_screen(CompareSubsetsScreen(self._marked, self.current.name))

    @work(exclusive=True, group="forget")
    async def action_forget(self) -> None:
        """Forget the current subset, once that is said again."""
        if self.current is None or self.studio.workspace is None:
            return
        name = self.current.name
        question = ChooseScreen(f"Forget {name}? Its exports stay.", {"keep": "Keep it", "forget": "Forget it"})
        if await self.studio.push_screen_wait(question) == "forget":
            await self.studio.ask(self.studio.workspace.catalog.remove_subset, name)
            self.reload()

    def action_zoom(self) -> None:
        """The card alone, or beside the list."""
        self.zoomed = not self.zoomed
        self.call_after_refresh(self.query_one("#card", Source).focus if self.zoomed else self.grid.focus)

    def action_back(self) -> None:
        """Back to the list."""
        self.zoomed = False
        self.call_after_refresh(self.grid.focus)

    def copy_text(self) -> str:
        """The name of the current subset."""
        return self.current.name if self.current else ""
