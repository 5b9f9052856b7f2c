"""Edit what a stage made: the text on the left, what its checks find on the right; then send it as your version."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual import on, work
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Static, TextArea

from pipeline.errors import UserError
from pipeline.model import STAGES, Part
from studio import drafts, stage_record
from studio.actions import bindings
from studio.drafts import Checked
from studio.editor import edit
from studio.run_watch import RunWatch
from studio.screens.choose import ChooseScreen
from studio.screens.steered import Steered
from studio.spelling import Spelling, spell
from studio.stage_record import Piece
from studio.widgets.attempts import findings
from studio.widgets.cells import one_line
from studio.widgets.source import Source

if TYPE_CHECKING:
    from pipeline.engine.board import Row
    from pipeline.workspace import Workspace

HIGHLIGHTED = 30_000
"""Longer texts stay plain: highlighting SQL of 9 KB costs 48 ms a key, of 99 KB 212 ms. F4 has your own editor."""


class EditPartScreen(Steered):
    """Saving keeps a draft and checks it; accepting sends it to the run, which checks it as it does a model's."""

    MODE = "pipeline"
    TYPED_IN = True
    ABOUT = (
        "What a stage made, to be put right by hand: schemas and sample data as SQL, code as it is, the rest as JSON. "
        "^s keeps a draft and runs the checks on it; F6 shows what you changed; F8 makes it your version, and what "
        "depends on it is made again, or kept where it still passes its checks. F4 opens it in $EDITOR."
    )
    BINDINGS = bindings("part")

    def __init__(self, watch: RunWatch, row: Row, stage: str, piece: Piece) -> None:
        super().__init__()
        self._watch = watch
        self._row = row
        self._stage = stage
        self._piece = piece
        self._was = Spelling("", "json")
        self._saved = ""
        self._checked: tuple[str, Checked | str] | None = None  # the text that was checked, and what came of it

    @property
    def watch_of_run(self) -> RunWatch:
        """The run."""
        return self._watch

    @property
    def target(self) -> tuple[Row, str]:
        """The stage whose part is edited."""
        return self._row, self._stage

    @property
    def area(self) -> TextArea:
        """The text."""
        return self.query_one(TextArea)

    def body(self) -> Iterable[Widget]:
        """What is edited, the text, the checks."""
        yield Static("", id="part-head", markup=False)
        with Horizontal(id="part"):
            yield TextArea("", show_line_numbers=True, soft_wrap=False, id="part-text")
            yield Source(wrap=True, id="part-checks")

    def on_mount(self) -> None:
        """Read what there is."""
        super().on_mount()
        self.area.theme = "css" if self.app.current_theme.dark else "github_light"
        self._read()

    @work(exclusive=True)
    async def _read(self) -> None:
        workspace = self.studio.workspace
        if workspace is None:
            return
        found = await self.studio.ask(
            stage_record.present, workspace, self._row, self._stage, self._piece.part, self._piece.slot
        )
        if found is None:
            return
        self._was = spell(Part(self._piece.part), found)
        draft = drafts.kept(self._draft(workspace))
        self._saved = self._was.text if draft is None else draft
        self._load(self._saved)
        if draft is not None and draft != self._was.text:
            self.notify("This is your draft; F6 shows what it changes.")
        self.area.focus()
        self._say()

    def _load(self, text: str) -> None:
        area = self.area
        area.language = self._was.language if len(text) <= HIGHLIGHTED else None
        area.load_text(text)

    def _spelled(self, text: str) -> Spelling:
        return replace(self._was, text=text)

    def _draft(self, workspace: Workspace) -> Path:
        return drafts.draft_file(workspace, self._watch.run.id, self._row.name, self._piece.step, self._was.suffix)

    @on(TextArea.Changed)
    def _say(self) -> None:
        """Say what is edited, whether it is saved, and what the checks of this very text said."""
        text, parts = self.area.text, [f"{self._row.number:04} › {self._stage} › {self._piece.step}{self._was.suffix}"]
        parts += ["● not saved"] if text != self._saved else ["● draft"] if text != self._was.text else []
        if self._checked is not None and self._checked[0] == text:
            outcome = self._checked[1]
            if isinstance(outcome, str):
                parts.append("✗ cannot be read")
            else:
                found = len(outcome.findings)
                parts.append(f"✗ {outcome.refused} to put right" if outcome.refused else "✓ checks")
                parts += [f"! {found - outcome.refused} more found"] if found > outcome.refused else []
        elif self._checked is not None:
            parts.append("checks are of an earlier text")
        self.query_one("#part-head", Static).update(one_line("   ".join(parts)))

    # Actions

    @work(exclusive=True, group="check")
    async def action_save(self) -> None:
        """Keep the draft, and check it."""
        workspace, text = self.studio.workspace, self.area.text
        if workspace is None or not await self.studio.ask(drafts.keep, self._draft(workspace), text):
            return
        self._saved = text
        self._say()
        await self._check(text)

    @work(exclusive=True, group="check")
    async def action_check(self) -> None:
        """Check the text as it is."""
        await self._check(self.area.text)

    async def _check(self, text: str) -> None:
        workspace, live, shown = self.studio.workspace, self.studio.live, self.query_one("#part-checks", Source)
        if workspace is None or live is None:
            return
        shown.show("▶ its checks are running …")

        def run() -> Checked | str:
            spelling = self._spelled(text)
            try:
                return drafts.check(
                    workspace, live, self._row.name, self._stage, self._piece.part, self._piece.slot, spelling
                )
            except UserError as error:
                return str(error)

        outcome = await self.studio.ask(run)
        if outcome is None:
            shown.show("")
            return
        self._checked = (text, outcome)
        if isinstance(outcome, str):
            shown.show_lines([[("✗ ", "fail"), (outcome, "")]])
        else:
            shown.show_lines(findings(outcome.findings) or [[("✓ Its checks found nothing.", "ok")]])
        self._say()

    def action_difference(self) -> None:
        """Show what was changed."""
        lines = drafts.changed_lines(self._was.text, self.area.text)
        self.query_one("#part-checks", Source).show("\n".join(lines) or "Nothing is changed.", "diff" if lines else "")

    def action_editor(self) -> None:
        """Edit the text in $EDITOR."""
        workspace = self.studio.workspace
        if workspace is None:
            return
        file = self._draft(workspace)
        try:
            drafts.keep(file, self.area.text)
            edit(self.app, file)
            self._saved = drafts.kept(file) or ""
        except UserError as error:
            self.notify(str(error), severity="error", timeout=12, markup=False)
            return
        self._load(self._saved)
        self.action_check()

    @work(exclusive=True, group="accept")
    async def action_accept(self) -> None:
        """Make the text a version of the part, by you."""
        workspace, text = self.studio.workspace, self.area.text
        if workspace is None:
            return
        content = await self.studio.ask(drafts.read, Part(self._piece.part), self._spelled(text))
        if content is None:
            return
        keep = False
        if self._stage != list(STAGES)[-1]:
            ways = {"again": "Make again what depends on it", "keep": "Keep what depends on it where it still passes"}
            way = await self.studio.push_screen_wait(ChooseScreen("After this edit", ways))
            if way is None:
                return
            keep = way == "keep"
        data = {"stage": self._stage, "part": self._piece.part, "slot": self._piece.slot or None}
        if await self.told("edit", self._row, data | {"content": content, "keep": keep}):
            self._draft(workspace).unlink(missing_ok=True)
            self.dismiss()

    def action_back(self) -> None:
        """Back, if nothing is lost by it."""
        if self.area.text in (self._saved, self._was.text):
            self.dismiss()
        else:
            self._leave_unsaved()

    @work
    async def _leave_unsaved(self) -> None:
        choices = {"stay": "Go on editing", "leave": "Leave without saving"}
        if await self.studio.push_screen_wait(ChooseScreen("The text is not saved", choices)) == "leave":
            self.dismiss()
