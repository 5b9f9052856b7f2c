"""Edit a task's text, with rows of the environment's database beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual import on, work
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Static, TextArea

from pipeline.errors import UserError
from pipeline.model import Environment, Part
from studio.actions import bindings
from studio.anchors import Anchor, anchors
from studio.person import person
from studio.screens.choose import ChooseScreen
from studio.screens.frame import Framed
from studio.snapshot_reader import Snapshot
from studio.widgets.cells import one_line, shown
from studio.widgets.environment.dossier import Dossier
from studio.widgets.grid import Column, Grid

if TYPE_CHECKING:
    from pipeline.catalog import Catalog
    from studio.live import Live


def _row_text(anchor: Anchor) -> str:
    """The row with what the task mentions first."""
    order = [*anchor.mentioned, *(name for name in anchor.values if name not in anchor.mentioned)]
    return ", ".join(f"{name}={shown(anchor.values[name], longest=80)}" for name in order)


class EditTaskScreen(Framed):
    """The text on the left, rows to anchor it to on the right."""

    MODE = "environments"
    TYPED_IN = True
    ABOUT = (
        "A task should speak of rows that exist. Rows it already speaks of come first, with ✓. Enter on a row chooses "
        "one of its values and writes it where the text cursor is. Saving makes a new version, by you."
    )
    BINDINGS = bindings("task")
    COLUMNS = (
        Column("mentioned", "", lambda anchor: ("✓", "ok") if anchor.mentioned else " ", width=1),
        Column("table", "table", lambda anchor: (anchor.table, "name"), width=12, flex=1),
        Column("row", "row", _row_text, width=24, flex=4),
    )

    def __init__(self, dossier: Dossier, number: int) -> None:
        super().__init__()
        self._env = dossier.env
        self._number = number

    def body(self) -> Iterable[Widget]:
        """Text and rows."""
        title = f"{one_line(self._env.title)} · task {self._number}"
        yield Static(title, classes="title", id="edited", markup=False)
        with Horizontal(id="edit"):
            with Vertical(id="text"):
                yield TextArea(self._env.tasks[self._number], soft_wrap=True, id="task")
            with Vertical(id="rows"):
                yield Grid(self.COLUMNS, empty="The database is being built …", id="anchors")

    def on_mount(self) -> None:
        """Look for rows."""
        super().on_mount()
        text = self.query_one(TextArea)
        text.move_cursor(text.document.end)
        text.focus()
        self._find_rows()

    @work(exclusive=True)
    async def _find_rows(self) -> None:
        grid = self.query_one(Grid)
        live = self.studio.live
        found = await self.studio.ask(_rows, live, self._env, self._number) if live else None
        grid.empty = "The database has no rows."
        grid.show(found or ())

    @on(Grid.Selected, "#anchors")
    def _choose_value(self, event: Grid.Selected) -> None:
        anchor: Anchor = event.row
        labels = {name: f"{name}  {shown(value, longest=80)}" for name, value in anchor.values.items()}

        def insert(column: str | None) -> None:
            if column is not None:
                text = self.query_one(TextArea)
                text.insert(shown(anchor.values[column]))
                text.focus()

        self.studio.push_screen(ChooseScreen(f"Which value of {anchor.table}?", labels), insert)

    @work(exclusive=True)
    async def action_save(self) -> None:
        """Make a new version of the tasks."""
        text, workspace = self.query_one(TextArea).text.strip(), self.studio.workspace
        if workspace is None:
            return
        number = await self.studio.ask(_save, workspace.catalog, self._env, self._number, text)
        if number is None:
            return
        judged = " Its verifiers were written for the old text: check them." if self._env.verifier(self._number) else ""
        self.notify(f"Saved: tasks version {number}.{judged}", severity="warning" if judged else "information")
        self.dismiss()

    def action_back(self) -> None:
        """From the rows to the text; from the text, leave it as it was."""
        text = self.query_one(TextArea)
        if not text.has_focus:
            text.focus()
        elif text.text.strip() == self._env.tasks[self._number].strip():
            self.dismiss()
        else:
            choices = {"stay": "Go on editing", "leave": "Leave without saving"}
            self.studio.push_screen(ChooseScreen("The text is not saved", choices), self._left)

    def _left(self, choice: str | None) -> None:
        if choice == "leave":
            self.dismiss()


def _rows(live: Live, env: Environment, number: int) -> list[Anchor]:
    snapshot = Snapshot(live.snapshot(env))
    try:
        return anchors(env.tasks[number], snapshot)
    finally:
        snapshot.close()


def _save(catalog: Catalog, env: Environment, number: int, text: str) -> int:
    if not text:
        raise UserError("A task needs a text.")
    tasks = list(catalog.environment(env.name).tasks)
    if tasks != list(env.tasks):
        raise UserError("Somebody changed these tasks meanwhile: copy your text, leave, and edit them as they are now.")
    tasks[number] = text
    parents = [version.id for version in catalog.current(env.name) if version.part == Part.tasks]
    content = json.dumps(tasks, ensure_ascii=False)
    return catalog.put(env.name, Part.tasks, content, author=person(), parents=parents).number
