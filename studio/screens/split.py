"""A list beside the details of what is under its cursor: the keys that go between the two."""

from __future__ import annotations

from textual.reactive import reactive

from studio.screens.frame import Framed
from studio.widgets.grid import Grid
from studio.widgets.tabs import Tabbed


class Split(Framed):
    """A list on the left, its details in tabs on the right; a narrow terminal has room for one of them at a time."""

    zoomed: reactive[bool] = reactive(False, toggle_class="-zoomed")

    @property
    def grid(self) -> Grid:
        """The list."""
        raise NotImplementedError

    @property
    def detail(self) -> Tabbed:
        """The details of what is under the cursor."""
        raise NotImplementedError

    def enter_detail(self) -> None:
        """Give the details the keyboard; where the list has the whole screen they take its place."""
        if self.has_class("-narrow"):
            self.zoomed = True
        self.call_after_refresh(self.detail.enter)

    def leave_detail(self) -> bool:
        """Go back to the list; whether that was not where the keyboard already was."""
        if not (self.zoomed or self.detail.has_focus_within):
            return False
        self.zoomed = False
        self.grid.focus()
        return True

    def action_zoom(self) -> None:
        """The details alone, or beside the list."""
        self.zoomed = not self.zoomed
        self.call_after_refresh(self.detail.enter if self.zoomed else self.grid.focus)

    def action_next_tab(self) -> None:
        """The next tab."""
        self._turn(1)

    def action_previous_tab(self) -> None:
        """The tab before."""
        self._turn(-1)

    def _turn(self, steps: int) -> None:
        self.detail.turn(steps)
        if self.has_class("-narrow") and not self.zoomed:
            self.enter_detail()  # so that the tab is seen

    def on_resize(self) -> None:
        """The keyboard stays where it was, in sight: details that it is in take the place of a list with no room."""
        if self.detail.has_focus_within:
            self.call_after_refresh(self._keep_in_sight)

    def _keep_in_sight(self) -> None:
        if self.has_class("-narrow") and not self.zoomed:
            self.enter_detail()
