"""The details of the environment under the cursor, in tabs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from textual import on, work
from textual.app import ComposeResult
from textual.widget import Widget
from textual.widgets import Static, TabbedContent, TabPane

from studio.widgets.cells import one_line
from studio.widgets.environment.audit import Audit
from studio.widgets.environment.code import Code
from studio.widgets.environment.dossier import Dossier, read_dossier
from studio.widgets.environment.findings import Findings
from studio.widgets.environment.overview import Overview
from studio.widgets.environment.tables import Tables
from studio.widgets.environment.tasks import Tasks
from studio.widgets.environment.tools import Tools
from studio.widgets.environment.verifiers import Verifiers
from studio.widgets.tabs import Tabbed, Tabs

if TYPE_CHECKING:
    from pipeline.records import Summary
    from studio.app import Studio

TABS = {
    "overview": ("Overview", Overview),
    "tasks": ("Tasks", Tasks),
    "tables": ("Tables", Tables),
    "tools": ("Tools", Tools),
    "code": ("Code", Code),
    "verifiers": ("Verifiers", Verifiers),
    "findings": ("Findings", Findings),
    "audit": ("Audit", Audit),
}
"""Every tab: its name and its widget, which has `show_dossier`."""


class Pane(Protocol):
    """What every tab's widget can do."""

    def show_dossier(self, dossier: Dossier) -> None:
        """Show an environment."""
        ...


class Detail(Tabbed):
    """Shows one environment; a tab reads its part of it only when it is looked at."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self.dossier: Dossier | None = None
        self._shown: dict[str, Dossier] = {}

    def compose(self) -> ComposeResult:
        """The name, then the tabs."""
        yield Static("", id="detail-name", markup=False)
        with Tabs():
            for name, (title, pane) in TABS.items():
                with TabPane(title, id=name):
                    yield pane()

    @work(exclusive=True)
    async def show(self, summary: Summary | None) -> None:
        """Read and show an environment; None clears the details."""
        if summary is None:
            self.dossier = None
            self.add_class("-nothing")
            return
        studio = cast("Studio", self.app)
        if studio.workspace is None:
            return
        dossier = await studio.ask(read_dossier, studio.workspace.catalog, summary)
        if dossier is not None and dossier != self.dossier:
            self.dossier = dossier
            self.remove_class("-nothing")
            self.query_one("#detail-name", Static).update(f"{one_line(summary.title)}  {summary.name}")
            self._show_active()

    def open(self, tab: str) -> Widget:
        """Go to a tab and return its widget, up to date."""
        super().open(tab)
        self._show_active()
        return self.pane

    @on(TabbedContent.TabActivated)
    def _activated(self, event: TabbedContent.TabActivated) -> None:
        event.stop()
        self._show_active()

    def _show_active(self) -> None:
        name = self.active
        if self.dossier is not None and name and self._shown.get(name) is not self.dossier:
            self._shown[name] = self.dossier
            cast("Pane", self.pane).show_dossier(self.dossier)
