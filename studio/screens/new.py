"""Asking what something new should be: what every such form has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar, cast

from textual import on, work
from textual.app import ComposeResult
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Footer, Input, Select, Static

from pipeline.errors import UserError
from studio.actions import bindings

if TYPE_CHECKING:
    from studio.app import Studio

SETTLE_S = 0.4
"""How long nothing must be typed before what is there is looked at: that may read many environments."""

T = TypeVar("T")


class NewScreen(ModalScreen[T | None], Generic[T]):
    """Answers with what was asked for, or with None. Says beneath the form what it takes, or what is wrong with it."""

    BINDINGS = bindings("new")

    def __init__(self) -> None:
        super().__init__()
        self._settling: Timer | None = None
        self._starting = False
        self._said: dict[str, object] = {}

    def taken(self) -> str:
        """What it will take, as far as that is known; called in a thread. Raises UserError where something is wrong."""
        raise NotImplementedError

    @property
    def studio(self) -> Studio:
        """The app."""
        return cast("Studio", self.app)

    def ending(self) -> ComposeResult:
        """What is said beneath the form."""
        yield Static("", id="new-cost", classes="hint", markup=False)
        yield Static("", id="new-problem", classes="field-problem", markup=False)

    def keys(self) -> Footer:
        """The keys, at the foot of the screen."""
        return Footer(compact=True, show_command_palette=False)

    def chosen(self, name: str) -> str:
        """What a choice stands at; empty for nothing. As it was when looking, or starting, began."""
        value = self._said.get(name)
        return value if isinstance(value, str) else ""

    def typed(self, name: str) -> str:
        """What is written in a line; empty where the form has no such line. As `chosen`, of then."""
        return str(self._said.get(f"new-{name}", "")).strip()

    def _read(self) -> None:
        """Keep what the form says: it is looked at in a thread, while somebody may go on typing."""
        self._said = {str(widget.id): widget.value for kind in (Select, Input) for widget in self.query(kind)}

    @on(Select.Changed)
    @on(Input.Changed)
    def _changed(self) -> None:
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(SETTLE_S, self._look)

    @work(exclusive=True, group="look")
    async def _look(self) -> None:
        if self._starting:
            return
        self._read()
        told = await self.studio.ask(self._considered)
        if told is not None:
            cost, problem = told
            self.query_one("#new-cost", Static).update(cost)
            self.complain(problem)

    def _considered(self) -> tuple[str, str]:
        try:
            return self.taken(), ""
        except (UserError, OSError) as error:
            return "", str(error)

    def complain(self, problem: str) -> None:
        """Say what is wrong; empty for nothing."""
        shown = self.query_one("#new-problem", Static)
        shown.update(f"✗ {problem}" if problem else "")
        shown.display = bool(problem)

    @on(Input.Submitted)
    @work
    async def action_start(self) -> None:
        """Answer, or say what is wrong. What is started is started once, however often that is asked for."""
        if self._starting:
            return
        self._starting = True
        if self._settling is not None:  # what it would say must not take the place of what is said here
            self._settling.stop()
        self.workers.cancel_group(self, "look")
        self._read()
        try:
            told = await self.studio.ask(self._answered)
        finally:
            self._starting = False
        if told is not None:
            answer, problem = told
            self.complain(problem)
            if answer is not None:
                self.dismiss(answer)

    def _answered(self) -> tuple[T | None, str]:
        try:
            return self.answer(), ""
        except (UserError, OSError) as error:
            return None, str(error)

    def answer(self) -> T:
        """What is asked for; called in a thread. Raises UserError where something is wrong."""
        raise NotImplementedError

    def action_close(self) -> None:
        """Ask for nothing, unless that is too late."""
        if self._starting:
            self.notify("It is being started: a moment, please.", severity="warning")
        else:
            self.dismiss(None)
