"""Environments: find them in a list, look into them, try them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual import on, work
from textual.containers import Horizontal
from textual.timer import Timer
from textual.widget import Widget

from curation.filters import Filter, parse
from studio.actions import bindings
from studio.screens.choose import ChooseScreen
from studio.screens.first_steps import FirstStepsScreen
from studio.screens.following import Following
from studio.screens.split import Split
from studio.widgets.environment.audit import Audit
from studio.widgets.environment.code import Code
from studio.widgets.environment.detail import Detail
from studio.widgets.environment.findings import Findings, place
from studio.widgets.environment.listed import columns, most_first, ordered
from studio.widgets.environment.tables import Tables
from studio.widgets.environment.tasks import Tasks
from studio.widgets.environment.tools import Tools
from studio.widgets.filter_bar import FilterBar
from studio.widgets.grid import Cell, Grid

if TYPE_CHECKING:
    from curation.review import Item
    from pipeline.records import Summary
    from pipeline.workspace import Workspace

SETTLE_S = 0.12
"""How long the cursor must rest on an environment before its details are read: holding a key down reads nothing."""


class EnvironmentsScreen(Following, Split):
    """The list on the left, the details of the current environment on the right (a key away in a narrow terminal)."""

    MODE = "environments"
    ABOUT = (
        "Every environment of the workspace. Type / and words to narrow the list; fields narrow it further: "
        "domain:travel tables>10 check:fail audit:loose -review:drop. Enter goes into the details; [ and ] change the "
        "tab; Escape comes back. Marks (x) choose what to compare."
    )
    BINDINGS = bindings("environments")

    def __init__(self) -> None:
        super().__init__()
        self._all: list[Summary] | None = None
        self._ordered: list[Summary] = []
        self._filter: Filter = parse("")
        self._sort = ("name", False)
        self.marks: set[str] = set()
        self._settling: Timer | None = None

    # What is shown

    def body(self) -> Iterable[Widget]:
        """Filter, list, details."""
        yield FilterBar()
        with Horizontal():
            yield Grid(columns((), self._mark_cell), empty="Reading the catalog …", id="list")
            yield Detail(id="detail")

    @property
    def grid(self) -> Grid:
        """The list."""
        return self.query_one("#list", Grid)

    @property
    def detail(self) -> Detail:
        """The details."""
        return self.query_one(Detail)

    @property
    def current(self) -> Summary | None:
        """The environment under the cursor."""
        return self.grid.row

    def on_mount(self) -> None:
        """Begin with the list."""
        super().on_mount()
        self.grid.focus()
        self.grid.sorted_by = self._sort

    async def read(self, workspace: Workspace) -> None:
        """Read the list from the catalog again; cursor, marks and filter stay."""
        summaries = await self.studio.ask(workspace.catalog.summaries)
        if summaries is None:
            return
        if summaries == self._all:
            self.detail.show(self.current)
            return
        first, self._all = self._all is None, summaries
        self.marks &= {summary.name for summary in summaries}
        self.grid.empty = "No environment meets the filter." if summaries else "No environments yet."
        self._order()
        if first and not summaries:
            self.studio.push_screen(FirstStepsScreen())
        else:
            self.detail.show(self.current)

    def _order(self) -> None:
        """Sort, then filter and show."""
        key, reverse = self._sort
        self._ordered = ordered(self._all or (), key, reverse=reverse)
        self.grid.sorted_by = self._sort
        self._narrow()

    def _narrow(self) -> None:
        """Show what meets the filter, with the cursor still on the same environment where it is still there."""
        name = self.current.name if self.current else ""
        rows = [row for row in self._ordered if self._filter(row)]
        cursor = next((number for number, row in enumerate(rows) if row.name == name), 0)
        self.grid.show(rows, columns=columns(self._all or (), self._mark_cell), cursor=cursor)
        self._count()

    def _count(self) -> None:
        shown, total = len(self.grid.rows), len(self._all or ())
        marked = f" · {len(self.marks)} marked" if self.marks else ""
        self.query_one(FilterBar).say(f"{total}{marked}" if shown == total else f"{shown}/{total}{marked}")

    def _mark_cell(self, row: Summary) -> Cell:
        return ("x", "accent") if row.name in self.marks else " "

    @on(Grid.Highlighted, "#list")
    def _highlighted(self, event: Grid.Highlighted) -> None:
        if self._settling is not None:
            self._settling.stop()
        if event.row is None or self.detail.dossier is None:
            self.detail.show(event.row)
        elif event.row.name != self.detail.dossier.env.name:
            self._settling = self.set_timer(SETTLE_S, lambda: self.detail.show(event.row))

    @on(Grid.HeadClicked, "#list")
    def _head_clicked(self, event: Grid.HeadClicked) -> None:
        self._sort_by(event.column)

    @on(FilterBar.Changed)
    def _filter_changed(self, event: FilterBar.Changed) -> None:
        self._filter = event.wanted
        self._narrow()

    @on(FilterBar.Left)
    def _filter_left(self) -> None:
        self.grid.focus()

    # Actions

    @on(Grid.Selected, "#list")
    def _entered(self) -> None:
        self.enter_detail()

    def action_filter(self) -> None:
        """Type a filter."""
        self.zoomed = False
        self.query_one(FilterBar).start()

    def action_back(self) -> None:
        """From the details to the list; in the list, show everything again."""
        if not self.leave_detail():
            self.query_one(FilterBar).clear()

    def action_mark(self) -> None:
        """Mark or unmark the current environment and go on to the next."""
        if self.current is not None:
            self.marks ^= {self.current.name}
            self.grid.redraw(self.grid.cursor)
            self.grid.move(1)
            self._count()

    def action_mark_all(self) -> None:
        """Mark everything in the list, or, if it is, nothing of it."""
        listed = {row.name for row in self.grid.rows}
        self.marks = self.marks - listed if listed <= self.marks else self.marks | listed
        self.grid.redraw()
        self._count()

    def action_sort(self) -> None:
        """Ask for the column to sort by."""
        labels = {column.key: column.label for column in self.grid.columns if column.key != "mark"}
        self.studio.push_screen(ChooseScreen("Sort by", labels, now=self._sort[0]), self._sort_by)

    def _sort_by(self, key: str | None) -> None:
        if key is None or key == "mark":
            return
        self._sort = (key, not self._sort[1] if key == self._sort[0] else most_first(key))
        self._order()

    def action_refresh(self) -> None:
        """Read the list again now."""
        self.reload()

    def action_call(self) -> None:
        """Call the tool under the cursor of the Tools tab, or, on another tab, the environment's first."""
        pane = self.detail.pane
        on_a_tool = isinstance(pane, Tools) and pane.grid.row is not None
        self._call_tools(pane.grid.row.name if on_a_tool else "")

    @on(Grid.Selected, "Tools Grid")
    def _tool_selected(self, event: Grid.Selected) -> None:
        self._call_tools(event.row.name)

    def _call_tools(self, tool: str) -> None:
        from studio.screens.call import CallScreen

        if self.detail.dossier is not None:
            self.studio.push_screen(CallScreen(self.detail.dossier, tool), self._back_from)

    def _back_from(self, _answer: None) -> None:
        self.reload()

    @work(exclusive=True, group="compare")
    async def action_compare(self) -> None:
        """Compare two marked environments, or the marked one and the current one."""
        from studio.screens.compare import CompareScreen

        names = sorted(self.marks) if len(self.marks) == 2 else sorted(self.marks)[:1]
        if self.current is not None and len(names) == 1 and self.current.name != names[0]:
            names.append(self.current.name)
        if len(names) != 2 or len(self.marks) > 2 or self.studio.workspace is None:
            self.notify("Mark two environments (x), or mark one and go to the other.", severity="warning")
            return
        environment = self.studio.workspace.catalog.environment
        left, right = await self.studio.ask(environment, names[0]), await self.studio.ask(environment, names[1])
        if left is not None and right is not None:
            self.studio.push_screen(CompareScreen(left, right))

    def action_check(self) -> None:
        """Find out whether environments run; what is found appears when it is."""
        self._judge("check", "Checking")

    def action_audit(self) -> None:
        """Find out whether environments' verifiers can be trusted; the verdicts appear as they are reached."""
        self._judge("audit", "Auditing the verifiers of")

    def _judge(self, verb: str, doing: str) -> None:
        names = sorted(self.marks) or ([self.current.name] if self.current else [])
        if names:
            self.studio.start_run(verb, *names, "--fail-on", "never")
            what = names[0] if len(names) == 1 else f"{len(names)} environments"
            self.notify(f"{doing} {what} … Activity (7) shows how far it is.", markup=False)

    def action_review(self) -> None:
        """What checks and audits leave to a person, in the marked environments or in all."""
        from studio.screens.review import ReviewScreen

        review = ReviewScreen(sorted(self.marks))
        self.studio.push_screen(review, lambda _answer: self._back_from_review(review.opened))

    def _back_from_review(self, item: Item | None) -> None:
        """To what was opened there: the environment at its finding or its verifier."""
        self.reload()
        if item is None:
            return
        self.query_one(FilterBar).clear()
        self.grid.go_to(lambda row: row.name == item.environment)
        self.detail.open("audit" if item.source == "audit" else "findings")
        self.enter_detail()

    def action_fix(self) -> None:
        """Show how what was found can be put right mechanically."""
        from studio.screens.fixes import FixesScreen

        dossier, pane = self.detail.dossier, self.detail.pane
        if dossier is None:
            return
        where = ""
        if isinstance(pane, Findings) and pane.grid.row is not None:
            where = pane.grid.row.where
        elif isinstance(pane, Audit) and pane.grid.row is not None:
            where = f"verifier: task {pane.grid.row.task}, {pane.grid.row.mode} mode"
        screen = FixesScreen(dossier.env.name, dossier.env.title, where=where)
        self.studio.push_screen(screen, self._back_from)

    @on(Grid.Selected, "Audit Grid")
    def _probe(self, event: Grid.Selected) -> None:
        from studio.screens.probes import ProbesScreen

        if self.detail.dossier is not None:
            self.studio.push_screen(ProbesScreen(self.detail.dossier, event.row.task, event.row.mode))

    @on(Grid.Selected, "Findings Grid")
    def _go_where(self, event: Grid.Selected) -> None:
        """To the place a finding speaks of: a line of the code, a table, a tool."""
        tab, name = place(event.row.where)
        if tab == "code" and name:
            self._show_line(int(name))
        elif tab in ("tables", "tools"):
            self._open_at(tab, name)
        elif tab:
            self.detail.open(tab)
            self.call_after_refresh(self.detail.enter)
        else:
            self.notify("This finding is about the environment as a whole.", timeout=3)

    def _open_at(self, tab: str, name: str) -> None:
        pane = self.detail.open(tab)
        assert isinstance(pane, (Tables, Tools))
        pane.go_to(name)
        self.call_after_refresh(self.detail.enter)

    def action_edit(self) -> None:
        """Edit the task under the cursor of the Tasks tab, or show that tab first."""
        from studio.screens.edit_task import EditTaskScreen

        dossier, pane = self.detail.dossier, self.detail.pane
        if dossier is None or not dossier.env.tasks:
            self.notify("This environment has no tasks.", severity="warning")
        elif isinstance(pane, Tasks) and pane.grid.row is not None:
            self.studio.push_screen(EditTaskScreen(dossier, pane.grid.row.number), self._back_from)
        else:
            self.detail.open("tasks")
            self.enter_detail()

    @on(Grid.Selected, "Tasks Grid")
    def _task_selected(self) -> None:
        self.action_edit()

    @work(exclusive=True, group="datasette")
    async def action_datasette(self) -> None:
        """Open the environment's database in the browser."""
        if self.detail.dossier is not None and self.studio.live is not None:
            self.studio.show_page(await self.studio.ask(self.studio.live.page, self.detail.dossier.env))

    @on(Tools.CodeWanted)
    def _show_code(self, event: Tools.CodeWanted) -> None:
        self._show_line(event.line)

    def _show_line(self, line: int) -> None:
        code = self.detail.open("code")
        assert isinstance(code, Code)
        code.show_line(line)
        self.call_after_refresh(code.focus)

    def copy_text(self) -> str:
        """The name of the current environment."""
        return self.current.name if self.current else ""
