"""One verifier tried again: every probe, what was changed for it, what the verifier said, and where it looked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from textual import on, work
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Static, TabPane

from curation.audit.probes import Probe, Probes, statement_line
from curation.audit.states import shown
from pipeline.model import Mode
from studio.actions import bindings
from studio.screens.frame import Framed
from studio.widgets.cells import one_line
from studio.widgets.changes import Changes
from studio.widgets.environment.dossier import Dossier
from studio.widgets.grid import Column, Grid
from studio.widgets.lines import Piece
from studio.widgets.source import Source, highlight
from studio.widgets.tabs import Tabs

TABS = {"evidence": "#said", "changes": "#probe-changes", "verifier": "#verifier-source"}
"""The tabs, and the widget in each that takes the keyboard."""
WORDS = {
    "complete": "complete",
    "others": "others",
    "judge_error": "it failed",
    "evidence": "evidence",
}
"""What a verifier may say, as it is listed."""


def _said(probe: Probe) -> Piece:
    word = WORDS[probe.verdict.verdict]
    if probe.verdict.verdict == "evidence" and probe.outcome.accepted is not None:
        word = "holds" if probe.outcome.accepted else "holds not"
    return word, "fail" if probe.failed else ""


def _mark(probe: Probe) -> Piece:
    if probe.failed:
        return "✗", "fail"
    return ("·", "muted") if probe.outcome.accepted is None else ("✓", "ok")


class ProbesScreen(Framed):
    """The probes on the left; of the current one evidence, changed rows and the verifier's source on the right."""

    MODE = "environments"
    ABOUT = (
        "Every state and answer that the verifier was asked about, made again from the environment's own known "
        "solution. ✗ counts against it. Changes compares with the known solution, or (t) with the initial database; "
        "f goes to the line of the verifier that looked, or should have."
    )
    BINDINGS = bindings("probes")
    COLUMNS = (
        Column("mark", "", _mark, width=1),
        Column("kind", "what was tried", lambda probe: probe.title, width=22, flex=2),
        Column("said", "it says", _said, width=9),
        Column("right", "right is", lambda probe: "complete" if probe.right else "not", width=8, drop=3),
        Column("says", "how", lambda probe: (probe.says, "muted"), width=12, flex=3, drop=2),
    )

    def __init__(self, dossier: Dossier, task: int, mode: Mode) -> None:
        super().__init__()
        self._dossier = dossier
        self._number = task
        self._mode = mode
        self._only_failed = False
        self._from_start = False
        self._lines: tuple[int, ...] = ()
        self.probes: Probes | None = None

    def body(self) -> Iterable[Widget]:
        """Which verifier, its probes, the current one."""
        title = f"{one_line(self._dossier.env.title)}  task {self._number}, {self._mode} mode"
        yield Static(title, id="probed", markup=False)
        with Horizontal(id="probing"):
            yield Grid(self.COLUMNS, empty="The verifier is being tried again …", id="probes")
            with Vertical(id="probe"), Tabs(id="probe-tabs"):
                with TabPane("Evidence", id="evidence"):
                    yield Source(wrap=True, id="said")
                with TabPane("Changes", id="changes"):
                    yield Static("", id="against", classes="heading", markup=False)
                    yield Changes(id="probe-changes")
                with TabPane("Verifier", id="verifier"):
                    yield Source(numbered=True, id="verifier-source")

    @property
    def grid(self) -> Grid:
        """The probes."""
        return self.query_one("#probes", Grid)

    def on_mount(self) -> None:
        """Try the verifier."""
        super().on_mount()
        self.grid.focus()
        self._try()

    @work(exclusive=True)
    async def _try(self) -> None:
        live = self.studio.live
        if live is None:
            return
        slot = str(self._number)
        author = next((v.author for v in self._dossier.versions if v.part == "solution" and v.slot == slot), None)
        source = f"{author.kind} {author.name}".strip() if author else ""
        self.probes = await self.studio.ask(live.probes, self._dossier.env, self._number, self._mode, source)
        if self.probes is None:
            self.grid.empty = "It could not be tried."
            self.grid.show(())
            return
        self.query_one("#verifier-source", Source).show(self.probes.verifier.code, "python")
        self._list()

    def _list(self) -> None:
        assert self.probes is not None
        failed = [probe for probe in self.probes.probes if probe.failed]
        self.grid.empty = "Nothing counts against it: w shows all that was tried."
        self.grid.show(failed if self._only_failed else self.probes.probes)
        told = f"{len(self.probes.probes)} probes, {len(failed)} count against it"
        title = f"{one_line(self._dossier.env.title)}  task {self._number}, {self._mode} mode   {told}"
        self.query_one("#probed", Static).update(title)

    @on(Grid.Highlighted, "#probes")
    def _highlighted(self, event: Grid.Highlighted) -> None:
        self._show(event.row)

    @work(exclusive=True, group="show")
    async def _show(self, probe: Probe | None) -> None:
        probes, said, changes = self.probes, self.query_one("#said", Source), self.query_one(Changes)
        if probe is None or probes is None:
            said.show("")
            changes.show(())
            self._lines = ()
            return
        made = await self.studio.ask(probes.from_solution, probe)
        from_start = await self.studio.ask(probe.changes)
        if made is None or from_start is None or probe is not self.grid.row:
            return
        said.show_lines(list(_evidence(self._dossier.env.tasks, self._number, probes, probe, made)))
        against_start = self._from_start or probes.solution is None
        changes.show_changes(from_start if against_start else made)
        changes.empty = "Both databases are the same."
        with_what = "the initial database" if against_start else "the known solution"
        other = "" if probes.solution is None else "   t: the other"
        self.query_one("#against", Static).update(f"compared with {with_what}{other}")
        self._lines = _lines_looking(probes.verifier.code, probe, made or from_start)

    @on(Grid.Selected, "#probes")
    def _enter(self) -> None:
        self._focus_tab()

    # Actions

    def action_next_tab(self) -> None:
        """The next tab."""
        self._turn(1)

    def action_previous_tab(self) -> None:
        """The tab before."""
        self._turn(-1)

    def _turn(self, steps: int) -> None:
        tabs = self.query_one("#probe-tabs", Tabs)
        inside = self.query_one("#probe").has_focus_within
        names = list(TABS)
        tabs.active = names[(names.index(tabs.active) + steps) % len(names)]
        if inside:
            self.call_after_refresh(self._focus_tab)

    def _focus_tab(self) -> None:
        active = self.query_one("#probe-tabs", Tabs).active
        self.query_one(TABS[active]).focus()

    def action_against(self) -> None:
        """Compare with the initial database, or with the known solution again."""
        self._from_start = not self._from_start
        self.query_one("#probe-tabs", Tabs).active = "changes"
        self._show(self.grid.row)

    def action_failed(self) -> None:
        """Only what counts against the verifier, or everything again."""
        if self.probes is not None:
            self._only_failed = not self._only_failed
            self._list()

    def action_find_code(self) -> None:
        """To the line of the verifier that looked at what was changed, or at anything."""
        if self.probes is None or self.grid.row is None:
            return
        self.query_one("#probe-tabs", Tabs).active = "verifier"
        if not self._lines:
            self.notify("No statement of the verifier speaks of what was changed.", timeout=4)
            return
        self.query_one("#verifier-source", Source).show(self.probes.verifier.code, "python", line=self._lines[0])

    def action_back(self) -> None:
        """From the probe to the list; from the list, back to the environment."""
        if self.query_one("#probe").has_focus_within:
            self.grid.focus()
        else:
            self.dismiss()


