"""Remedies that are mechanical, as edits to look at and to make."""

from __future__ import annotations

from collections.abc import Iterable

from textual import work
from textual.widget import Widget
from textual.widgets import Static

from curation.fixes.proposal import Fix
from curation.fixes.proposals import apply, fixes_of
from pipeline.model import Part
from studio.actions import bindings
from studio.person import person
from studio.screens.frame import Framed
from studio.spelling import difference
from studio.widgets.cells import one_line
from studio.widgets.grid import Column
from studio.widgets.listing import Listing, Text


class Fixes(Listing):
    """Every proposed edit; below, what it changes."""

    EMPTY = "Looking for remedies …"
    WRAP = True
    COLUMNS = (
        Column("code", "finding", lambda fix: (fix.code, "name"), width=16),
        Column("where", "where", lambda fix: fix.where, width=18, flex=1, drop=2),
        Column("parts", "changes", lambda fix: ", ".join(edit.part for edit in fix.edits), width=12, drop=1),
        Column("says", "remedy", lambda fix: fix.says, width=24, flex=2),
    )

    def explain(self, row: Fix) -> Text:
        """The remedy as a diff of each part that it changes."""
        lines = [f"# {row.says}", ""]
        for edit in row.edits:
            lines += difference(edit.part, edit.before, edit.after)
        return "\n".join(lines), "diff"


class FixesScreen(Framed):
    """Opened on an environment, at the remedy for what was found at one place of it where there is one."""

    MODE = "environments"
    ABOUT = (
        "What was found and can be put right without judgement: an apostrophe written twice, a row left out, moments "
        "compared by what they mean, an operation given a path of its own, a guard put into a verifier. ^s makes the "
        "edit under the cursor: a new version, by you. Then the environment is checked again; the version before stays."
    )
    BINDINGS = bindings("fixes")

    def __init__(self, environment: str, title: str, *, where: str = "") -> None:
        super().__init__()
        self._environment = environment
        self._about = title
        self._where = where

    def body(self) -> Iterable[Widget]:
        """Which environment, then the remedies."""
        yield Static(f"{one_line(self._about)}  remedies for what was found", id="fixes-head", markup=False)
        yield Fixes()

    def on_mount(self) -> None:
        """Look for remedies."""
        super().on_mount()
        self.query_one(Fixes).grid.focus()
        self._look()

    @work(exclusive=True)
    async def _look(self) -> None:
        workspace, listing = self.studio.workspace, self.query_one(Fixes)
        if workspace is None:
            return
        found = await self.studio.ask(fixes_of, workspace.catalog, self._environment)
        if found is None:
            return
        listing.grid.empty = "Nothing that was found can be put right mechanically."
        listing.show_rows(found, of=self._environment)
        listing.grid.go_to(lambda fix: fix.where == self._where)

    @work(exclusive=True, group="apply")
    async def action_apply(self) -> None:
        """Make the edit under the cursor, and check the environment again."""
        fix, workspace = self.query_one(Fixes).grid.row, self.studio.workspace
        if fix is None or workspace is None:
            return
        made = await self.studio.ask(apply, workspace.catalog, self._environment, fix, person())
        if made is None:
            return
        told = ", ".join(f"{version.part} version {version.number}" for version in made)
        again = "audit" if any(version.part is Part.verifier for version in made) else "check"
        self.studio.start_run(again, self._environment, "--fail-on", "never")
        self.notify(f"Saved: {told}. The {again} runs again.", markup=False)
        self.dismiss()

    def action_back(self) -> None:
        """Back, with nothing changed."""
        self.dismiss()
