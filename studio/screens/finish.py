"""Finish a task by hand: what its verifier says about the calls so far, and keeping them as its solution."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Select, Static

from curation.solutions import Made, save_solution, worked
from pipeline.model import Environment, Verifier
from studio.actions import bindings
from studio.person import person
from studio.screens.choose import ChooseScreen
from studio.session import Session
from studio.widgets.cells import duration, one_line
from studio.widgets.lines import Piece
from studio.widgets.source import Source, highlight

if TYPE_CHECKING:
    from pipeline.catalog import Catalog
    from pipeline.records import Version
    from pipeline.runtime.host import Verdict
    from studio.app import Studio

WORDS = {
    "complete": ("✓ complete", "ok"),
    "others": ("✗ others: not done as the verifier sees it", "fail"),
    "evidence": ("i evidence for a judge", "accent"),
    "judge_error": ("✗ the verifier failed", "fail"),
}

DOUBT = "The verifier does not call this complete"
KEEP = {
    "back": "Do not save it: something is still to be done",
    "keep": "Save it all the same: it is right, and audits are to count it against the verifier",
}


class FinishScreen(ModalScreen[None]):
    """Choose the task, type the final answer; verify, or save."""

    BINDINGS = bindings("finish")

    def __init__(self, env: Environment, session: Session) -> None:
        super().__init__()
        self._env = env
        self._session = session

    def compose(self) -> ComposeResult:
        """Task, answer, and what the verifier says."""
        tasks = [(f"{number}  {one_line(text)}", number) for number, text in enumerate(self._env.tasks)]
        with Vertical(classes="dialog -tall"):
            calls = len(self._session.calls)
            yield Static(f"Finish a task with the {calls} call{'' if calls == 1 else 's'} so far", classes="title")
            yield Select[int](tasks, prompt="Which task?", id="task", compact=True)
            yield Static("", id="task-text", markup=False)
            yield Input(placeholder="final answer, if the task asks for one", id="answer", compact=True)
            yield Source(wrap=True, id="verdict")
        yield Footer(compact=True, show_command_palette=False)

    @on(Select.Changed, "#task")
    def _task_chosen(self) -> None:
        task = self._number
        self.query_one("#task-text", Static).update(self._env.tasks[task] if task is not None else "")

    @property
    def _number(self) -> int | None:
        value = self.query_one("#task", Select).value
        return value if isinstance(value, int) else None

    @property
    def _answer(self) -> str | None:
        return self.query_one("#answer", Input).value or None

    @on(Input.Submitted)
    def _entered(self) -> None:
        self.action_verify()

    @work(exclusive=True)
    async def action_verify(self) -> None:
        """Ask every verifier of the task."""
        task = self._number
        if task is None:
            self.notify("Choose a task first.", severity="warning")
            return
        await self._judged(task)

    async def _judged(self, task: int) -> list[Verdict]:
        """What the verifiers of a task say of the calls so far and the answer, shown too."""
        studio, answer, shown = self._studio, self._answer, self.query_one("#verdict", Source)
        verifiers = [verifier for verifier in self._env.verifiers if verifier.task == task]
        if not verifiers or studio.live is None:
            shown.show(f"Task {task} has no verifier.")
            return []
        lines: list[list[Piece]] = []
        verdicts = []
        for verifier in verifiers:
            shown.show("▶ verifying …")
            verdict = await studio.ask(
                studio.live.verify, self._env, verifier, self._session.initial, self._session.snapshot, answer
            )
            if verdict is not None:
                lines += _lines(verifier, verdict)
                verdicts.append(verdict)
        shown.show_lines(lines)
        return verdicts

    @work(exclusive=True)
    async def action_save(self) -> None:
        """Keep the calls and the answer as the task's solution, after asking where a verifier rejects them."""
        studio, task = self._studio, self._number
        if task is None or studio.workspace is None:
            self.notify("Choose a task first.", severity="warning")
            return
        rejected = any(verdict.verdict in ("others", "judge_error") for verdict in await self._judged(task))
        if rejected and await self.app.push_screen_wait(ChooseScreen(DOUBT, KEEP, wide=True)) != "keep":
            return
        version = await studio.ask(_save, studio.workspace.catalog, self._env.name, task, self._session, self._answer)
        if version is not None:
            self._session.kept = tuple(self._session.steps[: self._session.point])
            told = f"Saved as the solution of task {task}, version {version.number}."
            self.notify(f"{told} An audit (a in the list) tries its verifiers with it.")

    def action_close(self) -> None:
        """Back to the calls."""
        self.dismiss()

    @property
    def _studio(self) -> Studio:
        return cast("Studio", self.app)


def _save(catalog: Catalog, name: str, task: int, session: Session, answer: str | None) -> Version:
    steps = session.steps[: session.point]
    calls = worked([Made(step.call, ok=step.reply.ok, changed=bool(step.changes)) for step in steps])
    return save_solution(catalog, name, task, calls, answer, person())


def _lines(verifier: Verifier, verdict: Verdict) -> Iterator[list[Piece]]:
    yield [WORDS[verdict.verdict]]
    yield [(f"{verifier.mode.value} verifier, {duration(verdict.ms / 1000)}", "muted")]
    if verdict.error:
        yield [(verdict.error, "fail")]
    if verdict.evidence is not None:
        yield from highlight(json.dumps(verdict.evidence, indent=2, ensure_ascii=False, default=str), "json")
    yield []
    yield [("What it looked at", "strong")]
    for query in sorted(verdict.queries, key=lambda query: query["db"] == "other"):
        yield [("✓ " if query["ok"] else "✗ ", "ok" if query["ok"] else "fail"), (query["db"], "name")]
        yield from ([("   ", ""), *line] for line in highlight(query["sql"].strip(), "sql"))
        if query["error"]:
            yield [(f"   {query['error']}", "fail")]
    if not verdict.queries:
        yield [("It read nothing from the databases.", "muted")]
    yield []