def _evidence(
    tasks: tuple[str, ...], task: int, probes: Probes, probe: Probe, made: Mapping[str, Any]
) -> Iterator[list[Piece]]:
    """What was tried, what came of it, and everything that explains it."""
    yield [(f"{probe.title}: ", "strong"), (probe.says, "")]
    should = "complete" if probe.right else "anything but complete"
    said, tone = _said(probe)
    yield [("A sound verifier says ", "muted"), (should, ""), (", this one ", "muted"), (said, tone or "ok")]
    if probe.failed and (unread := probes.never_read(made, probe)):
        yield [("It never looked at ", "fail"), (", ".join(unread), "name")]
    if probes.rejects_solution and probe.right and probe.outcome.trial.kind != "reference":
        yield [("It rejects the known solution itself, so this says no more.", "muted")]
    if probe.verdict.error:
        yield [(probe.verdict.error, "fail")]
    yield []
    yield [("Changed ", "muted"), *_changed(made, probes.solution is not None)]
    yield [("Task    ", "muted"), (tasks[task] if task < len(tasks) else "there is no such task", "")]
    yield [("Answer  ", "muted"), ("none" if probe.answer is None else repr(probe.answer), "string")]
    if probes.source:
        yield [("Calls   ", "muted"), (f"of the known solution ({probes.source})", "muted")]
        yield from ([("        ", ""), (shown(call), "name")] for call in probes.calls)
    if probe.verdict.evidence is not None:
        yield []
        yield from highlight(json.dumps(probe.verdict.evidence, indent=2, ensure_ascii=False, default=str), "json")
    yield []
    yield [("What it looked at", "strong")]
    yield from _queries(probes.verifier.code, probe)


def _changed(made: Mapping[str, Any], known: bool) -> list[Piece]:
    """What was changed for a probe, by table; the Changes tab has the rows."""
    if not known:
        return [("nothing: the environment has no solution of its own to change", "muted")]
    counts = [
        f"{table}: " + ", ".join(f"{len(rows)} {word}" for word, rows in kinds.items() if rows)
        for table, kinds in made.items()
    ]
    return (
        [("; ".join(counts), "changed")] if counts else [("nothing in the final state of the known solution", "muted")]
    )


def _queries(code: str, probe: Probe) -> Iterator[list[Piece]]:
    for query in sorted(probe.verdict.queries, key=lambda query: query["db"] == "other"):
        line = statement_line(code, query["sql"])
        mark = ("✓ ", "ok") if query["ok"] else ("✗ ", "fail")
        yield [mark, (query["db"], "name"), (f"  line {line}" if line else "", "muted")]
        yield from ([("   ", ""), *pieces] for pieces in highlight(query["sql"].strip(), "sql"))
        if query["error"]:
            yield [(f"   {query['error']}", "fail")]
    if not probe.verdict.queries:
        yield [("It read nothing from the databases.", "muted")]


def _lines_looking(code: str, probe: Probe, changed: Any) -> tuple[int, ...]:
    """The lines of the statements that speak of a changed table, or of all statements where nothing was changed."""
    names = [re.compile(rf"\b{re.escape(table)}\b", re.I) for table in changed]
    told = (q["sql"] for q in probe.verdict.queries if not names or any(name.search(q["sql"]) for name in names))
    return tuple(dict.fromkeys(line for sql in told if (line := statement_line(code, sql)) is not None))
