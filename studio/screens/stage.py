"""One stage of one scenario: what is being written, the attempts side by side, the prompt, what came of it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual import on, work
from textual.containers import Horizontal, Vertical
from textual.signal import Signal
from textual.widget import Widget
from textual.widgets import Static, TabbedContent, TabPane

from pipeline.engine.board import Row, State
from pipeline.model import STAGES, Part
from studio import stage_record
from studio.actions import bindings
from studio.run_watch import RunWatch
from studio.screens.steered import Steered
from studio.spelling import spell
from studio.stage_record import Piece, Try
from studio.widgets.attempts import right, standing, tried_lines
from studio.widgets.board import money
from studio.widgets.cells import count, duration, one_line
from studio.widgets.grid import Column, Grid
from studio.widgets.source import Source
from studio.widgets.streaming import Streaming

if TYPE_CHECKING:
    from pipeline.workspace import Workspace

TABS = ("stream", "tries", "prompt", "made")
PROMPT_NONE = "Nothing has been asked for this stage yet."


def _version(piece: Piece) -> str:
    made = piece.version
    return f"version {made.number} by {made.author.name}" if made else "not made yet"


class StageScreen(Steered):
    """Opened from the board; tabs read what they show only when they are looked at."""

    MODE = "pipeline"
    ABOUT = (
        "A stage of one scenario. Stream is what the model writes now, or wrote last. Tries has every attempt since "
        "the stage was last begun, with what its checks found beside the attempt before it; d shows what changed "
        "between the two instead. Prompt is what was sent for the attempt chosen there, Made what is in the catalog."
    )
    BINDINGS = [*bindings("steer"), *bindings("stage")]
    TRIES = (
        Column("step", "part", lambda each: (each.step, "name"), width=14, flex=1),
        Column("number", "try", lambda each: str(each.tried.number), width=3, right=True),
        Column("right", "", right, width=11),
        Column("found", "found", lambda each: str(len(each.tried.findings)), width=5, right=True),
        Column("tokens", "tok", lambda each: count(each.cost.tokens_in + each.cost.tokens_out), width=6, right=True),
        Column("usd", "$", lambda each: money(each.cost.usd), width=5, right=True, drop=1),
        Column("took", "took", lambda each: duration(each.cost.seconds), width=6, right=True, drop=2),
        Column("first", "first of it", lambda each: each.first, width=20, flex=4, drop=3),
    )
    MADE = (
        Column("part", "part", lambda piece: (piece.step, "name"), width=16),
        Column("version", "version", _version, width=20, flex=1),
    )

    def __init__(self, watch: RunWatch, row: Row, stage: str, changed: Signal[set[str | None]]) -> None:
        super().__init__()
        self._watch = watch
        self._row = row
        self._stage = stage
        self._changed = changed
        self._differing = False

    @property
    def watch_of_run(self) -> RunWatch:
        """The run."""
        return self._watch

    @property
    def target(self) -> tuple[Row, str]:
        """The stage that is shown."""
        return self._row, self._stage

    def body(self) -> Iterable[Widget]:
        """How it stands, then the tabs."""
        yield Static("", id="stage-head", markup=False)
        yield Static("", id="stage-asked", markup=False)
        with TabbedContent():
            with TabPane("Stream", id="stream"):
                yield Streaming(empty="Nothing has been written yet.", size=stage_record.TAIL, id="streaming")
            with TabPane("Tries", id="tries"):
                yield Grid(self.TRIES, empty="No attempt has ended yet.", id="attempts")
                with Horizontal(id="sides"):
                    yield Source(wrap=True, id="before")
                    yield Source(wrap=True, id="after")
            with TabPane("Prompt", id="prompt"):
                yield Source(wrap=True, id="sent")
            with TabPane("Made", id="made"), Vertical():
                yield Grid(self.MADE, empty="Nothing has been made yet.", id="pieces")
                yield Source(numbered=True, id="content")

    def on_mount(self) -> None:
        """Show it, and again whenever something happens to it."""
        super().on_mount()
        self._changed.subscribe(self, self._heard)
        workspace = self.studio.workspace
        if workspace is not None:
            self.query_one("#streaming", Streaming).follow(
                lambda: stage_record.live_file(workspace, self._watch.run.id, self._row, self._stage)
            )
        writing = self._row.cells[self._stage].state in (State.running, State.correcting)
        self.open("stream" if writing else "tries" if stage_record.tries(self._row.cells[self._stage]) else "made")

    def _heard(self, names: set[str | None]) -> None:
        if self._row.name in names:
            self.show()

    @property
    def tab(self) -> str:
        """The active tab."""
        return self.query_one(TabbedContent).active

    def open(self, tab: str) -> None:
        """Go to a tab."""
        self.query_one(TabbedContent).active = tab
        self.show()
        self.enter()

    def enter(self) -> None:
        """Give the active tab the keyboard."""
        self.query_one(
            {"stream": "#streaming", "tries": "#attempts", "prompt": "#sent", "made": "#pieces"}[self.tab]
        ).focus()

    @on(TabbedContent.TabActivated)
    def _activated(self) -> None:
        self.show()

    def show(self) -> None:
        """Show how the stage stands now, in the head and the active tab."""
        row, stage = self.target
        line = "".join(text for text, _ in standing(row, stage, allowed=self._watch.attempts))
        cell = row.cells[stage]
        why = f"  {cell.why}" * bool(cell.why)
        self.query_one("#stage-head", Static).update(one_line(f"{row.number:04} {row.title} › {stage}  {line}{why}"))
        asked = self.query_one("#stage-asked", Static)
        asked.update(f"a person said: {one_line(cell.asked)}")
        asked.display = bool(cell.asked)
        if self.tab == "made":
            self._show_made()
        elif self.tab in ("tries", "prompt"):
            grid = self.query_one("#attempts", Grid)
            found = stage_record.tries(row.cells[stage])
            fresh = len(found) != len(grid.rows)
            grid.show(found, cursor=len(found) - 1 if fresh else grid.cursor)

    # Attempts

    @property
    def current(self) -> Try | None:
        """The attempt under the cursor."""
        return self.query_one("#attempts", Grid).row

    @property
    def before(self) -> Try | None:
        """The attempt at the same part before it."""
        grid = self.query_one("#attempts", Grid)
        earlier = [each for each in grid.rows[: grid.cursor] if self.current and each.step == self.current.step]
        return earlier[-1] if earlier else None

    @on(Grid.Highlighted, "#attempts")
    def _highlighted(self) -> None:
        self._show_sides()
        if self.tab == "prompt":
            self._show_prompt()

    @work(exclusive=True, group="sides")
    async def _show_sides(self) -> None:
        before, after = self.query_one("#before", Source), self.query_one("#after", Source)
        before.display = not self._differing
        if not self._differing or self.studio.workspace is None:
            before.show_lines(tried_lines(self.before, none="There is no attempt before it."))
            after.show_lines(tried_lines(self.current, none="No attempt has ended yet."))
            return
        if self.current is None:
            after.show("No attempt has ended yet.")
            return
        changes = await self.studio.ask(_difference, self.studio.workspace, self._row, self.before, self.current)
        if changes is not None:
            after.show(changes, "diff")

    @work(exclusive=True, group="prompt")
    async def _show_prompt(self) -> None:
        sent, workspace, current = self.query_one("#sent", Source), self.studio.workspace, self.current
        if workspace is None or current is None or not current.tried.keys:
            sent.show(PROMPT_NONE if current is None else "A person wrote this: nothing was asked.")
            return
        text = await self.studio.ask(stage_record.prompt_of, workspace, current.tried)
        sent.show(text or "", "markdown")

    # What was made

    @work(exclusive=True, group="made")
    async def _show_made(self) -> None:
        if self.studio.workspace is None:
            return
        grid = self.query_one("#pieces", Grid)
        found = await self.studio.ask(stage_record.pieces, self.studio.workspace, self._row, self._stage)
        grid.show(found or (), cursor=grid.cursor)

    @on(Grid.Highlighted, "#pieces")
    @work(exclusive=True, group="content")
    async def _show_content(self, event: Grid.Highlighted) -> None:
        shown, piece, workspace = self.query_one("#content", Source), event.row, self.studio.workspace
        if piece is None or workspace is None:
            shown.show("")
            return
        content = await self.studio.ask(stage_record.present, workspace, self._row, self._stage, piece.part, piece.slot)
        spelling = spell(Part(piece.part), content or "")
        shown.show(spelling.text if content else "", spelling.language)

    # Actions

    def action_difference(self) -> None:
        """What changed since the attempt before, or what the checks found in both."""
        self._differing = not self._differing
        if self.tab != "tries":
            self.open("tries")
        self._show_sides()

    def action_next_tab(self) -> None:
        """The next tab."""
        self.open(TABS[(TABS.index(self.tab) + 1) % len(TABS)])

    def action_previous_tab(self) -> None:
        """The tab before."""
        self.open(TABS[TABS.index(self.tab) - 1])

    def action_next_stage(self) -> None:
        """The next stage of the scenario."""
        self._turn(1)

    def action_previous_stage(self) -> None:
        """The stage before."""
        self._turn(-1)

    def _turn(self, steps: int) -> None:
        names = list(STAGES)
        self._stage = names[(names.index(self._stage) + steps) % len(names)]
        self.query_one("#attempts", Grid).show(())
        self.show()

    def action_back(self) -> None:
        """Back to the board."""
        self.dismiss()


def _difference(workspace: Workspace, row: Row, before: Try | None, after: Try) -> str:
    """What an attempt changed against the one before it, or against the version it was to replace."""
    part = Part(after.step.partition(" ")[0])
    if before is not None:
        name, content = f"{before.step}, try {before.tried.number}", stage_record.content_of(workspace, before.tried)
    elif version := stage_record.version_before(workspace, row, after):
        name = f"{after.step}, version {version.number} by {version.author.name}"
        content = workspace.catalog.content(version.sha)
    else:
        return "There is no attempt before it to compare with."
    old, new = (
        spell(part, text).text.splitlines() for text in (content, stage_record.content_of(workspace, after.tried))
    )
    changes = difflib.unified_diff(old, new, name, f"{after.step}, try {after.tried.number}", lineterm="", n=3)
    return "\n".join(changes) or f"It is the same as {name}."
