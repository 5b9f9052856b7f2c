"""The line above a list: how much of it is shown, and the filter."""

from __future__ import annotations

from contextlib import suppress

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input, Static

from curation.filters import Filter, FilterError, parse
from studio.actions import bindings


class FilterBar(Vertical):
    """Reads the filter while it is typed; a term that cannot be read is explained, and the others hold."""

    BINDINGS = bindings("filter")

    class Changed(Message):
        """Another filter holds."""

        def __init__(self, wanted: Filter) -> None:
            super().__init__()
            self.wanted = wanted

    class Left(Message):
        """Enter or Escape was pressed: the keyboard goes back to the list."""

    def compose(self) -> ComposeResult:
        """Count, input, and room for an explanation."""
        with Horizontal():
            yield Static("", id="count")
            yield Input(placeholder="/ to filter: words domain:travel tables>10 -check:fail", id="filter", compact=True)
        yield Static("", id="filter-problem", markup=False)

    def say(self, count: str) -> None:
        """Show how much is listed."""
        self.query_one("#count", Static).update(count)

    @property
    def text(self) -> str:
        """What is typed."""
        return self.query_one(Input).value

    def start(self) -> None:
        """Take the keyboard."""
        self.query_one(Input).focus()

    def clear(self) -> None:
        """Forget the filter."""
        self.query_one(Input).value = ""

    @on(Input.Changed)
    def _read(self, event: Input.Changed) -> None:
        event.stop()
        problem = self.query_one("#filter-problem", Static)
        try:
            wanted = parse(event.value)
        except FilterError as error:
            problem.update(f"✗ {error}")
            problem.display = True
            with suppress(FilterError):
                self.post_message(self.Changed(parse(event.value.replace(error.token, "", 1))))
            return
        problem.display = False
        self.post_message(self.Changed(wanted))

    @on(Input.Submitted)
    def _done(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Left())

    def action_to_list(self) -> None:
        """Back to the list with the filter as it is."""
        self.post_message(self.Left())

    def action_clear(self) -> None:
        """Back to the list with everything in it."""
        self.clear()
        self.post_message(self.Left())
