"""Call an environment's tools by hand, on a private copy that can be taken back to any point."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from textual import on, work
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Select, Static, TabbedContent, TabPane

from pipeline.model import Environment
from studio.actions import bindings
from studio.candidates import Candidate, candidates
from studio.schema_fields import Field, fields_of
from studio.screens.choose import ChooseScreen
from studio.screens.finish import FinishScreen
from studio.screens.frame import Framed
from studio.session import Session, Step
from studio.snapshot_reader import Snapshot
from studio.widgets.cells import duration, one_line
from studio.widgets.changes import Changes
from studio.widgets.environment.dossier import Dossier
from studio.widgets.form import ArgumentForm
from studio.widgets.grid import Column, Grid
from studio.widgets.lines import Piece
from studio.widgets.source import Source, highlight

if TYPE_CHECKING:
    from pipeline.runtime.host import Reply
    from pipeline.runtime.tools import Tool
    from studio.live import Live


def _start(live: Live, env: Environment) -> Session:
    return Session(live.program(env))


def _candidates(fields: Sequence[Field], tool: str, snapshot: bytes) -> dict[str, list[Candidate]]:
    reader = Snapshot(snapshot)
    try:
        return {field.name: candidates(field, tool, reader) for field in fields}
    finally:
        reader.close()


def _said(step: Step | None) -> Piece:
    if step is None:
        return "initial state", "muted"
    return f"{step.call.tool} {json.dumps(dict(step.call.arguments), ensure_ascii=False)}", ""


def _status(step: Step | None) -> Piece:
    if step is None:
        return "", ""
    error = step.reply.error
    return (f"✗ {step.reply.status} {error.kind}", "fail") if error else (f"✓ {step.reply.status}", "ok")


def _touched(step: Step | None) -> Piece:
    if step is None:
        return "", ""
    return (f"~ {', '.join(step.changes)}", "changed") if step.changes else ("", "")


def _pretty(reply: Reply) -> str:
    return reply.text if reply.body is None else json.dumps(reply.body, indent=2, ensure_ascii=False)


def _failure(reply: Reply) -> list[list[Piece]]:
    """What an agent is told, and what a person may know beyond it."""
    error = reply.error
    lines: list[list[Piece]] = [
        [("What an agent is told", "strong")],
        *([(line, "")] for line in reply.text.splitlines()),
    ]
    if error is not None:
        lines += [[], [("What happened", "strong")], [(error.message, "fail")]]
        if error.detail is not None:
            lines += highlight(json.dumps(error.detail, indent=2, ensure_ascii=False, default=str), "json")
    return lines


class CallScreen(Framed):
    """A tool and its arguments on the left; its result, what it changed and the calls so far on the right."""

    MODE = "environments"
    TYPED_IN = True
    ABOUT = (
        "Tools are called on a private copy of the environment: nothing here changes the catalog until a solution is "
        "saved. Enter in a field calls. Every call is kept: in History, Enter on a line goes back to the state after "
        "it, and the next call goes on from there."
    )
    BINDINGS = bindings("call")
    STEPS = (
        Column("point", "#", lambda entry: str(entry[0]), width=3, right=True),
        Column("here", "", lambda entry: ("▶", "accent") if entry[3] else " ", width=1),
        Column("tool", "call", lambda entry: _said(entry[1]), width=20, flex=3),
        Column("status", "reply", lambda entry: _status(entry[1]), width=12, flex=1),
        Column("changes", "changed", lambda entry: _touched(entry[1]), width=8, flex=1),
        Column("ms", "time", lambda entry: duration(entry[1].reply.ms / 1000) if entry[1] else "", width=7, right=True),
    )

    def __init__(self, dossier: Dossier, tool: str = "") -> None:
        super().__init__()
        self._env: Environment = dossier.env
        self._wanted = tool
        self._tools: dict[str, Tool] = {}
        self.session: Session | None = None
        self.busy = False

    def body(self) -> Iterable[Widget]:
        """Which environment, form and results."""
        yield Static(f"{one_line(self._env.title)}  a private copy", id="called", markup=False)
        with Horizontal(id="call"):
            with Vertical(id="asked"):
                yield Select[str]((), prompt="Loading the code …", id="tool", compact=True)
                yield Static("", id="about-tool", markup=False)
                yield ArgumentForm()
            with Vertical(id="answered"):
                yield Static("", id="reply", markup=False)
                with TabbedContent(id="answers"):
                    with TabPane("Result", id="result"):
                        yield Source(wrap=True)
                    with TabPane("Changes", id="changes"):
                        yield Changes()
                    with TabPane("History", id="history"):
                        yield Grid(self.STEPS, id="steps")

    def on_mount(self) -> None:
        """Load the program."""
        super().on_mount()
        self._load()

    @work(exclusive=True)
    async def _load(self) -> None:
        live = self.studio.live
        session = await self.studio.ask(_start, live, self._env) if live else None
        if session is None:
            self.dismiss()
            return
        self.session = session
        self._tools = {tool.name: tool for tool in session.program.tools}
        select = self.query_one("#tool", Select)
        select.prompt = "Choose a tool" if self._tools else "The code defines no tools."
        select.set_options([(f"{tool.method:<6} {tool.name}", tool.name) for tool in self._tools.values()])
        self._show_history()
        if self._tools:
            select.value = self._wanted if self._wanted in self._tools else next(iter(self._tools))

    # The form

    @on(Select.Changed, "#tool")
    def _tool_chosen(self, event: Select.Changed) -> None:
        if isinstance(event.value, str):
            self._ask_for(event.value, {})

    @work(exclusive=True, group="form")
    async def _ask_for(self, name: str, values: Mapping[str, Any], *, focus: bool = True) -> None:
        tool = self._tools[name]
        fields = fields_of(tool.input_schema)
        self.query_one("#about-tool", Static).update(next(iter(tool.description.splitlines()), ""))
        known = await self.studio.ask(_candidates, fields, name, self.session.snapshot) if self.session else None
        form = self.query_one(ArgumentForm)
        await form.show(fields, known or {}, values)
        if focus:
            (form.rows[0].editor if form.rows else self.query_one("#tool")).focus()

    @on(ArgumentForm.Sent)
    def _sent(self) -> None:
        self.action_run()

    def action_run(self) -> None:
        """Make the call, unless one is being made or the form is not right."""
        tool = self.query_one("#tool", Select).value
        arguments = self.query_one(ArgumentForm).read()
        if self.session is None or self.busy or not isinstance(tool, str) or arguments is None:
            return
        self._call(self.session, tool, arguments)

    @work
    async def _call(self, session: Session, tool: str, arguments: Mapping[str, Any]) -> None:
        self.busy = True
        said = self.query_one("#reply", Static)
        said.update(f"▶ calling {tool} … (at most {self.studio.settings.call_timeout_s:g} s, F4 stops it)")
        try:
            step = await self.studio.ask(session.call, tool, arguments)
        finally:
            self.busy = False
        if step is None:
            said.update("✗ The call could not be made.")
            return
        self._show_step(step)
        self._show_history()
        self.query_one("#answers", TabbedContent).active = "result"

    def action_stop(self) -> None:
        """Stop the call that is running."""
        if self.session is None or not self.session.program.interrupt():
            self.notify("No call is running.", timeout=3)

    def action_values(self) -> None:
        """Choose the value of the current argument from the rows of the database."""
        row = self.query_one(ArgumentForm).current
        if row is None or not row.candidates:
            self.notify("No values are known for this field.", timeout=3)
            return
        labels = {known.text: f"{known.text}  {known.label}".strip() for known in row.candidates}

        def choose(text: str | None) -> None:
            if text is not None:
                row.text = text

        self.studio.push_screen(ChooseScreen(row.field.name, labels, now=row.text), choose)

    # The results

    def _show_step(self, step: Step) -> None:
        reply = step.reply
        self.query_one("#reply", Static).update(
            "   ".join(filter(None, (_status(step)[0], duration(reply.ms / 1000), _touched(step)[0])))
        )
        source = self.query_one("#result Source", Source)
        if reply.ok:
            source.show(_pretty(reply), "json")
        else:
            source.show_lines(_failure(reply))
        self.query_one(Changes).show_changes(step.changes)

    def _show_history(self) -> None:
        session = self.session
        if session is None:
            return
        entries = [(point, step, session, point == session.point) for point, step in enumerate([None, *session.steps])]
        self.query_one("#steps", Grid).show(entries, cursor=session.point)

    @on(Grid.Selected, "#steps")
    def _go_there(self, event: Grid.Selected) -> None:
        self._go_to(event.row[0])

    def _go_to(self, point: int) -> None:
        if self.session is None or self.busy:
            return
        self.session.go_to(point)
        self._show_history()
        if point:
            step = self.session.steps[point - 1]
            self._show_step(step)
            with self.prevent(Select.Changed):
                self.query_one("#tool", Select).value = step.call.tool
            in_history = self.query_one("#answered").has_focus_within
            self._ask_for(step.call.tool, step.call.arguments, focus=not in_history)
        else:
            self.query_one("#reply", Static).update("The initial state.")
            self.query_one(Changes).show_changes({})

    def action_undo(self) -> None:
        """Back to before the last call."""
        if self.session is not None and self.session.point:
            self._go_to(self.session.point - 1)

    def action_reset(self) -> None:
        """Forget all calls."""
        if self.session is not None and not self.busy:
            self.session.reset()
            self._go_to(0)

    def action_finish(self) -> None:
        """Verify a task with what has been done, or keep it as the task's solution."""
        if self.session is not None and not self.busy:
            self.studio.push_screen(FinishScreen(self._env, self.session))

    @work(exclusive=True, group="datasette")
    async def action_datasette(self) -> None:
        """Open the database as it is now, with what the calls changed, in the browser."""
        session, live = self.session, self.studio.live
        if session is not None and live is not None:
            self.studio.show_page(
                await self.studio.ask(live.changes_page, self._env, session.initial, session.snapshot)
            )

    def action_back(self) -> None:
        """Back to the environment, after asking where calls would be forgotten."""
        if self.session is None or self.session.is_kept:
            self.dismiss()
            return
        steps = len(self.session.steps)
        choices = {"stay": "Go on calling", "leave": "Leave and forget them"}
        title = "1 call was made on this copy" if steps == 1 else f"{steps} calls were made on this copy"
        self.studio.push_screen(ChooseScreen(title, choices), self._left)

    def _left(self, choice: str | None) -> None:
        if choice == "leave":
            self.dismiss()
